"""Each do-value of each cause is run once; every output is read from the final snapshots that are kept here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from oracle.emulator import Snapshot, silenced_stderr
from oracle.intervention import Cause, Intervention
from oracle.output import Finals, Output
from oracle.rollout import ExactRollouts

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Responses:
    """The final snapshots of one rollout per do-value, beside that of the reference run.

    Attributes:
        reference: the reference run at the horizon.
        finals: RAM and screen at the horizon, one row per do-value, those of a cause beside each other.
        owners: the cause that each row belongs to.
        flags: what else happened, per cause, as words: `vacuous`, `off_manifold`, `game_over`, `illegal_instruction`
            (the poked program ran into data; its effect is well defined all the same).
    """

    reference: Snapshot
    finals: Finals
    owners: Int[np.ndarray, " rollout"]
    flags: tuple[str, ...]

    @property
    def changed(self) -> Bool[np.ndarray, "cause row column"]:
        """Pixels that differ from the reference run at the horizon after any do-value, one mask per cause."""
        return np.logical_or.reduceat(self.finals.changed, _starts(self.owners), axis=0)

    def effects(self, output: Output) -> Float[np.ndarray, " cause"]:
        """The effect of every cause, in units of y: see `effects_of_causes`."""
        return effects_of_causes(output.values(self.finals) - self.reference_value(output), self.owners)

    def reference_value(self, output: Output) -> float:
        """y of the reference run."""
        screen = self.reference.screen
        return float(output.values(Finals(self.reference.ram[np.newaxis], screen[np.newaxis], screen))[0])


def effects_of_causes(
    differences: Float[np.ndarray, "rollout *output"], owners: Int[np.ndarray, " rollout"]
) -> Float[np.ndarray, "cause *output"]:
    """From y(do(u := v)) - y(reference) of every do-value v to one effect per cause u.

    Of a cause with one do-value that difference, with its sign; of one with several the mean absolute difference.
    """
    starts = _starts(owners)
    counts = np.diff(np.append(starts, len(owners)))
    counts = counts.reshape(-1, *[1] * (differences.ndim - 1))
    means = np.add.reduceat(np.abs(differences), starts, axis=0) / counts
    return np.asarray(np.where(counts == 1, differences[starts], means), dtype=np.float64)


def _starts(owners: Int[np.ndarray, " rollout"]) -> Int[np.ndarray, " cause"]:
    """The first row of every cause."""
    return np.flatnonzero(np.diff(owners, prepend=-1))


def respond(rollouts: ExactRollouts, reference: Snapshot, causes: Sequence[Cause]) -> Responses:
    """Run every do-value of every cause once."""
    seen, owners, flags = flagged(causes, lambda do: rollouts.run([do]), lambda final: final)
    return Responses(reference, finals_of(seen, reference), owners, flags)


def finals_of(snapshots: Sequence[Snapshot], reference: Snapshot) -> Finals:
    """Snapshots at the horizon, for outputs to be read from."""
    ram, screens = (np.stack([getattr(each, name) for each in snapshots]) for name in ("ram", "screen"))
    return Finals(ram, screens, reference.screen)


def flagged(
    causes: Sequence[Cause], run: Callable[[Intervention], Seen], last: Callable[[Seen], Snapshot]
) -> tuple[list[Seen], Int[np.ndarray, " rollout"], tuple[str, ...]]:
    """Run every do-value once; what was seen, the cause it belongs to, and the flags of `Responses`."""
    everything, owners, flags = [], [], []
    with silenced_stderr() as n_bytes_written:
        for index, cause in enumerate(causes):
            quiet = n_bytes_written()
            seen = [run(intervention) for intervention in cause.interventions]
            happened = {
                "vacuous": cause.vacuous,
                "off_manifold": cause.off_manifold,
                "game_over": any(last(each).terminal for each in seen),
                "illegal_instruction": n_bytes_written() > quiet,
            }
            everything += seen
            owners += [index] * len(seen)
            flags.append(" ".join(word for word, true in happened.items() if true))
    return everything, np.array(owners), tuple(flags)
