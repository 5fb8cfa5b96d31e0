"""Controls: pseudo-methods with a known score, in every table, so that a score has something to stand beside.

`oracle` claims the true effects (the ceiling), `random` draws a number per cause or pixel, `uniform` names every cause
or pixel alike (the floors). A protocol may add its own. They are computed by the judge from the answer key, never in a
worker.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from harness.manifest import SUBJECTS, MethodEntry
from oracle.movement import Movement
from oracle.protocol import AuditProtocol

Effects = Float[np.ndarray, " cause"]


@dataclass(frozen=True)
class Truth:
    """What a control knows of a task.

    Attributes:
        effect: |effect| per cause.
        movement: on networks, how each cause moves the input.
        claims: those of the protocol's own controls, by name.
    """

    effect: Effects
    movement: Movement | None = None
    claims: Mapping[str, Effects] = field(default_factory=dict)


def oracle_claim(truth: Truth, *, generator: np.random.Generator) -> Effects:
    """The effects themselves."""
    return truth.effect.copy()


def random_claim(truth: Truth, *, generator: np.random.Generator) -> Effects:
    """One uniform number in [0, 1) per cause; on networks one per pixel."""
    if truth.movement is None:
        return generator.random(len(truth.effect))
    return truth.movement.project(generator.random(truth.movement.shape), signed=False)


def uniform_claim(truth: Truth, *, generator: np.random.Generator) -> Effects:
    """1 for every cause, a claim that has vanished; on networks 1 for every pixel: how much a cause moves."""
    if truth.movement is None:
        return np.ones(len(truth.effect))
    return truth.movement.size


def redraw_claim(truth: Truth, *, generator: np.random.Generator) -> Effects:
    """The effects of other do-values of the same bytes: what the best of claims can reach."""
    return truth.claims["oracle_redraw"].copy()


def hub_claim(truth: Truth, *, generator: np.random.Generator) -> Effects:
    """How much each byte matters for other outputs: what is reached without knowing which output is explained."""
    return truth.claims["hub"].copy()


CONTROLS: dict[str, Callable[..., Effects]] = {
    "oracle": oracle_claim,
    "oracle_redraw": redraw_claim,
    "hub": hub_claim,
    "random": random_claim,
    "uniform": uniform_claim,
}
# On every board; the others belong to protocols that have them.
EVERYWHERE = ("oracle", "random", "uniform")
TITLES = {
    "oracle": "Oracle",
    "oracle_redraw": "Oracle of other do-values",
    "hub": "Mean importance for other outputs",
    "random": "Random claim",
    "uniform": "Uniform claim",
}


def control_entries(protocol: AuditProtocol) -> tuple[MethodEntry, ...]:
    """The controls of a board, ceilings first; a protocol's own know the machine only."""
    return tuple(
        MethodEntry(
            spec=name,
            label=name,
            title=TITLES[name],
            family="control",
            domain="cause",
            access="control",
            source="control",
            seeded=name == "random",
            subjects=SUBJECTS if name in EVERYWHERE else ("machine",),
        )
        for name in CONTROLS
        if name in EVERYWHERE or name in protocol.controls
    )
