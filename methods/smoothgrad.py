"""SmoothGrad: the gradient averaged over noisy copies of the input."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from methods.method import Declaration, Method
from methods.occlusions import require_within
from methods.reads import combined, jacobians
from oracle.task import Task


@dataclass(frozen=True)
class SmoothGrad(Method):
    """The mean gradient at `n_samples` copies of the input with Gaussian noise.

    The noise has the standard deviation `sigma`, in units of RAM, on the machine; on a network `noise_share` times the
    range of its input. Position of the machine goes through the sampler. Where the read has several outputs, the
    Jacobian is averaged before its L1 norm is taken.

    Our own, so that the noise is drawn from the task's generator and nothing else is moved.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="smoothgrad",
        title="SmoothGrad",
        domain="ram",
        family="gradient",
        access="read",
        seeded=True,
        source="Smilkov, Thorat, Kim, Viegas, Wattenberg 2017, arXiv 1706.03825",
        subjects=("machine", "network"),
        signed=True,
    )

    n_samples: int = 50
    sigma: float = 8.0
    noise_share: float = 0.15

    def __post_init__(self) -> None:
        require_within("n_samples", self.n_samples, 1)
        for name, value in (("sigma", self.sigma), ("noise_share", self.noise_share)):
            if not 0 <= value < math.inf:
                raise ValueError(f"{name}: expected a finite number of at least 0, got {value}")

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        point = task.point
        noise = torch.randn(self.n_samples, *point.shape, generator=generator, dtype=point.dtype)
        rows = jacobians(task.read, point + self._deviation(task) * noise).mean(1)
        return combined(rows, task.subject)

    def _deviation(self, task: Task) -> float:
        if task.subject == "machine":
            return self.sigma
        return self.noise_share * (task.point.max() - task.point.min()).item()
