"""The sampler read made of ReLU modules: the same values, and every corner where a hook can find it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float

from methods.reads import SamplerRead


class ReluSamplerRead(torch.nn.Module):
    """The twin of a `SamplerRead`, with a `torch.nn.ReLU` module for every corner.

    |t| = relu(t) + relu(-t), max(0, z) = relu(z), and clamp(x, 0, 1) = relu(x) - relu(x - 1).
    """

    def __init__(self, sampler: SamplerRead) -> None:
        super().__init__()
        self._address = sampler.address
        self.register_buffer("row_weight", sampler.get_buffer("row_weight"))
        self.register_buffer("column_distance", sampler.get_buffer("column_distance"))
        self.right, self.left, self.tent = torch.nn.ReLU(), torch.nn.ReLU(), torch.nn.ReLU()
        self.covered, self.surplus = torch.nn.ReLU(), torch.nn.ReLU()

    def forward(self, ram: Float[torch.Tensor, "*batch byte"]) -> Float[torch.Tensor, "*batch 1"]:
        distance = self.get_buffer("column_distance") - ram[..., self._address].unsqueeze(-1)
        column_weight = self.tent(1.0 - (self.right(distance) + self.left(-distance)))
        covered = (self.get_buffer("row_weight") * column_weight).sum(-1, keepdim=True)
        clamped: torch.Tensor = self.covered(covered) - self.surplus(covered - 1.0)
        return clamped


@contextmanager
def rectified(read: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """Inside, `read` with the twin in place of every sampler read; afterwards it is as it was.

    The modules around a sampler read stay, so that whoever counts gradients of `read` counts these.
    """
    if isinstance(read, SamplerRead):
        yield ReluSamplerRead(read)
        return
    places = [
        (parent, name, child)
        for parent in read.modules()
        for name, child in parent.named_children()
        if isinstance(child, SamplerRead)
    ]
    try:
        for parent, name, child in places:
            setattr(parent, name, ReluSamplerRead(child))
        yield read
    finally:
        for parent, name, child in places:
            setattr(parent, name, child)
