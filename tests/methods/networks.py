"""Small networks with seeded weights, for the tests of class activation maps."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn


def seeded(seed: int, build: Callable[[], nn.Module], dtype: torch.dtype = torch.float64) -> nn.Module:
    """A frozen network in evaluation mode, its weights drawn from `seed`; the global generator stays as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build().to(dtype).eval().requires_grad_(False)


def images(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Random numbers of both signs."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


class Convolutions(nn.Module):
    """Two convolutions with a ReLU behind each, and a linear head with three outputs; frames are folded, then averaged.

    Its input is (B, 3, 12, 10) or (B, T, 3, 12, 10), its last map (5, 6, 5).
    """

    def __init__(self, *, inplace: bool = False) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.middle = nn.ReLU(inplace=inplace)
        self.last = nn.Conv2d(4, 5, 3, stride=2, padding=1)
        self.relu = nn.ReLU(inplace=inplace)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(150, 6), nn.ReLU(), nn.Linear(6, 3))

    def features(self, rows: torch.Tensor) -> torch.Tensor:
        """The map of the last convolution."""
        return self.last(self.middle(self.first(rows)))

    def rest(self, maps: torch.Tensor, n_frames: int = 1) -> torch.Tensor:
        """The outputs from that map."""
        # Weighted, so that frames matter differently.
        weights = torch.arange(1, n_frames + 1, dtype=maps.dtype)
        return (self.head(self.relu(maps)).unflatten(0, (-1, n_frames)) * weights[:, None]).mean(1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """The outputs (B, 3)."""
        if frames.ndim == 4:
            return self.rest(self.features(frames))
        return self.rest(self.features(frames.flatten(0, 1)), frames.shape[1])


class FrameByFrame(nn.Module):
    """The same as `Convolutions` on (B, T, 3, 12, 10), but it looks at one frame after the other."""

    def __init__(self, inner: Convolutions) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """The outputs (B, 3)."""
        maps = [self.inner.features(frame) for frame in frames.unbind(1)]
        return self.inner.rest(torch.stack(maps, 1).flatten(0, 1), frames.shape[1])


class Transformer(nn.Module):
    """Patches of 4 x 4, two of torch's encoder layers, and two outputs from the class token or the mean of patches."""

    def __init__(self, n_patches: int, *, has_class_token: bool) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.class_token = nn.Parameter(torch.randn(1, 1, 8)) if has_class_token else None
        self.position = nn.Parameter(torch.randn(1, n_patches + has_class_token, 8))
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2))
        self.head = nn.Linear(8, 2)

    def tokens(self, frames: torch.Tensor) -> torch.Tensor:
        """What goes into the last layer."""
        tokens = self.patches(frames).flatten(2).transpose(1, 2)
        if self.class_token is not None:
            tokens = torch.cat([self.class_token.expand(len(tokens), -1, -1), tokens], 1)
        return self.blocks[0](tokens + self.position)

    def rest(self, tokens: torch.Tensor) -> torch.Tensor:
        """The outputs from these tokens."""
        last = self.blocks[1](tokens)
        return self.head(last.mean(1) if self.class_token is None else last[:, 0])

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """The outputs (B, 2)."""
        return self.rest(self.tokens(frames))


class TwoCameras(nn.Module):
    """Two cameras, `front` and `wrist`, with an encoder each or a shared one; the outputs are multiplied."""

    def __init__(self, *, shared: bool = False) -> None:
        super().__init__()
        self.front = Convolutions()
        self.wrist = self.front if shared else Convolutions()

    def forward(self, inputs: Mapping[str, Any]) -> torch.Tensor:
        """The outputs (B, 3)."""
        return self.front(inputs["front"]) * self.wrist(inputs["wrist"]) + inputs.get("bias", 0.0)


class OneOfTwo(nn.Module):
    """A network of two cameras as one of a single camera: the other shows what it is given here."""

    def __init__(self, inner: nn.Module, name: str, others: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.inner, self.name, self.others = inner, name, others

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """The outputs (B, 3)."""
        return self.inner({**self.others, self.name: frames})


class Wrapped(nn.Module):
    """A network whose forward is the given function of the network inside and the input."""

    def __init__(self, inner: nn.Module, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.inner, self.function = inner, function

    def forward(self, frames: torch.Tensor) -> Any:
        """Whatever the function gives."""
        return self.function(self.inner, frames)


def hooks_of(model: nn.Module) -> list[str]:
    """The dotted names of modules that have a hook of any kind."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return [name for name, module in model.named_modules() if any(getattr(module, kind) for kind in kinds)]
