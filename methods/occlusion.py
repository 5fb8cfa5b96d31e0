"""Occlusion: what changes when one byte is taken away, measured on the machine."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from methods.method import Declaration, Method
from methods.occlusions import Occlusions, require_within
from oracle.task import Task


@dataclass(frozen=True)
class Occlusion(Method):
    """y(do(byte := baseline)) - y(reference) of every named byte: with baseline 0, the effect of removing it."""

    declaration: ClassVar[Declaration] = Declaration(
        name="occlusion",
        title="Occlusion",
        domain="ram",
        family="perturbation",
        access="world",
        source="Zeiler, Fergus 2014, arXiv 1311.2901",
    )

    baseline: int = 0

    def __post_init__(self) -> None:
        require_within("baseline", self.baseline, 0, 255)

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        occlusions = Occlusions(task, self.baseline)
        return occlusions.claim(occlusions.change([address]) for address in occlusions.addresses)
