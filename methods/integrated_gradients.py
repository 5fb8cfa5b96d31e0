"""Integrated Gradients along the straight line from zero (an empty RAM, a black screen)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from captum.attr import IntegratedGradients as CaptumIntegratedGradients
from jaxtyping import Float

from methods.method import Declaration, Method
from methods.reads import LARGEST_BATCH, combined, jacobian, jacobians
from oracle.task import Task

POINTS_AT_ONCE = 8


@dataclass(frozen=True)
class IntegratedGradients(Method):
    """The gradient averaged over `n_steps` midpoints of the path; on the machine times (ram - 0).

    On a network it returns the averaged gradient alone, the multipliers of the input: how far a cause moves the input
    is measured. Position of the machine goes through the sampler. Where the read has several outputs, the L1 norm over
    them; by our own code there, since a read of a sprite has hundreds of outputs, all of which Captum would compute for
    each of them again. Captum keeps the weights of the steps in float32: exact where `n_steps` is a power of two, and
    else one common factor off by 1e-7 at the most.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="integrated_gradients",
        title="Integrated Gradients",
        domain="ram",
        family="gradient",
        access="read",
        source="Sundararajan, Taly, Yan 2017, arXiv 1703.01365",
        subjects=("machine", "network"),
        signed=True,
    )

    n_steps: int = 64

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise ValueError(f"n_steps: expected at least 1, got {self.n_steps}")

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        multipliers = self._averaged_jacobian(task)
        return combined(multipliers if task.subject == "network" else multipliers * task.ram, task.subject)

    def _averaged_jacobian(self, task: Task) -> Float[torch.Tensor, "output *input"]:
        if task.subject == "machine":
            shares = (torch.arange(self.n_steps, dtype=torch.float64) + 0.5) / self.n_steps
            midpoints = shares.unsqueeze(-1) * task.point
            # A few at a time: a sprite can have thousands of pixels, each with 128 numbers per point.
            parts = [jacobians(task.read, few).sum(1) for few in midpoints.split(POINTS_AT_ONCE)]
            return torch.stack(parts).sum(0) / self.n_steps
        if self.n_steps == 1:
            # Captum's rules start at two steps; one midpoint is the gradient half-way.
            return jacobian(task.read, task.point / 2)
        point = task.point.unsqueeze(0)
        averaged: torch.Tensor = CaptumIntegratedGradients(task.read, multiply_by_inputs=False).attribute(
            point,
            baselines=torch.zeros_like(point),
            target=0,
            n_steps=self.n_steps,
            method="riemann_middle",
            internal_batch_size=min(self.n_steps, LARGEST_BATCH),
        )
        return averaged
