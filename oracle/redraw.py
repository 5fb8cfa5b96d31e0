"""The control `oracle_redraw`: the effects of other do-values of the same bytes, what the best of claims can reach."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from oracle.emulator import Snapshot
from oracle.intervention import Cause, Intervention
from oracle.output import Finals, Output
from oracle.responses import Responses, effects_of_causes
from oracle.rollout import ExactRollouts


def redrawn_effects(
    rollouts: ExactRollouts,
    responses: Responses,
    causes: Sequence[Cause],
    redrawn: Sequence[Cause],
    outputs: Sequence[Output],
) -> Float[np.ndarray, "output cause"]:
    """The effects of causes with other do-values.

    Causes that were not drawn again keep their effects. A do-value that was run for `causes` is not run again.
    """
    interventions = [do for cause in causes for do in cause.interventions]
    rows = {do: row for row, do in enumerate(interventions)}
    wanted = [do for cause in redrawn for do in cause.interventions]
    seen = {do: rollouts.run([do]) for do in wanted if do not in rows}
    owners = np.repeat(np.arange(len(redrawn)), [len(cause.interventions) for cause in redrawn])
    finals = _finals(wanted, rows, responses.finals, seen)
    drawn = np.array(
        [effects_of_causes(output.values(finals) - responses.reference_value(output), owners) for output in outputs]
    )
    first = np.array([responses.effects(output) for output in outputs])
    return np.concatenate([drawn, first[:, len(redrawn) :]], axis=1)


def _finals(
    wanted: Sequence[Intervention], rows: dict[Intervention, int], known: Finals, seen: dict[Intervention, Snapshot]
) -> Finals:
    ram = np.stack([seen[do].ram if do in seen else known.ram[rows[do]] for do in wanted])
    screens = np.stack([seen[do].screen if do in seen else known.screens[rows[do]] for do in wanted])
    return Finals(ram, screens, known.reference_screen)
