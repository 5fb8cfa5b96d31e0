"""Analysis states: a game, its action trace and the frame f* at which the question is asked."""

from dataclasses import dataclass

from oracle.errors import InvalidState

# The exact rollout recipe keeps its checkpoint this many frames before f*.
WARM_UP_FRAMES = 2


@dataclass(frozen=True)
class Trace:
    """The fixed actions of a run: the first `frame` are the prefix up to f*, the others the tail (the horizon)."""

    actions: tuple[int, ...]
    frame: int

    def __post_init__(self) -> None:
        if not WARM_UP_FRAMES <= self.frame < len(self.actions):
            raise InvalidState(
                f"trace: expected an analysis frame in {WARM_UP_FRAMES}..{len(self.actions) - 1}, got {self.frame}"
            )

    @property
    def prefix(self) -> tuple[int, ...]:
        return self.actions[: self.frame]

    @property
    def tail(self) -> tuple[int, ...]:
        return self.actions[self.frame :]
