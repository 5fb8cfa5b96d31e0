"""Grad-CAM on networks: where the features lie that raise the output."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from methods.method import Declaration, Method
from methods.network_cam import network_claim
from oracle.task import Task


@dataclass(frozen=True)
class GradCam(Method):
    """ReLU of a layer's maps, each weighted by its mean gradient, upsampled to the input and the same for all frames.

    `layer` is the dotted name of a module; several, with `+` between them, give their mean. Without it, the last
    convolution.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="grad_cam",
        title="Grad-CAM",
        domain="pixels",
        family="cam",
        access="read",
        source="Selvaraju et al. 2017, arXiv 1610.02391",
    )

    layer: str = ""

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        return network_claim(task, "gradcam", self.layer)
