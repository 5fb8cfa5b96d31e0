"""What gradient methods look at, from (..., *input) to (..., 1): stand-ins for outputs of the machine, or a network's.

A console has no gradient, so a gradient method looks at a *read*: how the output depends on RAM if everything but the
final look-up is ignored. The conventions at the corners are one-sided, as in the published audit: the derivative of |t|
at 0 is 0, max(0, z) passes the gradient at z = 0, and a clamp passes it inside its closed interval. `torch.relu` would
stop it at 0; `torch.clamp` does not.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float

from methods.template_read import TemplateRead
from oracle.network import input_dtype
from oracle.output import Output
from oracle.task import Question, SamplerGeometry

ReadKind = Literal["sampler", "hard"]

# Points whose gradients are computed together: a network's activations for all of them have to fit into memory.
LARGEST_BATCH = 64


class OneHotRead(torch.nn.Module):
    """The value of byte c: exact forward, gradient e_c."""

    def __init__(self, n_bytes: int, address: int) -> None:
        super().__init__()
        weight = torch.zeros(n_bytes, dtype=torch.float64)
        weight[address] = 1.0
        self.register_buffer("weight", weight)

    def forward(self, ram: Float[torch.Tensor, "*batch byte"]) -> Float[torch.Tensor, "*batch 1"]:
        return (ram * self.get_buffer("weight")).sum(-1, keepdim=True)


class SamplerRead(torch.nn.Module):
    """How much of one screen cell the sprite covers when its position byte draws it, bilinear, in [0, 1]."""

    def __init__(self, geometry: SamplerGeometry) -> None:
        super().__init__()
        self.address = geometry.address
        offsets = torch.tensor(geometry.offsets, dtype=torch.float64)
        row, column = geometry.cell
        first_row, first_column = geometry.origin
        self.register_buffer("row_weight", _tent(row - first_row - offsets[:, 0]))
        # The sprite's column moves with the byte: px(v) = first_column + v - value.
        self.register_buffer("column_distance", column - (first_column - geometry.value) - offsets[:, 1])

    def forward(self, ram: Float[torch.Tensor, "*batch byte"]) -> Float[torch.Tensor, "*batch 1"]:
        position = ram[..., self.address].unsqueeze(-1)
        column_weight = _tent(self.get_buffer("column_distance") - position)
        covered = (self.get_buffer("row_weight") * column_weight).sum(-1, keepdim=True)
        return torch.clamp(covered, 0.0, 1.0)


class HardRead(torch.nn.Module):
    """A read through an integer index: the same value at whole numbers, and a gradient that is exactly zero."""

    def __init__(self, smooth: torch.nn.Module) -> None:
        super().__init__()
        self.smooth = smooth

    def forward(self, ram: Float[torch.Tensor, "*batch byte"]) -> Float[torch.Tensor, "*batch output"]:
        read: torch.Tensor = self.smooth(torch.round(ram))
        return read

    @property
    def direct_jacobians(self) -> Callable[[torch.Tensor], torch.Tensor] | None:
        """Zeros, without a backward pass for each output; only where the smooth read has a way of its own, too."""
        return self._zeros if _direct(self.smooth) else None

    def _zeros(self, points: Float[torch.Tensor, "point byte"]) -> Float[torch.Tensor, "output point byte"]:
        n_outputs = self(points[:1]).shape[-1]
        return torch.zeros(n_outputs, *points.shape, dtype=torch.float64)


class EmptyRead(torch.nn.Module):
    """Where no sprite was found there is nothing to render: 0, with a gradient of 0."""

    def forward(self, ram: Float[torch.Tensor, "*batch byte"]) -> Float[torch.Tensor, "*batch 1"]:
        return (0.0 * ram.to(torch.float64)).sum(-1, keepdim=True)


def build_read(question: Question, output: Output, kind: ReadKind) -> torch.nn.Module:
    """The read of one output; `kind` is `sampler` or `hard`, which differ in the position regime only."""
    if output.ram_address is not None:
        return OneHotRead(len(question.ram), output.ram_address)
    smooth = _smooth_read(question, output)
    return HardRead(smooth) if kind == "hard" else smooth


def _smooth_read(question: Question, output: Output) -> torch.nn.Module:
    if output.template is not None:
        return TemplateRead(output.template)
    return SamplerRead(question.geometry) if question.geometry else EmptyRead()


class NetworkRead(torch.nn.Module):
    """One output of a network, from (..., *input) to (..., 1)."""

    def __init__(self, network: torch.nn.Module, column: int, input_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.network = network
        self._column = column
        self._input_shape = input_shape

    def forward(self, inputs: torch.Tensor) -> Float[torch.Tensor, "*batch 1"]:
        batch = inputs.shape[: inputs.ndim - len(self._input_shape)]
        # A copy: the network may write into what it is given.
        rows = inputs.reshape(-1, *self._input_shape).to(input_dtype(self.network)).clone()
        answer: torch.Tensor = self.network(rows)
        return answer[:, self._column].reshape(*batch, 1)


def jacobian(read: torch.nn.Module, point: Float[torch.Tensor, "*input"]) -> Float[torch.Tensor, "output *input"]:
    """d read / d input at `point`, one row per output of the read."""
    if direct := _direct(read):
        return direct(point.unsqueeze(0)).squeeze(1)
    leaf = point.detach().clone().requires_grad_()
    return torch.stack([torch.autograd.grad(value, leaf, retain_graph=True)[0] for value in read(leaf)])


def jacobians(
    read: torch.nn.Module, points: Float[torch.Tensor, "point *input"]
) -> Float[torch.Tensor, "output point *input"]:
    """The Jacobian of `read` at each of many points."""
    if direct := _direct(read):
        return direct(points)
    return torch.cat([_jacobians_of_batch(read, batch) for batch in points.split(LARGEST_BATCH)], dim=1)


def _direct(read: torch.nn.Module) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """How a read of many outputs computes its Jacobian at once, if it can."""
    found: Callable[[torch.Tensor], torch.Tensor] | None = getattr(read, "direct_jacobians", None)
    return found


def _jacobians_of_batch(
    read: torch.nn.Module, points: Float[torch.Tensor, "point *input"]
) -> Float[torch.Tensor, "output point *input"]:
    leaves = points.detach().clone().requires_grad_()
    outputs = read(leaves).unbind(-1)
    return torch.stack([torch.autograd.grad(output.sum(), leaves, retain_graph=True)[0] for output in outputs])


def input_gradient(read: torch.nn.Module, point: Float[torch.Tensor, "*input"]) -> Float[torch.Tensor, "*input"]:
    """The L1 norm, over the outputs of the read, of its Jacobian's rows at `point`: one number >= 0 per input."""
    return jacobian(read, point).abs().sum(0)


def combined(rows: Float[torch.Tensor, "output *input"], subject: str) -> Float[torch.Tensor, "*input"]:
    """One number per input: a network's only output keeps its sign; on the machine, the L1 norm over outputs."""
    return rows.squeeze(0) if subject == "network" else rows.abs().sum(0)


def _tent(distance: Float[torch.Tensor, "*shape"]) -> Float[torch.Tensor, "*shape"]:
    """The bilinear kernel max(0, 1 - |t|)."""
    return torch.clamp(1.0 - distance.abs(), min=0.0)
