"""Sets of occluded bytes on the real machine: what methods that mask RAM share. Each set is run once."""

import itertools
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from jaxtyping import Bool, Float

from oracle.intervention import RamWrite
from oracle.task import Task

# One row per run: which bytes keep their value. The others are occluded.
Masks = Bool[np.ndarray, "mask byte"]


def named_addresses(task: Task) -> tuple[int, ...]:
    """The bytes that the causes of a task belong to, each once, in the order of the causes."""
    return tuple(dict.fromkeys(cause.ram_address for cause in task.causes if cause.ram_address is not None))


def on_ram(task: Task, by_address: Mapping[int, float]) -> Float[torch.Tensor, " byte"]:
    """One number per RAM byte: 0 for bytes that are not in `by_address`."""
    answer = torch.zeros(len(task.ram), dtype=torch.float64)
    for address, value in by_address.items():
        answer[address] = value
    return answer


def require_within(name: str, value: int, smallest: int, largest: int | None = None) -> None:
    """Refuse a parameter out of its range.

    Raises:
        ValueError: naming the parameter.
    """
    if value < smallest or (largest is not None and value > largest):
        wanted = f"at least {smallest}" if largest is None else f"{smallest}..{largest}"
        raise ValueError(f"{name}: expected {wanted}, got {value}")


class Occlusions:
    """y of a task with named bytes set to `baseline`.

    Bytes that hold the baseline already are no part of it: occluding them writes what is there, so whatever is said of
    them is 0 by construction.

    Attributes:
        addresses: the bytes that can be occluded; the columns of masks.
    """

    def __init__(self, task: Task, baseline: int) -> None:
        self._task = task
        self._baseline = baseline
        self._known: dict[frozenset[int], float] = {}
        self.addresses = tuple(address for address in named_addresses(task) if task.ram[address] != baseline)

    def value(self, occluded: Iterable[int]) -> float:
        """y with these addresses occluded; runs the machine only if it has not been run with this set."""
        occlusion = frozenset(occluded)
        if occlusion not in self._known:
            writes = [RamWrite(address, self._baseline) for address in sorted(occlusion)]
            self._known[occlusion] = self._task.rollout(writes)
        return self._known[occlusion]

    def change(self, occluded: Iterable[int]) -> float:
        """y with these addresses occluded, less y of the reference run."""
        return self.value(occluded) - self.value(())

    def changes(self, masks: Masks) -> Float[np.ndarray, " mask"]:
        """The change under every mask. Differences, so that a world that never changes has exactly zeros."""
        return np.array([self.change(itertools.compress(self.addresses, ~kept)) for kept in masks], dtype=np.float64)

    def claim(self, values: Iterable[float]) -> Float[torch.Tensor, " byte"]:
        """A number per column of the masks, as a number per RAM byte."""
        return on_ram(self._task, dict(zip(self.addresses, values, strict=True)))


def all_masks(n_bytes: int) -> Masks:
    """Every mask once, the one that keeps all bytes first.

    >>> all_masks(2).astype(int).tolist()
    [[1, 1], [1, 0], [0, 1], [0, 0]]
    """
    return np.array(list(itertools.product((True, False), repeat=n_bytes)), dtype=np.bool_).reshape(2**n_bytes, n_bytes)


def draw_masks(n_bytes: int, n_samples: int, generator: torch.Generator) -> Masks:
    """`n_samples` masks that keep every byte with probability 1/2; all masks, each once, where there are no more."""
    if 2**n_bytes <= n_samples:
        return all_masks(n_bytes)
    drawn = torch.rand(n_samples, n_bytes, generator=generator, dtype=torch.float64) < 0.5
    return np.asarray(drawn.numpy())
