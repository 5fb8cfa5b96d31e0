"""Extremal perturbation: which few bytes, occluded together, change y most."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from methods.method import Declaration, Method
from methods.occlusions import Occlusions, require_within
from oracle.task import Task


@dataclass(frozen=True)
class ExtremalPerturbation(Method):
    """The share of areas 1, 2, ..., `max_area` whose extremal mask has the byte in it.

    The extremal mask of an area is the set of at most so many bytes whose occlusion changes y most; here it is grown
    greedily, one byte per area, so early bytes claim more. Among equals one is drawn. It stops growing where no
    further byte makes the change larger, and bytes that are left claim nothing: also two that act only together.
    Fong et al. find smooth masks by gradients; RAM has no neighbours and the machine no gradient.
    """

    declaration: ClassVar[Declaration] = Declaration(
        name="extremal_perturbation",
        title="Extremal perturbation",
        domain="ram",
        family="perturbation",
        access="world",
        seeded=True,
        source="Fong, Patrick, Vedaldi 2019, arXiv 1910.08485",
    )

    max_area: int = 8
    baseline: int = 0

    def __post_init__(self) -> None:
        require_within("max_area", self.max_area, 1)
        require_within("baseline", self.baseline, 0, 255)

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        occlusions = Occlusions(task, self.baseline)
        n_areas = min(self.max_area, len(occlusions.addresses))
        mask: list[int] = []
        while len(mask) < n_areas and (largest := _largest_growth(occlusions, mask)):
            mask.append(largest[int(torch.randint(len(largest), (), generator=generator))])
        shares = {address: (n_areas - place) / n_areas for place, address in enumerate(mask)}
        return occlusions.claim(shares.get(address, 0.0) for address in occlusions.addresses)


def _largest_growth(occlusions: Occlusions, mask: list[int]) -> list[int]:
    """The bytes that make the change of y largest if they join the mask; none if no byte makes it larger."""
    sizes = {
        address: abs(occlusions.change([*mask, address])) for address in occlusions.addresses if address not in mask
    }
    best = max(sizes.values())
    return [address for address, size in sizes.items() if size == best > abs(occlusions.change(mask))]
