"""Counterfactual values: what changes when a byte has a value that it had in another frame of the same game."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from methods.method import Declaration, Method
from methods.occlusions import named_addresses, on_ram, require_within
from oracle.intervention import RamWrite
from oracle.task import Task


@dataclass(frozen=True)
class Counterfactual(Method):
    """The mean of |y(do(byte := v)) - y(reference)| over `n_values` other values v that the byte has had.

    The values are drawn without replacement from the distinct ones in the reference pool, all of them where there are
    fewer: on-distribution, byte by byte. Two seeds correlate 0.5 on pong's content with 8 values, above 0.98 with 32. A
    byte that never had another value gets 0: nothing is known of it, which is not the same as no effect.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="counterfactual",
        title="Counterfactual values",
        domain="ram",
        family="counterfactual",
        access="world",
        seeded=True,
        source=(
            "values of other inputs: Goyal et al. 2019, arXiv 1904.07451; "
            "on-distribution replacement: Chang et al. 2019, arXiv 1807.08024"
        ),
    )

    n_values: int = 32

    def __post_init__(self) -> None:
        require_within("n_values", self.n_values, 1)

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        donors = {address: self._draw_values(task, address, generator) for address in named_addresses(task)}
        if not any(donors.values()):
            return on_ram(task, {})
        reference = task.rollout([])
        sizes = {
            address: sum(abs(task.rollout([RamWrite(address, value)]) - reference) for value in values) / len(values)
            for address, values in donors.items()
            if values
        }
        return on_ram(task, sizes)

    def _draw_values(self, task: Task, address: int, generator: torch.Generator) -> list[int]:
        seen = {int(value) for value in task.reference_pool[:, address].tolist()}
        others = sorted(seen - {int(task.ram[address])})
        order = torch.randperm(len(others), generator=generator).tolist()
        return [others[index] for index in order[: self.n_values]]
