"""Guided backpropagation by Captum: a gradient that loses what is negative at every ReLU."""

import torch
from captum.attr import GuidedBackprop

from methods.captum_calls import captum_rows, hookable, require_relu_modules
from methods.method import method
from methods.reads import combined, jacobian
from oracle.task import Task


@method(
    "guided_backprop",
    title="Guided backpropagation",
    domain="ram",
    family="gradient",
    access="read",
    read="hard",
    subjects=("machine", "network"),
    signed=True,
    source="Springenberg, Dosovitskiy, Brox, Riedmiller 2015, arXiv 1412.6806",
)
def guided_backprop(task: Task, *, generator: torch.Generator) -> torch.Tensor:
    """d output / d input, where every ReLU passes positive gradients only.

    A network needs a `torch.nn.ReLU` module for each of its ReLUs; one without any is declined. The machine's reads
    have none at all, so there it is `vanilla_gradient`.
    """
    if task.subject == "machine":
        return combined(jacobian(task.read, task.point), task.subject)
    require_relu_modules(task.read, task.point)
    explainer = GuidedBackprop(task.read)
    with hookable(task.read):
        rows = captum_rows(lambda point, output: explainer.attribute(point, target=output), task.read, task.point)
    return combined(rows, task.subject)
