"""Controls: pseudo-methods with a known score, in every table, so that a score has something to stand beside.

`oracle` claims the true effects (the ceiling), `random` draws a number per cause or pixel, `uniform` names every cause
or pixel alike (the floors). They are computed by the judge from the answer key and never run in a worker.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from harness.manifest import MethodEntry
from harness.projection import project_map

Effects = Float[np.ndarray, " cause"]


@dataclass(frozen=True)
class Truth:
    """What a control knows of a task: |effect| per cause, and on networks how each cause moves the input."""

    effect: Effects
    moved: Float[np.ndarray, "cause *input"] | None = None


def oracle_claim(truth: Truth, *, generator: np.random.Generator) -> Effects:
    """The effects themselves."""
    return truth.effect.copy()


def random_claim(truth: Truth, *, generator: np.random.Generator) -> Effects:
    """One uniform number in [0, 1) per cause; on networks one per pixel."""
    if truth.moved is None:
        return generator.random(len(truth.effect))
    return project_map(generator.random(truth.moved.shape[1:]), truth.moved, signed=False)


def uniform_claim(truth: Truth, *, generator: np.random.Generator) -> Effects:
    """1 for every cause, a claim that has vanished; on networks 1 for every pixel: how much a cause moves."""
    if truth.moved is None:
        return np.ones(len(truth.effect))
    return project_map(np.ones(truth.moved.shape[1:]), truth.moved, signed=False)


CONTROLS: dict[str, Callable[..., Effects]] = {"oracle": oracle_claim, "random": random_claim, "uniform": uniform_claim}

CONTROL_ENTRIES = tuple(
    MethodEntry(
        spec=name,
        label=name,
        title=title,
        family="control",
        domain="cause",
        access="control",
        source="control",
        seeded=name == "random",
    )
    for name, title in (("oracle", "Oracle"), ("random", "Random claim"), ("uniform", "Uniform claim"))
)
