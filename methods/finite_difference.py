"""Finite differences of the machine itself: small steps of every byte, up and down."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from methods.method import Declaration, Method
from methods.occlusions import named_addresses, on_ram, require_within
from oracle.intervention import RamWrite
from oracle.task import Task


@dataclass(frozen=True)
class FiniteDifference(Method):
    """The mean of |y(do(byte := value + step)) - y(reference)| over `steps`, each up and down.

    These are the elementary effects of Morris with the mean of sizes of Campolongo et al., except that differences are
    not divided by the step: they are in units of y, as the effects are. A step that leaves 0..255 is left out rather
    than wrapped: from 0 to 255 is no small step.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="finite_difference",
        title="Finite differences",
        domain="ram",
        family="perturbation",
        access="world",
        source="Morris 1991, doi 10.2307/1269043; mean size: Campolongo et al. 2007, doi 10.1016/j.envsoft.2006.10.004",
    )

    steps: tuple[int, ...] = (1, 8)

    def __post_init__(self) -> None:
        require_within("number of steps", len(self.steps), 1)
        for step in self.steps:
            # From every value at least one of the two directions stays within a byte.
            require_within("steps", step, 1, 127)

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        addresses = named_addresses(task)
        if not addresses:
            return on_ram(task, {})
        reference = task.rollout([])
        return on_ram(task, {address: self._mean_size(task, address, reference) for address in addresses})

    def _mean_size(self, task: Task, address: int, reference: float) -> float:
        present = int(task.ram[address])
        moved = [present + signed for step in self.steps for signed in (step, -step)]
        within = [value for value in moved if 0 <= value <= 255]
        return sum(abs(task.rollout([RamWrite(address, value)]) - reference) for value in within) / len(within)
