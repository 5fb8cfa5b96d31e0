"""LIME: a linear surrogate of y on masks of bytes, fitted best where few bytes are occluded."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from sklearn.linear_model import LinearRegression

from methods.method import Declaration, Method
from methods.occlusions import Masks, Occlusions, draw_masks, require_within
from oracle.task import Task


@dataclass(frozen=True)
class Lime(Method):
    """The coefficients of a linear model of y on masks, weighted by exp(-distance^2 / kernel_width^2).

    The distance is the cosine distance of a mask from the one that keeps all bytes. Every mask keeps each byte with
    probability 1/2, and the first keeps all (all masks, each once, where there are no more than `n_samples`). A
    coefficient is positive where keeping the byte raises y. The audit of arXiv 2606.22447 weighted all masks alike,
    which is no local model: a mistake, not repeated here. No penalty: y is measured without noise, and masks are many
    more than bytes.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="lime",
        title="LIME",
        domain="ram",
        family="surrogate",
        access="world",
        seeded=True,
        source="Ribeiro, Singh, Guestrin 2016, arXiv 1602.04938",
    )

    n_samples: int = 2048
    # What the authors' code takes for text and images.
    kernel_width: float = 0.25
    baseline: int = 0

    def __post_init__(self) -> None:
        require_within("n_samples", self.n_samples, 1)
        require_within("baseline", self.baseline, 0, 255)
        if not self.kernel_width > 0:
            raise ValueError(f"kernel_width: expected more than 0, got {self.kernel_width}")

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        occlusions = Occlusions(task, self.baseline)
        if not occlusions.addresses:
            return occlusions.claim([])
        masks = draw_masks(len(occlusions.addresses), self.n_samples, generator)
        masks[0] = True
        weights = np.exp(-((cosine_distances(masks) / self.kernel_width) ** 2))
        surrogate = LinearRegression().fit(masks.astype(np.float64), occlusions.changes(masks), sample_weight=weights)
        return occlusions.claim(surrogate.coef_.tolist())


def cosine_distances(masks: Masks) -> Float[np.ndarray, " mask"]:
    """Of every mask from the one that keeps all: 1 - sqrt(share of bytes kept); 1 for the one that keeps none.

    >>> cosine_distances(np.array([[True] * 4, [True] + [False] * 3, [False] * 4])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(1.0 - np.sqrt(masks.mean(axis=1)))
