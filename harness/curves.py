"""Deletion and insertion: real rollouts in which the causes are removed, or put back, in the order of a claim."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from harness.seeds import seed_of
from harness.units import Claim, Curves
from harness.world import World
from oracle.intervention import Cause
from oracle.output import Output
from oracle.protocol import AuditProtocol
from oracle.removals import Removals, order_of

Curve = Float[np.ndarray, " step"]


class CurveMeter:
    """Measures curves of one output. A set of removals that was run before is not run again: rollouts are exact."""

    def __init__(self, world: World, output: Output, causes: Sequence[Cause]) -> None:
        self._removals = Removals(lambda interventions: np.array([world.value(output, interventions)]), causes)
        self._n_causes = len(causes)

    def measure(
        self,
        claim: Float[np.ndarray, " cause"],
        *,
        steps: Sequence[int] | None = None,
        generator: np.random.Generator | None = None,
    ) -> tuple[Curve, Curve]:
        """Deletion D and insertion I, largest claim first; ties at random, or without a generator to the lower index.

        D[j] is y with the first steps[j] causes removed, I[j] y with all but those removed; D[0] = I[-1] is the
        reference, D[-1] = I[0] has everything removed. Without `steps` there is one for every number of causes.
        """
        order = order_of(claim, generator=generator).tolist()
        curves = self._removals.curves(order, range(self._n_causes + 1) if steps is None else steps)
        return curves[0, :, 0], curves[1, :, 0]


def measure_curves(meter: CurveMeter, claim: Claim, protocol: AuditProtocol, *, run_seed: int) -> Curves:
    """Both curves of one claim, at the steps of a protocol.

    Ties fall as task and run decide, whatever method it is: equal claims have equal curves.
    """
    values, task = np.array(claim.values), claim.task
    seed = seed_of(run_seed, "ties", protocol.name, task.subject, task.game, task.state, task.output)
    generator = np.random.default_rng(seed) if protocol.breaks_ties_at_random else None
    deletion, insertion = meter.measure(values, steps=protocol.removal_steps(len(values)), generator=generator)
    return Curves(
        task=claim.task,
        method=claim.method,
        status="ok",
        deletion=tuple(deletion.tolist()),
        insertion=tuple(insertion.tolist()),
    )
