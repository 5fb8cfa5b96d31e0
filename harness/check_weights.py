"""Does a map depend on what a network has learned? It is asked for again while the network forgets layer by layer."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from harness.findings import CurvePoint, Findings, Verdict
from harness.pool import Limits
from harness.sanity import N_DRAWS, STILL_ALIKE, curve_point, depths, has_changed
from harness.scores import is_constant
from harness.trial import Answer, ask_randomised
from harness.units import Claim
from harness.work import Asked, Randomisation

ON_WEIGHTS = "its map depends on the network's weights"


def check_weights(
    maps: Mapping[Asked, Claim], tasks: Mapping[Asked, str], layers: Sequence[str], limits: Limits
) -> Findings:
    """A verdict and a curve per map; `layers` from the output back to the input, none of a network without weights."""
    steps = [Randomisation(*step) for step in product(depths(len(layers)), range(N_DRAWS))]
    answers = ask_randomised(product(maps, steps), limits)
    curves = [
        fading(tasks[asked], claim, layers, {step: answers[asked, step] for step in steps})
        for asked, claim in maps.items()
        if steps
    ]
    return sum(curves, Findings(()))


def fading(task: str, trained: Claim, layers: Sequence[str], answers: Mapping[Randomisation, Answer]) -> Findings:
    """The curve of one map, with its verdict; without a curve where an answer did not come."""
    maps: dict[int, list[np.ndarray]] = {}
    for step, answer in answers.items():
        if answer.claim is None:
            reason = f"with random weights down to {layers[step.n_layers - 1]}: {answer.report.text}"
            return Findings((Verdict(ON_WEIGHTS, task, kept=False, detail=reason),))
        maps.setdefault(step.n_layers, []).append(np.array(answer.claim.values))
    known = np.array(trained.values)
    points = tuple(curve_point(trained.task.output, layers[depth - 1], known, maps[depth]) for depth in maps)
    kept = has_changed(points[-1].absolute, known, maps[max(maps)])
    detail = ("the map of the trained network is constant; " if is_constant(known) else "") + _in_short(points)
    return Findings((Verdict(ON_WEIGHTS, task, kept=kept, detail=detail),), points)


def _in_short(points: Sequence[CurvePoint]) -> str:
    correlations = " ".join(f"{point.absolute:.2f}" for point in points)
    layers = f"{points[0].layer} .. {points[-1].layer}"
    return (
        f"maps with random weights down to {layers} correlate {correlations} with that of the trained network "
        f"(the last must be below {STILL_ALIKE})"
    )
