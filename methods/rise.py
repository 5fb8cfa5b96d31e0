"""RISE: random masks, and how y differs between those that keep a byte and those that do not."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float

from methods.method import Declaration, Method
from methods.occlusions import Occlusions, draw_masks, require_within
from oracle.task import Task


@dataclass(frozen=True)
class Rise(Method):
    """Mean y over the masks that keep a byte, minus mean y over those that occlude it.

    Every mask keeps each byte with probability 1/2 (all masks, each once, where there are no more than `n_samples`:
    the limit of many samples). The second mean centres the score; it is positive where keeping the byte raises y. The
    audit of arXiv 2606.22447 set negative scores to 0 after centring, which drops every byte that lowers y: a mistake,
    not repeated here. A byte that all or no masks keep gets 0.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="rise",
        title="RISE",
        domain="ram",
        family="perturbation",
        access="world",
        seeded=True,
        source="Petsiuk, Das, Saenko 2018, arXiv 1806.07421",
    )

    n_samples: int = 2048
    baseline: int = 0

    def __post_init__(self) -> None:
        require_within("n_samples", self.n_samples, 1)
        require_within("baseline", self.baseline, 0, 255)

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        occlusions = Occlusions(task, self.baseline)
        masks = draw_masks(len(occlusions.addresses), self.n_samples, generator)
        changes = occlusions.changes(masks)
        return occlusions.claim(difference_of_means(kept, changes) for kept in masks.T)


def difference_of_means(kept: Bool[np.ndarray, " mask"], changes: Float[np.ndarray, " mask"]) -> float:
    """Mean change where `kept`, minus mean change elsewhere; 0 where one of the two is empty.

    >>> difference_of_means(np.array([True, True, False]), np.array([1.0, 3.0, 5.0]))
    -3.0
    """
    if kept.all() or not kept.any():
        return 0.0
    return float(changes[kept].mean() - changes[~kept].mean())
