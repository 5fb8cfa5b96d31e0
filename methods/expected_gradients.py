"""Expected gradients: Integrated Gradients from many baselines, which are RAM of earlier frames."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from methods.method import Declaration, Method
from methods.occlusions import require_within
from methods.reads import combined, jacobians
from oracle.task import Task


@dataclass(frozen=True)
class ExpectedGradients(Method):
    """The mean of (ram - row) times the gradient at row + alpha (ram - row), over `n_samples` draws.

    Each draws a row of the reference pool and alpha in [0, 1), uniformly. Position goes through the sampler. Where the
    read has several outputs, their rows are averaged before the L1 norm is taken. There is no pool of what a network
    saw, so networks are not explained.

    Our own, so that rows and shares are drawn from the task's generator and nothing else is moved.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="expected_gradients",
        title="Expected gradients",
        domain="ram",
        family="gradient",
        access="read",
        seeded=True,
        source="Erion, Janizek, Sturmfels, Lundberg, Lee 2021, arXiv 1906.10670",
    )

    n_samples: int = 64

    def __post_init__(self) -> None:
        require_within("n_samples", self.n_samples, 1)

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        pool = task.reference_pool
        rows = pool[torch.randint(len(pool), (self.n_samples,), generator=generator)]
        shares = torch.rand(self.n_samples, 1, generator=generator, dtype=pool.dtype)
        ways = task.ram - rows
        return combined((ways * jacobians(task.read, rows + shares * ways)).mean(1), task.subject)
