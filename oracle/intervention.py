"""Causes and the interventions that change them. Plain values: nothing here reaches the emulator."""

from dataclasses import dataclass

from games.errors import VeritariError

N_BYTES = 128


@dataclass(frozen=True, order=True)
class RamWrite:
    """do(RAM[address] := value): one byte, once, before the first frame of the tail."""

    address: int
    value: int

    def __post_init__(self) -> None:
        _require_within("RAM address", self.address, N_BYTES - 1)
        _require_within("RAM value", self.value, 255)


@dataclass(frozen=True, order=True)
class RegisterWrite:
    """do(device[register] := value), once, before the first frame of the tail; see `oracle.machine_state`."""

    device: str
    register: str
    value: int


@dataclass(frozen=True, order=True)
class ActionWrite:
    """do(action of tail frame `offset` := action); the first tail frame has offset 0."""

    offset: int
    action: int

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise VeritariError(f"tail frame: expected an offset >= 0, got {self.offset}; the first tail frame has 0")
        _require_within("ALE action", self.action, 17)


Intervention = RamWrite | RegisterWrite | ActionWrite


@dataclass(frozen=True)
class Cause:
    """Something we may intervene on.

    Attributes:
        label: unique within a task, such as `ram[49]:set`.
        intervention: what measures its effect; the first of several do-values.
        removal: what stands for "absent" in deletion and insertion curves; None where removing changes nothing.
        ram_address: the byte it belongs to; None for causes outside RAM.
        vacuous: the intervention sets the value that is there already, so its effect is zero by construction.
        further: the other do-values; the effect of a cause that has any is the mean of the absolute effects of all.
        off_manifold: none of its do-values occurred in the reference pool.
    """

    label: str
    intervention: Intervention
    removal: Intervention | None
    ram_address: int | None
    vacuous: bool
    further: tuple[Intervention, ...] = ()
    off_manifold: bool = False

    @property
    def interventions(self) -> tuple[Intervention, ...]:
        """All that measure its effect, each in a rollout of its own."""
        return (self.intervention, *self.further)


def _require_within(what: str, value: int, largest: int) -> None:
    if not 0 <= value <= largest:
        raise VeritariError(f"{what}: expected 0..{largest}, got {value}; correct it")
