"""Deletion and insertion: real rollouts in which the causes are removed, or put back, in the order of a claim."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from harness.scores import descending_order
from harness.units import Claim, Curves
from harness.world import World
from oracle.intervention import Cause, Intervention
from oracle.output import Output

Curve = Float[np.ndarray, " step"]


@dataclass
class CurveMeter:
    """Measures curves of one output. A set of removals that was run before is not run again: rollouts are exact."""

    world: World
    output: Output
    causes: Sequence[Cause]
    _known: dict[frozenset[Intervention], float] = field(default_factory=dict, init=False)

    def measure(self, claim: Float[np.ndarray, " cause"]) -> tuple[Curve, Curve]:
        """Deletion D and insertion I, each with n + 1 steps, largest claim first.

        D[j] is y with the first j causes removed, I[j] y with all but the first j removed; D[0] = I[n] is the
        reference, D[n] = I[0] has everything removed.
        """
        order = descending_order(claim).tolist()
        steps = range(len(order) + 1)
        deletion = np.array([self._without(order[:step]) for step in steps])
        insertion = np.array([self._without(order[step:]) for step in steps])
        return deletion, insertion

    def _without(self, indices: Iterable[int]) -> float:
        removals = frozenset(removal for index in indices if (removal := self.causes[index].removal) is not None)
        if removals not in self._known:
            self._known[removals] = self.world.value(self.output, sorted(removals, key=repr))
        return self._known[removals]


def measure_curves(meter: CurveMeter, claim: Claim) -> Curves:
    """Both curves of one claim."""
    deletion, insertion = meter.measure(np.array(claim.values))
    return Curves(
        task=claim.task,
        method=claim.method,
        status="ok",
        deletion=tuple(deletion.tolist()),
        insertion=tuple(insertion.tolist()),
    )
