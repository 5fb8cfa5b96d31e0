"""How the effect of interventions grows and fades: the effect at every frame after them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from oracle.effects import Measured
from oracle.emulator import NOOP, Snapshot, silenced_stderr
from oracle.intervention import Intervention
from oracle.output import Finals, Output

# Frames after the intervention that a curve is as long as, or as the horizon where that is longer.
LONGEST_FRAMES = 60


@dataclass(frozen=True)
class HorizonCurve:
    """The effect of a cause on each output by frames after the intervention, the first being frame 1.

    Attributes:
        effects: the mean over the do-values of |y(do) - y(reference)| at that frame, in units of y. Where the reference
            run ends earlier than was asked for, so does the curve: later effects are undefined.
    """

    effects: Float[np.ndarray, "output frame"]

    @property
    def n_frames(self) -> int:
        return len(self.effects.T)


def horizon_curve(
    found: Measured, outputs: Sequence[Output], interventions: Sequence[Intervention], n_frames: int = LONGEST_FRAMES
) -> HorizonCurve:
    """Watch each intervention for `n_frames`: the trace's own tail first, then no action.

    A displacement is that of the sprite as the reference run draws it at the horizon of the protocol, at every frame.
    """
    tail = found.rollouts.trace.tail
    actions = [*tail, *[NOOP] * n_frames][: max(n_frames, len(tail))]
    with silenced_stderr():
        reference = found.rollouts.watch(actions)
        # After game over nothing happens any more: there is no reference to compare with.
        reference = reference[: next((frame for frame, seen in enumerate(reference) if seen.terminal), len(actions))]
        sizes = [_sizes(outputs, found.rollouts.watch(actions, [each]), reference) for each in interventions]
    return HorizonCurve(np.mean(sizes, axis=0))


def _sizes(
    outputs: Sequence[Output], seen: Sequence[Snapshot], reference: Sequence[Snapshot]
) -> Float[np.ndarray, "output frame"]:
    """|y(do) - y(reference)| of one run at every frame of the reference."""
    rows = [
        [output.values(_pair(one, other)) for output in outputs] for one, other in zip(seen, reference, strict=False)
    ]
    return np.asarray(np.abs(np.diff(np.array(rows), axis=2))[..., 0].T, dtype=np.float64)


def _pair(seen: Snapshot, reference: Snapshot) -> Finals:
    """Both at one frame, the reference first."""
    ram, screens = np.stack([reference.ram, seen.ram]), np.stack([reference.screen, seen.screen])
    return Finals(ram, screens, reference.screen)
