"""The gradient as a saliency map, through the read as it is: an integer index has no gradient."""

import torch

from methods.method import method
from methods.reads import input_gradient
from oracle.task import Task


@method(
    "vanilla_gradient",
    title="Vanilla gradient",
    domain="ram",
    family="gradient",
    access="read",
    read="hard",
    source="Simonyan, Vedaldi, Zisserman 2014, arXiv 1312.6034",
)
def vanilla_gradient(task: Task, *, generator: torch.Generator) -> torch.Tensor:
    """|d read / d byte|. On content it names the byte itself; on position it is exactly zero."""
    return input_gradient(task.read, task.ram)
