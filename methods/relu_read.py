"""Sampler reads made of ReLU modules: the same values, and every corner where a hook can find it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float

from methods.reads import SamplerRead
from methods.template_read import TemplateRead


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


class ReluTent(torch.nn.Module):
    """The bilinear kernel: |t| = relu(t) + relu(-t), max(0, z) = relu(z)."""

    def __init__(self) -> None:
        super().__init__()
        self.right, self.left, self.tent = torch.nn.ReLU(), torch.nn.ReLU(), torch.nn.ReLU()

    def forward(self, distance: Float[torch.Tensor, "*shape"]) -> Float[torch.Tensor, "*shape"]:
        tent: torch.Tensor = self.tent(1.0 - (self.right(distance) + self.left(-distance)))
        return tent


class HalvesProduct(torch.nn.Module):
    """left @ right, with DeepLIFT's slopes where the first half of a batch is the input, the second its reference.

    The slope in one factor is the mean of the other over both halves, so that the two contributions add up:
    l r - l' r' = (l - l') (r + r') / 2 + (l + l') / 2 (r - r'). A plain gradient would be off by (l - l') (r - r').
    Captum stacks input and reference this way. An odd batch, or none, has no halves, and the plain gradient.
    """

    def forward(
        self, left: Float[torch.Tensor, "*batch row inner"], right: Float[torch.Tensor, "*batch inner column"]
    ) -> Float[torch.Tensor, "*batch row column"]:
        product = left @ right
        if left.ndim == 2 or len(left) % 2:
            return product
        contributions = left @ _mean_of_halves(right) + _mean_of_halves(left) @ right
        return contributions + (product - contributions).detach()


def _mean_of_halves(factor: Float[torch.Tensor, "batch *shape"]) -> Float[torch.Tensor, "batch *shape"]:
    return (factor + factor.roll(len(factor) // 2, dims=0)).detach() / 2


class ReluTemplateRead(torch.nn.Module):
    """The twin of a `TemplateRead`: tents for all distances in the mask, not for 9 neighbours found by rounding.

    Rounding would look at other neighbours for the input than for the reference, and nothing that compares the two
    could add up. A tent depends only on a difference of rows or of columns, so there are few.
    """

    def __init__(self, read: TemplateRead) -> None:
        super().__init__()
        self.shift = read.shift
        places = read.get_buffer("places")
        # Without its empty edge.
        self.register_buffer("mask", read.get_buffer("mask")[1:-1, 1:-1])
        self.register_buffer("places", places)
        self.row_tents, self.column_tents = ReluTent(), ReluTent()
        self.product = HalvesProduct()
        self.covered, self.surplus = torch.nn.ReLU(), torch.nn.ReLU()

    def forward(self, ram: Float[torch.Tensor, "*batch byte"]) -> Float[torch.Tensor, "*batch pixel"]:
        mask, places = self.get_buffer("mask"), self.get_buffer("places")
        down, right = self.shift(ram).unsqueeze(-1).unbind(-2)
        by_column = mask @ _between_all(self.column_tents, right, mask.shape[1])
        covered = self.product(_between_all(self.row_tents, down, mask.shape[0]).mT, by_column)
        covered = covered[..., places[:, 0], places[:, 1]]
        clamped: torch.Tensor = self.covered(covered) - self.surplus(covered - 1.0)
        return clamped


def _between_all(
    tents: ReluTent, shift: Float[torch.Tensor, "*batch 1"], n_places: int
) -> Float[torch.Tensor, "*batch start end"]:
    """How much of each place a pixel covers that `shift` moves from another, of `n_places` in a line."""
    place = torch.arange(n_places)
    distances = torch.arange(1.0 - n_places, n_places, dtype=torch.float64)
    covers: torch.Tensor = tents(distances - shift)
    return covers[..., place - place.unsqueeze(-1) + n_places - 1]


def twin_of(read: torch.nn.Module) -> torch.nn.Module | None:
    """A new twin of a sampler read; None for any other module."""
    if isinstance(read, SamplerRead):
        return ReluSamplerRead(read)
    return ReluTemplateRead(read) if isinstance(read, TemplateRead) else None


@contextmanager
def rectified(read: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """Inside, `read` with the twin in place of every sampler read; afterwards it is as it was.

    The modules around a sampler read stay, so that whoever counts gradients of `read` counts these.
    """
    if (twin := twin_of(read)) is not None:
        yield twin
        return
    places = [
        (parent, name, child, twin)
        for parent in read.modules()
        for name, child in parent.named_children()
        if (twin := twin_of(child)) is not None
    ]
    try:
        for parent, name, _, twin in places:
            setattr(parent, name, twin)
        yield read
    finally:
        for parent, name, child, _ in places:
            setattr(parent, name, child)
