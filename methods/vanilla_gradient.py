"""The gradient as a saliency map, through the read as it is: an integer index has no gradient."""

import torch

from methods.method import method
from methods.reads import combined, jacobian
from oracle.task import Task


@method(
    "vanilla_gradient",
    title="Vanilla gradient",
    domain="ram",
    family="gradient",
    access="read",
    read="hard",
    subjects=("machine", "network"),
    signed=True,
    source="Simonyan, Vedaldi, Zisserman 2014, arXiv 1312.6034",
)
def vanilla_gradient(task: Task, *, generator: torch.Generator) -> torch.Tensor:
    """d read / d input. On the machine it names the content byte itself, and no byte on position."""
    return combined(jacobian(task.read, task.point), task.subject)
