"""Kernel SHAP: Shapley values of the bytes, by regression on coalitions of bytes that keep their value.

Our own code: coalitions are drawn from the task's generator and measured by counted rollouts, and the efficiency
constraint is met exactly, where Captum's has a large weight.
"""

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float

from methods.method import Declaration, Method
from methods.occlusions import Masks, Occlusions, all_masks, require_within
from oracle.task import Task


@dataclass(frozen=True)
class KernelShap(Method):
    """The Shapley value of every byte in the game that pays y; a byte outside the coalition holds the baseline.

    Exact where there are no more than `n_samples` coalitions: each is run, and weighted by the Shapley kernel. Else
    sizes are drawn in proportion to the kernel, and the regression weights all draws alike: the kernel counts once.
    The audit of arXiv 2606.22447 drew by the kernel and weighted by it again: a mistake, not repeated here. Every
    coalition is drawn together with its complement (Covert, Lee 2021, arXiv 2012.01536). Always, the values add up to
    y(reference) - y(all occluded). Positive where the byte's value raises y.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="kernel_shap",
        title="Kernel SHAP",
        domain="ram",
        family="surrogate",
        access="world",
        seeded=True,
        source="Lundberg, Lee 2017, arXiv 1705.07874",
    )

    n_samples: int = 2048
    baseline: int = 0

    def __post_init__(self) -> None:
        # One coalition and its complement.
        require_within("n_samples", self.n_samples, 2)
        require_within("baseline", self.baseline, 0, 255)

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        occlusions = Occlusions(task, self.baseline)
        n_bytes = len(occlusions.addresses)
        if not n_bytes:
            return occlusions.claim([])
        if 2**n_bytes <= self.n_samples:
            coalitions = all_masks(n_bytes)[1:-1]
            weights = shapley_kernel(n_bytes)[coalitions.sum(axis=1) - 1]
        else:
            coalitions = draw_coalitions(n_bytes, self.n_samples // 2, generator)
            weights = np.ones(len(coalitions))
        # y of the empty coalition is the origin.
        of_none = occlusions.change(occlusions.addresses)
        values = fit_values(coalitions, occlusions.changes(coalitions) - of_none, weights, total=-of_none)
        return occlusions.claim(values.tolist())


def shapley_kernel(n_bytes: int) -> Float[np.ndarray, " size"]:
    """The weight of one coalition of 1, 2, ..., n - 1 bytes: (n - 1) / (comb(n, size) size (n - size)).

    >>> shapley_kernel(4).tolist()
    [0.25, 0.125, 0.25]
    """
    sizes = range(1, n_bytes)
    return np.array([(n_bytes - 1) / (comb(n_bytes, size) * size * (n_bytes - size)) for size in sizes])


def draw_coalitions(n_bytes: int, n_pairs: int, generator: torch.Generator) -> Masks:
    """Coalitions with the Shapley kernel as their distribution, then their complements in the same order."""
    of_size = shapley_kernel(n_bytes) * [float(comb(n_bytes, size)) for size in range(1, n_bytes)]
    sizes = 1 + torch.multinomial(torch.from_numpy(of_size), n_pairs, replacement=True, generator=generator)
    order = torch.rand(n_pairs, n_bytes, generator=generator, dtype=torch.float64).argsort(dim=1).argsort(dim=1)
    drawn = (order < sizes.unsqueeze(1)).numpy()
    return np.concatenate([drawn, ~drawn])


def fit_values(
    coalitions: Masks,
    gains: Float[np.ndarray, " mask"],
    weights: Float[np.ndarray, " mask"],
    *,
    total: float,
) -> Float[np.ndarray, " byte"]:
    """The numbers, adding up to `total`, whose sums over the coalitions are nearest to `gains`.

    With equal shares of the total as the origin, what is left adds up to 0; so does every row less its mean, and hence
    the smallest solution of the regression. Coalitions that leave something open leave it at equal shares.
    """
    share = total / coalitions.shape[1]
    rows = coalitions - coalitions.mean(axis=1, keepdims=True)
    scale = np.sqrt(weights)
    rest, *_ = np.linalg.lstsq(rows * scale[:, np.newaxis], (gains - share * coalitions.sum(axis=1)) * scale)
    return np.asarray(share + rest)
