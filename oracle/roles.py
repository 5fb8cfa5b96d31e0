"""Roles: what a RAM byte does, told by poking it and never by its name.

At an analysis state a byte is poked by +8 and by -8 and watched for the two frames of `oracle.sprites`, and set to each
of its do-values and watched at the horizon. Every run is compared with the reference run of the same length. A byte may
have several roles; in the order of their strength:

1. `x`, `y`, `xy`: the two pokes translate a sprite, by the test of `oracle.sprites`, along that axis or both. It comes
   first since it is the only one that says *how*: direction and slope. Moving a sprite often costs a life or earns
   points as well, which is what a position does and not what it is.
2. `lives`: the lives that ALE reports differ after a run. Before the score, since a life lost is a point not earned.
3. `score`: the reward that ALE reports over a run differs. ALE reads the score from RAM, so writing it is a reward.
4. `appearance`: pixels differ after a run, and none of the above.
5. `internal`: other bytes differ, and nothing that can be seen.
6. `nothing`: all runs end as the reference run does, but for the byte itself.

What differs may do so by a long way round: a role is an effect, not an explanation. Its evidence says after how many
runs it was seen.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from games.catalog import Game, Role
from oracle.effects import Measured, live_trace, reference_run
from oracle.emulator import Emulator, Machine, Snapshot, silenced_stderr
from oracle.intervention import Cause
from oracle.protocol import AuditProtocol
from oracle.rollout import ExactRollouts
from oracle.sprites import FRAMES_TO_SHOW, POKE, SLACK, opposite_pokes, translation

ROLES: tuple[Role, ...] = get_args(Role)
POSITIONS: tuple[Role, ...] = ("x", "y", "xy")
# An axis along which the two pokes moved the sprite by no more than this, in pixels per unit, is the slack of the test.
LEAST_SLOPE = SLACK / (2 * POKE)
WHAT_DIFFERS: dict[Role, str] = {
    "lives": "lives differ",
    "score": "reward differs",
    "appearance": "pixels differ",
    "internal": "other bytes differ",
}


@dataclass(frozen=True)
class ByteRuns:
    """What the runs of one byte at one state came to.

    Attributes:
        state: which one.
        address: the byte.
        slope_x, slope_y: columns to the right and rows downwards per unit of the byte; 0 where it moves no sprite.
        n_runs: how many runs there were.
        n_lives, n_score, n_appearance, n_internal: after how many of them lives, reward, pixels, other bytes differed.
    """

    state: int
    address: int
    slope_x: float
    slope_y: float
    n_runs: int
    n_lives: int
    n_score: int
    n_appearance: int
    n_internal: int

    @property
    def role(self) -> Role:
        """The strongest that was seen."""
        across, down = abs(self.slope_x) > LEAST_SLOPE, abs(self.slope_y) > LEAST_SLOPE
        if across or down:
            return "xy" if across and down else "x" if across else "y"
        return next((role for role in WHAT_DIFFERS if self._n_runs_with(role)), "nothing")

    @property
    def evidence(self) -> str:
        """What shows that role, in words."""
        match self.role:
            case "x":
                return f"x, slope {self.slope_x:+.2f} (state {self.state})"
            case "y":
                return f"y, slope {self.slope_y:+.2f} (state {self.state})"
            case "xy":
                return f"x, slope {self.slope_x:+.2f}; y, slope {self.slope_y:+.2f} (state {self.state})"
            case "nothing":
                return _nothing([self])
            case role:
                differing = self._n_runs_with(role)
                return f"{WHAT_DIFFERS[role]} after {differing} of {self.n_runs} runs (state {self.state})"

    def _n_runs_with(self, role: Role) -> int:
        return int(getattr(self, f"n_{role}"))


def strongest(of_states: Sequence[ByteRuns]) -> tuple[Role, str]:
    """The strongest role of one byte at several states, with its evidence in words.

    The first state that shows it is the evidence, but of `nothing` all are; the three positions are equally strong.
    """
    best = min(of_states, key=lambda runs: 0 if runs.role in POSITIONS else ROLES.index(runs.role))
    return best.role, _nothing(of_states) if best.role == "nothing" else best.evidence


def _nothing(of_states: Sequence[ByteRuns]) -> str:
    states = ", ".join(str(runs.state) for runs in of_states)
    n_runs = sum(runs.n_runs for runs in of_states)
    return f"nothing differs after {n_runs} runs (state{'s' if len(of_states) > 1 else ''} {states})"


def measure_roles(
    protocol: AuditProtocol,
    game: Game,
    state: int,
    addresses: Collection[int],
    fresh_machine: Callable[[], Machine] | None = None,
) -> tuple[ByteRuns, ...]:
    """The runs of these bytes at a live state of the protocol, whose causes say the do-values.

    Raises:
        InvalidState: there is no such state.
        NotDeterministic: two reference runs differ.
    """
    trace = live_trace(protocol, game, state, fresh_machine)
    rollouts = ExactRollouts(fresh_machine or (lambda: Emulator(game)), trace)
    found = Measured(rollouts, reference_run(rollouts))
    causes = [cause for cause in protocol.causes(game, rollouts) if cause.ram_address in addresses]
    return byte_runs(found, state, causes)


def byte_runs(found: Measured, state: int, causes: Sequence[Cause]) -> tuple[ByteRuns, ...]:
    """The runs of the byte of every cause, if it has one, at the state that was found."""
    rollouts, early_tail = found.rollouts, found.rollouts.trace.tail[:FRAMES_TO_SHOW]
    early = rollouts.run([], early_tail)
    measured = []
    with silenced_stderr():
        for cause in causes:
            address = cause.ram_address
            if address is not None:
                pokes = [(rollouts.run([poke], early_tail), early) for poke in opposite_pokes(rollouts, address)]
                others = [(rollouts.run([do]), found.reference) for do in cause.interventions]
                measured.append(_compared(state, address, [*pokes, *others]))
    return tuple(measured)


def _compared(state: int, address: int, pairs: Sequence[tuple[Snapshot, Snapshot]]) -> ByteRuns:
    """What the ends of runs beside those of their reference runs come to; the pokes by +8 and by -8 are the first."""
    (plus, early), (minus, _), *_ = pairs
    slope_x, slope_y = translation(early.screen, plus.screen, minus.screen) or (0.0, 0.0)
    return ByteRuns(
        state=state,
        address=address,
        slope_x=slope_x,
        slope_y=slope_y,
        n_runs=len(pairs),
        n_lives=sum(one.lives != other.lives for one, other in pairs),
        n_score=sum(one.reward != other.reward for one, other in pairs),
        n_appearance=sum(not np.array_equal(one.screen, other.screen) for one, other in pairs),
        n_internal=sum(_other_bytes_differ(one, other, address) for one, other in pairs),
    )


def _other_bytes_differ(one: Snapshot, other: Snapshot, address: int) -> bool:
    differs = one.ram != other.ram
    differs[address] = False
    return bool(differs.any())
