"""The gradient through a bilinear sampler, which gives positions a slope; the published audit's saliency row."""

import torch

from methods.method import method
from methods.reads import input_gradient
from oracle.task import Task


@method(
    "sampler_gradient",
    title="Sampler gradient",
    domain="ram",
    family="gradient",
    access="read",
    read="sampler",
    source="bilinear sampler: Jaderberg et al. 2015, arXiv 1506.02025; as saliency: arXiv 2606.22447",
)
def sampler_gradient(task: Task, *, generator: torch.Generator) -> torch.Tensor:
    """|d read / d byte| where the read renders the sprite; equal to `vanilla_gradient` on content."""
    return input_gradient(task.read, task.ram)
