"""Integrated Gradients along the straight line from a RAM of zeros, by Captum."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from captum.attr import IntegratedGradients as CaptumIntegratedGradients

from methods.method import Declaration, Method
from methods.reads import jacobian
from oracle.task import Task


@dataclass(frozen=True)
class IntegratedGradients(Method):
    """(ram - 0) times the gradient averaged over `n_steps` midpoints of the path; position through the sampler.

    Where the read has several outputs, the L1 norm over them. Captum keeps the weights of the steps in float32: exact
    where `n_steps` is a power of two, and else one common factor off by 1e-7 at the most.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="integrated_gradients",
        title="Integrated Gradients",
        domain="ram",
        family="gradient",
        access="read",
        source="Sundararajan, Taly, Yan 2017, arXiv 1703.01365",
    )

    n_steps: int = 64

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise ValueError(f"n_steps: expected at least 1, got {self.n_steps}")

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        if self.n_steps == 1:
            # Captum's rules start at two steps; one midpoint is the gradient half-way.
            return (jacobian(task.read, task.ram / 2) * task.ram).abs().sum(0)
        ram = task.ram.unsqueeze(0)
        n_outputs = task.read(ram).shape[-1]
        explainer = CaptumIntegratedGradients(task.read)
        rows = [
            explainer.attribute(
                ram,
                baselines=torch.zeros_like(ram),
                target=output,
                n_steps=self.n_steps,
                method="riemann_middle",
                internal_batch_size=self.n_steps,
            )
            for output in range(n_outputs)
        ]
        return torch.cat(rows).abs().sum(0)
