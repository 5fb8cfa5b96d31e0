"""Controls: pseudo-methods with a known score, in every table, so that a score has something to stand beside.

`oracle` claims the true effects (the ceiling), `random` draws a number per cause, `uniform` names every cause alike
(the floors). They are computed by the judge from the answer key and never run in a worker.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from harness.manifest import MethodEntry

Effects = Float[np.ndarray, " cause"]


def oracle_claim(effect: Effects, *, generator: np.random.Generator) -> Effects:
    """The effects themselves."""
    return effect.copy()


def random_claim(effect: Effects, *, generator: np.random.Generator) -> Effects:
    """One uniform number in [0, 1) per cause."""
    return generator.random(len(effect))


def uniform_claim(effect: Effects, *, generator: np.random.Generator) -> Effects:
    """1 for every cause: a claim that has vanished."""
    return np.ones(len(effect))


CONTROLS: dict[str, Callable[..., Effects]] = {"oracle": oracle_claim, "random": random_claim, "uniform": uniform_claim}

CONTROL_ENTRIES = tuple(
    MethodEntry(
        spec=name, label=name, title=title, family="control", domain="cause", access="control", source="control"
    )
    for name, title in (("oracle", "Oracle"), ("random", "Random claim"), ("uniform", "Uniform claim"))
)
