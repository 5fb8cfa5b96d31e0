"""Grad-CAM++ on networks: Grad-CAM with each place of a map weighted for itself."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from methods.method import Declaration, Method
from methods.network_cam import network_claim
from oracle.task import Task


@dataclass(frozen=True)
class GradCamPlusPlus(Method):
    """Grad-CAM whose weights count positive gradients only, each by its share of the map; `layer` as in `grad_cam`.

    Its derivation wants maps that are not negative, so without a layer it takes what the ReLU behind the last
    convolution gives, where there is one.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="grad_cam_plus_plus",
        title="Grad-CAM++",
        domain="pixels",
        family="cam",
        access="read",
        source="Chattopadhyay et al. 2018, arXiv 1710.11063",
    )

    layer: str = ""

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        return network_claim(task, "gradcam++", self.layer)
