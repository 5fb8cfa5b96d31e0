"""Each cause is run once; every output is read from the final snapshots that are kept here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float, UInt8

from oracle.emulator import Snapshot, silenced_stderr
from oracle.intervention import Cause
from oracle.output import Output
from oracle.rollout import ExactRollouts

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Responses:
    """The final snapshots of one rollout per cause, beside that of the reference run.

    Attributes:
        reference: the reference run at the horizon.
        final_ram: RAM at the horizon, one row per cause.
        changed: pixels that differ from the reference run at the horizon, one mask per cause.
        flags: what else happened, per cause, as words: `vacuous`, `game_over`, `illegal_instruction` (the poked program
            ran into data; its effect is well defined all the same).
    """

    reference: Snapshot
    final_ram: UInt8[np.ndarray, "cause byte"]
    changed: Bool[np.ndarray, "cause row column"]
    flags: tuple[str, ...]

    def effects(self, output: Output) -> Float[np.ndarray, " cause"]:
        """y(do(cause)) - y(reference) of every cause, signed, in units of y."""
        return output.values(self.final_ram, self.changed) - self.reference_value(output)

    def reference_value(self, output: Output) -> float:
        """y of the reference run."""
        unchanged = np.zeros((1, *self.reference.screen.shape), dtype=np.bool_)
        return float(output.values(self.reference.ram[np.newaxis], unchanged)[0])


def respond(rollouts: ExactRollouts, reference: Snapshot, causes: Sequence[Cause]) -> Responses:
    """Run every cause once."""
    finals, flags = flagged(causes, lambda cause: rollouts.run([cause.intervention]), lambda final: final)
    return Responses(
        reference=reference,
        final_ram=np.stack([final.ram for final in finals]),
        changed=np.stack([final.screen != reference.screen for final in finals]),
        flags=flags,
    )


def flagged(
    causes: Sequence[Cause], run: Callable[[Cause], Seen], last: Callable[[Seen], Snapshot]
) -> tuple[list[Seen], tuple[str, ...]]:
    """Run every cause once; what was seen, and the flags of `Responses`."""
    everything, flags = [], []
    with silenced_stderr() as n_bytes_written:
        for cause in causes:
            quiet = n_bytes_written()
            seen = run(cause)
            happened = {
                "vacuous": cause.vacuous,
                "game_over": last(seen).terminal,
                "illegal_instruction": n_bytes_written() > quiet,
            }
            everything.append(seen)
            flags.append(" ".join(word for word, true in happened.items() if true))
    return everything, tuple(flags)
