"""What a network is shown, by camera, and which of its outputs is explained."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from jaxtyping import Float

from methods.activations import nearest

Inputs = torch.Tensor | Mapping[str, object]
Selector = int | Callable[[Any], torch.Tensor]
Preprocess = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class View:
    """What one camera shows: the leaf that carries the gradient, and the shape of the heatmaps.

    Attributes:
        is_only: no other camera is among the inputs.
    """

    name: str
    carrier: torch.Tensor
    n_samples: int
    n_frames: int
    size: tuple[int, int]
    is_only: bool

    @property
    def label(self) -> str:
        """The camera's name in errors."""
        return _label(self.name)


def _is_image(value: object) -> TypeGuard[torch.Tensor]:
    return isinstance(value, torch.Tensor) and value.ndim in (4, 5) and value.numel() > 0


def asked_cameras(inputs: Inputs, camera: str | Sequence[str] | None) -> list[str]:
    """The cameras to explain; one without a name where the input is a tensor.

    Raises:
        ValueError: an unknown camera, one for a tensor, none at all, or an input of another rank.
    """
    if isinstance(inputs, torch.Tensor) and camera is not None:
        raise ValueError(f"camera: expected none for one tensor, got {camera!r}; give inputs by camera's name")
    named = _by_name(inputs)
    every = [name for name, value in named.items() if _is_image(value)]
    # Where nothing is an image, the first error below says what there is.
    asked = [camera] if isinstance(camera, str) else list(camera if camera is not None else every or named)
    if not asked:
        raise ValueError(f"camera: expected at least one, got {camera if named else 'no inputs'}; name one")
    for name in asked:
        _require_image(named, name)
    return asked


def _by_name(inputs: Inputs) -> Mapping[str, object]:
    return {"": inputs} if isinstance(inputs, torch.Tensor) else inputs


def _require_image(named: Mapping[str, object], name: str) -> None:
    if name not in named:
        raise ValueError(f"camera: {nearest('camera', name, named)}")
    if not _is_image(named[name]):
        value = named[name]
        got = f"shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
        raise ValueError(f"{_label(name)}: expected (B, C, H, W) or (B, T, C, H, W), not empty, got {got}; reshape it")


def _label(name: str) -> str:
    return f"camera {name!r}" if name else "inputs"


def prepared(
    model: torch.nn.Module, inputs: Inputs, asked: list[str], preprocess: Preprocess | None
) -> tuple[dict[str, View], object]:
    """The views of the cameras that were asked for, and what the model is given.

    Raises:
        ValueError: an image has no floating point type, or lies on another device than the parameters.
    """
    named = _by_name(inputs)
    images = {name: value for name, value in named.items() if _is_image(value)}
    ready = {name: preprocess(image.clone()) if preprocess else image for name, image in images.items()}
    carriers = {name: _carrier(model, name, ready[name]) for name in asked}
    views = {name: _view(name, images[name], carriers[name], is_only=len(images) == 1) for name in asked}
    # Copies, because a model may write into what it is given, which is forbidden for a leaf.
    given = {**named, **ready, **{name: carrier.clone() for name, carrier in carriers.items()}}
    return views, given[""] if isinstance(inputs, torch.Tensor) else given


def _view(name: str, image: torch.Tensor, carrier: torch.Tensor, *, is_only: bool) -> View:
    n_frames = image.shape[1] if image.ndim == 5 else 1
    return View(name, carrier, image.shape[0], n_frames, (image.shape[-2], image.shape[-1]), is_only)


def _carrier(model: torch.nn.Module, name: str, image: torch.Tensor) -> torch.Tensor:
    """A copy of the image that carries a gradient, whatever the parameters do."""
    if not image.is_floating_point():
        raise ValueError(f"{_label(name)}: expected floating point, got {image.dtype}; convert it, or give preprocess")
    devices = {parameter.device for parameter in model.parameters()}
    if devices and image.device not in devices:
        known = ", ".join(sorted(str(device) for device in devices))
        raise ValueError(
            f"{_label(name)}: expected it on the device of the parameters ({known}), got {image.device}; move it"
        )
    return image.detach().clone().requires_grad_()


def explained_score(answer: object, output: Selector | None, view: View) -> Float[torch.Tensor, ""]:
    """The selected output of every sample, added up: samples do not mix, so each keeps its own gradient.

    Where the model folds time into the batch, of every sample and frame.

    Raises:
        ValueError: no such output, or not one number per sample.
        RuntimeError: the numbers have no gradient or are not finite.
    """
    scores = output(answer) if callable(output) else _entries(answer, output)
    if not isinstance(scores, torch.Tensor):
        raise ValueError(f"output: expected a function that returns a tensor, got {type(scores).__name__}; mend it")
    shapes = {(view.n_samples,), (view.n_samples * view.n_frames,)}
    if scores.shape not in shapes:
        wanted = " or ".join(map(str, sorted(shapes)))
        raise ValueError(f"output: expected one number per sample {wanted}, got {tuple(scores.shape)}; select it")
    if not scores.requires_grad:
        raise RuntimeError("output: expected one with a gradient, got none; no detach, argmax or no_grad in the model")
    if not torch.isfinite(scores).all():
        raise RuntimeError(f"output: expected finite numbers, got {scores.tolist()[:4]}; check model and inputs")
    return scores.sum()


def _entries(answer: object, index: int | None) -> torch.Tensor:
    """One column of an output (B, K), by default the largest of each row; (B,) is read as (B, 1)."""
    if not isinstance(answer, torch.Tensor) or answer.ndim not in (1, 2):
        got = f"shape {tuple(answer.shape)}" if isinstance(answer, torch.Tensor) else type(answer).__name__
        raise ValueError(f"output: expected a model that returns (B,) or (B, K), got {got}; give a function")
    values = answer.unsqueeze(-1) if answer.ndim == 1 else answer
    n_outputs = values.shape[1]
    if index is None:
        return values.gather(1, values.argmax(1, keepdim=True)).squeeze(1)
    if not 0 <= index < n_outputs:
        raise ValueError(f"output: expected an index from 0 to {n_outputs - 1}, got {index}; choose one of these")
    return values[:, index]
