"""y while causes are removed, and while they are put back: what curves of a claim are made of and compared with."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from oracle.intervention import Cause, Intervention

# y of every output after some interventions.
Values = Callable[[Sequence[Intervention]], Float[np.ndarray, " output"]]


class Removals:
    """y of every output without some causes. A set of removals that was run before is not run again.

    `known` are sets of interventions that were run elsewhere, with y of every output.
    """

    def __init__(
        self,
        values: Values,
        causes: Sequence[Cause],
        known: Mapping[frozenset[Intervention], Float[np.ndarray, " output"]] | None = None,
    ) -> None:
        self._values = values
        self._causes = causes
        self._known = dict(known or {})

    def without(self, indices: Iterable[int]) -> Float[np.ndarray, " output"]:
        """y with these causes removed."""
        removals = frozenset(removal for index in indices if (removal := self._causes[index].removal) is not None)
        if removals not in self._known:
            self._known[removals] = self._values(sorted(removals, key=repr))
        return self._known[removals]

    def curves(self, order: Sequence[int], steps: Sequence[int]) -> Float[np.ndarray, "curve step output"]:
        """Deletion D and insertion I at these steps: D has the first j causes of `order` removed, I all but those."""
        deletion = [self.without(order[:step]) for step in steps]
        insertion = [self.without(order[step:]) for step in steps]
        return np.array([deletion, insertion])


def known_values(
    causes: Sequence[Cause],
    values: Float[np.ndarray, "rollout output"],
    reference: Float[np.ndarray, " output"],
) -> dict[frozenset[Intervention], Float[np.ndarray, " output"]]:
    """y of every output after each do-value of `causes`, in their order, and in the reference run; for `Removals`."""
    interventions = [intervention for cause in causes for intervention in cause.interventions]
    single = {frozenset([each]): row for each, row in zip(interventions, values, strict=True)}
    return {frozenset(): reference, **single}


def doubling_steps(n_causes: int) -> tuple[int, ...]:
    """0, 1, 2, 4, ... as far as 64, and all: the steps at which curves are measured under ram-v2.

    >>> doubling_steps(5), doubling_steps(129)
    ((0, 1, 2, 4, 5), (0, 1, 2, 4, 8, 16, 32, 64, 129))
    """
    return (0, *(2**power for power in range(7) if 2**power < n_causes), *((n_causes,) if n_causes else ()))


def order_of(claim: Float[np.ndarray, " cause"], *, generator: np.random.Generator | None) -> Int[np.ndarray, " cause"]:
    """Indices from the largest claim to the smallest; ties at random, or without a generator to the lower index."""
    if generator is None:
        return np.argsort(-claim, kind="stable")
    shuffled = generator.permutation(len(claim))
    return np.asarray(shuffled[np.argsort(-claim[shuffled], kind="stable")])


def reference_curves(
    removals: Removals,
    effects: Float[np.ndarray, "output cause"],
    steps: Sequence[int],
    *,
    n_orders: int,
    generator: np.random.Generator,
) -> dict[str, np.ndarray]:
    """The curves of the oracle, (output, curve, step), and of random orders, (output, curve, order, step).

    The random orders are the same for all outputs, since nothing about an output decides them.
    """
    orders = [generator.permutation(effects.shape[1]).tolist() for _ in range(n_orders)]
    random = np.array([removals.curves(order, steps) for order in orders])
    oracle = [removals.curves(order.tolist(), steps)[..., row] for row, order in _oracle_orders(effects, generator)]
    return {"oracle": np.array(oracle), "random": random.transpose(3, 1, 0, 2)}


def _oracle_orders(
    effects: Float[np.ndarray, "output cause"], generator: np.random.Generator
) -> Iterator[tuple[int, Int[np.ndarray, " cause"]]]:
    for row, effect in enumerate(effects):
        yield row, order_of(effect, generator=generator)
