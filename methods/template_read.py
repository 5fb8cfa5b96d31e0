"""The sampler read of a whole sprite: how much of each pixel of its template the sprite covers, from RAM.

Source: the bilinear sampler of Jaderberg, Simonyan, Zisserman, Kavukcuoglu 2015, arXiv 1506.02025, applied to the mask
of a sprite. One-sided conventions at the corners, as in `methods.reads`.
"""

import torch
from jaxtyping import Float, Int

from oracle.template import Template

# A tent reaches its two neighbours exactly where the shift is whole; their slopes count there.
NEIGHBOURS = (-1, 0, 1)


class SpriteShift(torch.nn.Module):
    """How far RAM moves a sprite, (rows down, columns right): the sum over bytes of slope * (value - value at f*)."""

    def __init__(self, template: Template) -> None:
        super().__init__()
        self.addresses = [each.address for each in template.bytes]
        slopes = [(each.slope_y, each.slope_x) for each in template.bytes]
        self.register_buffer("slopes", torch.tensor(slopes, dtype=torch.float64).reshape(-1, 2))
        self.register_buffer("values", torch.tensor([each.value for each in template.bytes], dtype=torch.float64))

    def forward(self, ram: Float[torch.Tensor, "*batch byte"]) -> Float[torch.Tensor, "*batch 2"]:
        moved = ram[..., self.addresses] - self.get_buffer("values")
        return (moved.unsqueeze(-1) * self.get_buffer("slopes")).sum(-2)


class TemplateRead(torch.nn.Module):
    """How much of each template pixel p the shifted sprite covers, in [0, 1], in the order of the template's pixels.

    occ(p) = clamp(sum over template pixels q of tri(row_p - row_q - dy) tri(column_p - column_q - dx), 0, 1) with
    tri(t) = max(0, 1 - |t|), of the template's mask: palette indices are names, not numbers. At f* it is 1 everywhere,
    and its slope in a direction is, pixel by pixel, the neighbour on one side less the neighbour on the other, so edges
    of both sides count alike. Only pixels within 1 of p - (dy, dx) have a tent that reaches p, so 9 are looked at.
    """

    def __init__(self, template: Template) -> None:
        super().__init__()
        self.shift = SpriteShift(template)
        mask, places = mask_of(template)
        # With an empty edge, on which everything beyond the mask is looked up.
        self.register_buffer("mask", torch.nn.functional.pad(mask, (1, 1, 1, 1)))
        self.register_buffer("places", places)

    def forward(self, ram: Float[torch.Tensor, "*batch byte"]) -> Float[torch.Tensor, "*batch pixel"]:
        return self._covered(self.shift(ram).unsqueeze(-2))

    def direct_jacobians(self, points: Float[torch.Tensor, "point byte"]) -> Float[torch.Tensor, "pixel point byte"]:
        """The Jacobian at many points, in one backward pass instead of one for each pixel.

        All that a pixel depends on is the shift. Each is given a copy of its own, so that the gradient of the sum over
        pixels holds that of each; by the chain rule it is multiplied with the slopes of the bytes.
        """
        n_pixels = len(self.get_buffer("places"))
        shift = self.shift(points.detach()).unsqueeze(-2).expand(-1, n_pixels, -1)
        copies = shift.clone().requires_grad_()
        [by_shift] = torch.autograd.grad(self._covered(copies).sum(), copies)
        rows = torch.zeros(n_pixels, *points.shape, dtype=torch.float64)
        rows[..., self.shift.addresses] = (by_shift @ self.shift.get_buffer("slopes").T).transpose(0, 1)
        return rows

    def _covered(self, shift: Float[torch.Tensor, "*batch _ 2"]) -> Float[torch.Tensor, "*batch pixel"]:
        """Occupancy under one shift for all pixels, or under a shift for each."""
        nearest = torch.round(shift.detach())
        steps = torch.tensor(NEIGHBOURS, dtype=torch.float64)
        # The pixel `step` beside p - nearest is p - q - shift = nearest - shift - step away from p.
        weights = _tent((nearest - shift).unsqueeze(-1) - steps)
        by_row = (self._neighbourhoods(nearest) * weights[..., 1, :].unsqueeze(-2)).sum(-1)
        return torch.clamp((by_row * weights[..., 0, :]).sum(-1), 0.0, 1.0)

    def _neighbourhoods(self, nearest: Float[torch.Tensor, "*batch _ 2"]) -> Float[torch.Tensor, "*batch pixel 3 3"]:
        """The mask around p - nearest, for every template pixel p."""
        mask = self.get_buffer("mask")
        steps = torch.tensor(NEIGHBOURS)
        # (..., pixel, axis, step), counted in the padded mask.
        wanted = (self.get_buffer("places") + 1 - nearest.long()).unsqueeze(-1) + steps
        rows = wanted[..., 0, :].clamp(0, mask.shape[0] - 1).unsqueeze(-1)
        columns = wanted[..., 1, :].clamp(0, mask.shape[1] - 1).unsqueeze(-2)
        return mask[rows, columns]


def mask_of(template: Template) -> tuple[Float[torch.Tensor, "row column"], Int[torch.Tensor, "pixel 2"]]:
    """The template's mask, 1 on the sprite and 0 elsewhere in its box, and where each pixel stands in it."""
    places = torch.tensor([(row, column) for row, column, _ in template.pixels])
    places = places - places.min(0).values
    height, width = (places.max(0).values + 1).tolist()
    mask = torch.zeros(height, width, dtype=torch.float64)
    mask[places[:, 0], places[:, 1]] = 1.0
    return mask, places


def _tent(distance: Float[torch.Tensor, "*shape"]) -> Float[torch.Tensor, "*shape"]:
    """The bilinear kernel max(0, 1 - |t|)."""
    return torch.clamp(1.0 - distance.abs(), min=0.0)
