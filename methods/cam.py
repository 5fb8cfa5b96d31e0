"""Class activation maps of any network: where in the image the features lie that raise an output.

Usable without the benchmark: a network, its input, and the kind of map are all that `class_activation_map` needs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, overload

import torch
from jaxtyping import Float, Shaped

from methods.activations import (
    Call,
    Choice,
    MapStack,
    as_maps,
    chosen_modules,
    evaluating,
    gradient_at,
    has_map,
    hooked_modules,
    joined,
    name_of,
    nearest,
    recorded,
)
from methods.cameras import Inputs, Preprocess, Selector, View, asked_cameras, explained_score, prepared

Kind = Literal["gradcam", "gradcam++"]
Images = Shaped[torch.Tensor, "batch *frame channel height width"]
Heatmaps = Float[torch.Tensor, "batch frame height width"]
Weights = Float[torch.Tensor, "row channel"]


@overload
def class_activation_map(
    model: torch.nn.Module,
    inputs: Images,
    *,
    kind: Kind = "gradcam",
    modules: Choice | None = None,
    camera: None = None,
    output: Selector | None = None,
    preprocess: Preprocess | None = None,
    grid: tuple[int, int] | None = None,
    scaled: bool = False,
) -> Heatmaps: ...


# A string is a sequence of strings as well; the first signature that fits counts.
@overload
def class_activation_map(  # type: ignore[overload-overlap]
    model: torch.nn.Module,
    inputs: Mapping[str, object],
    *,
    kind: Kind = "gradcam",
    modules: Choice | Mapping[str, Choice] | None = None,
    camera: str,
    output: Selector | None = None,
    preprocess: Preprocess | None = None,
    grid: tuple[int, int] | None = None,
    scaled: bool = False,
) -> Heatmaps: ...


@overload
def class_activation_map(
    model: torch.nn.Module,
    inputs: Mapping[str, object],
    *,
    kind: Kind = "gradcam",
    modules: Choice | Mapping[str, Choice] | None = None,
    camera: Sequence[str] | None = None,
    output: Selector | None = None,
    preprocess: Preprocess | None = None,
    grid: tuple[int, int] | None = None,
    scaled: bool = False,
) -> dict[str, Heatmaps]: ...


def class_activation_map(  # noqa: PLR0913  # options, by keyword
    model: torch.nn.Module,
    inputs: Inputs,
    *,
    kind: Kind = "gradcam",
    modules: Choice | Mapping[str, Choice] | None = None,
    camera: str | Sequence[str] | None = None,
    output: Selector | None = None,
    preprocess: Preprocess | None = None,
    grid: tuple[int, int] | None = None,
    scaled: bool = False,
) -> torch.Tensor | dict[str, torch.Tensor]:
    """Heatmaps (B, T, H, W) >= 0 over the inputs: ReLU of the weighted sum of a layer's maps, upsampled bilinearly.

    The model runs once, in evaluation mode, and is left as it was. Values are in units of output, comparable within a
    map; 0 means no claim. Half precision is summed in float32, which is then the type of the heatmaps.

    Args:
        model: any network that is given `inputs` as its one argument; its parameters may be frozen.
        inputs: (B, C, H, W), where T = 1, or (B, T, C, H, W); or such tensors by camera's name, among other entries.
        kind: `gradcam` (Selvaraju et al. 2017, arXiv 1610.02391) or `gradcam++` (Chattopadhyay et al. 2018, arXiv
            1710.11063), which is meant for maps >= 0: name the ReLU behind the convolution.
        modules: parts of the model or their dotted names, for all cameras or by camera; several give their mean.
            Default: the last `Conv2d` that runs, sees the camera and matters to the output. They give maps
            (B', C, h, w) or tokens (B', N, D), B' = B or B * T (`flatten(0, 1)`), or run once per frame. One map for
            all frames counts for each. In a ViT that reads out its class token, the patches of the last block's output
            have no gradient: name what goes into that block, its first norm if that
            comes before the attention.
        camera: which of several to explain: one gives a tensor; several, or by default all, a dictionary.
        output: the index into an output (B, K), or a function from the model's output to (B,). Default: the only
            output, or the largest of each sample.
        preprocess: applied to every camera's tensor before the model; it need not have a gradient. The heatmaps
            keep the size of `inputs`.
        grid: rows and columns of patches, where tokens do not make a square (a class token comes first).
        scaled: divide each (H, W) by its maximum, if that is not 0.

    >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1), torch.nn.Flatten(), torch.nn.Linear(4, 1))
    >>> ones = [torch.nn.init.ones_(parameter) for parameter in model.parameters()]
    >>> class_activation_map(model, torch.tensor([[[[1.0, 2.0], [3.0, -4.0]]]])).tolist()
    [[[[2.0, 3.0], [4.0, 0.0]]]]

    Raises:
        ValueError: an unknown kind, camera or module; an input of another rank, type or device; an output that is out
            of range or no number per sample; a grid that does not fit.
        RuntimeError: a module that does not run, has no map, or does not matter to the output; NaN.
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind: {nearest('kind', kind, get_args(Kind))}")
    asked = asked_cameras(inputs, camera)
    chosen = chosen_modules(model, modules, asked)
    # A caller's `inference_mode` or `no_grad` must not reach in here: this ends both.
    with torch.inference_mode(mode=False):
        views, given = prepared(model, inputs, asked, preprocess)
        with evaluating(model), recorded(hooked_modules(model, chosen)) as calls:
            answer = model(given)
        score = explained_score(answer, output, next(iter(views.values())))
        run = _Run(model, calls, score, kind, grid)
        maps = {name: _heatmaps(run, view, chosen[name]) for name, view in views.items()}
    heatmaps = {name: _scaled(each) if scaled else each for name, each in maps.items()}
    return heatmaps[asked[0]] if isinstance(inputs, torch.Tensor) or isinstance(camera, str) else heatmaps


@dataclass(frozen=True)
class _Run:
    """What one run of the model left behind, and how it is read."""

    model: torch.nn.Module
    calls: list[Call]
    score: Float[torch.Tensor, ""]
    kind: Kind
    grid: tuple[int, int] | None


def _heatmaps(run: _Run, view: View, modules: list[torch.nn.Module]) -> Heatmaps:
    """The mean over modules, each upsampled to the size of the image."""
    maps = [_module_heatmaps(run, view, module) for module in modules or [_last_convolution(run, view)]]
    return torch.stack(maps).mean(0)


def _last_convolution(run: _Run, view: View) -> torch.nn.Module:
    for call in reversed(run.calls):
        if has_map(call.output) and gradient_at(run.score, call.output) is not None and _sees(call, view):
            return call.module
    raise RuntimeError(
        f"{view.label}: expected a Conv2d that runs, has a map and matters to the output, got none; name modules"
    )


def _sees(call: Call, view: View) -> bool:
    """Whether this run of a module was computed from this camera; taken for granted where there is no other."""
    if view.is_only or not isinstance(call.output, torch.Tensor):
        return True
    return gradient_at(call.output.sum(), view.carrier) is not None


def _module_heatmaps(run: _Run, view: View, module: torch.nn.Module) -> Heatmaps:
    label = name_of(run.model, module)
    outputs = _outputs(run, view, module, label)
    activation = _joined_maps(run, view, label, outputs)
    gradient = _joined_maps(run, view, label, _gradients(run, label, outputs))
    weights = _WEIGHTS[run.kind](activation, gradient)
    heat = torch.relu((weights[:, :, None, None] * activation).sum(1))
    if not torch.isfinite(heat).all():
        raise RuntimeError(f"{label}: expected finite maps and gradients, got NaN or infinite ones; check the model")
    # One map for all frames of a sample is repeated.
    frames = heat.unflatten(0, (view.n_samples, -1)).expand(-1, view.n_frames, -1, -1)
    return torch.nn.functional.interpolate(frames, size=view.size, mode="bilinear", align_corners=False)


def _outputs(run: _Run, view: View, module: torch.nn.Module, label: str) -> list[torch.Tensor]:
    """What the module gave in each run that saw the camera."""
    calls = [call for call in run.calls if call.module is module]
    if not calls:
        raise RuntimeError(f"{label}: expected it to run with the model, but its hook captured nothing; name another")
    seeing = [call.output for call in calls if _sees(call, view)]
    if not seeing:
        raise RuntimeError(f"{label}: expected one that sees {view.label}, got one that does not; name another")
    return [_require_map(output, label) for output in seeing]


def _require_map(output: object, label: str) -> torch.Tensor:
    if not has_map(output):
        got = f"shape {tuple(output.shape)}" if isinstance(output, torch.Tensor) else type(output).__name__
        raise RuntimeError(
            f"{label}: expected maps (B, C, h, w) or tokens (B, N, D) with more than one place, got {got}; name another"
        )
    return output


def _gradients(run: _Run, label: str, outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The score's gradient at each of a module's outputs; 0 where only others matter."""
    gradients = [gradient_at(run.score, output) for output in outputs]
    if all(gradient is None for gradient in gradients):
        raise RuntimeError(f"{label}: expected one that the output depends on, got no gradient there; name another")
    pairs = zip(gradients, outputs, strict=True)
    return [torch.zeros_like(output) if gradient is None else gradient for gradient, output in pairs]


def _joined_maps(run: _Run, view: View, label: str, parts: list[torch.Tensor]) -> MapStack:
    """One row per sample, or per sample and frame, in float32 or better."""
    maps = joined([as_maps(part.detach(), run.grid) for part in parts], view.n_samples, view.n_frames)
    if maps is None:
        n_samples, n_frames = view.n_samples, view.n_frames
        raise RuntimeError(
            f"{label}: expected one run over {n_samples} or {n_samples * n_frames} rows, or {n_frames} (one per frame) "
            f"over {n_samples}, got runs over {[len(part) for part in parts]}; name another"
        )
    return maps.to(torch.promote_types(maps.dtype, torch.float32))


def _grad_cam_weights(activation: MapStack, gradient: MapStack) -> Weights:
    """The gradient averaged over the map."""
    return gradient.mean((2, 3))


def _grad_cam_plus_plus_weights(activation: MapStack, gradient: MapStack) -> Weights:
    """Sum over the map of alpha * ReLU(g), where alpha = g^2 / (2 g^2 + sum(A) g^3).

    This alpha is the paper's for Y = exp(S), with the second and third derivative of the score S itself taken as 0, as
    they are behind ReLUs: the n-th derivative of Y is then exp(S) g^n. The factor exp(S) that is left in the weight is
    dropped: it is the same all over a map, and overflows for scores above 88.
    """
    # Divided by g^2: no 0/0 where g = 0, which has no weight anyway, and no underflow of g^3.
    denominator = 2 + gradient * activation.sum((2, 3), keepdim=True)
    alpha = torch.where(denominator == 0, 0, 1 / denominator)
    return (alpha * torch.relu(gradient)).sum((2, 3))


_WEIGHTS: dict[Kind, Callable[[MapStack, MapStack], Weights]] = {
    "gradcam": _grad_cam_weights,
    "gradcam++": _grad_cam_plus_plus_weights,
}


def _scaled(heatmaps: Heatmaps) -> Heatmaps:
    """Each map divided by its maximum; a map of zeros stays."""
    largest = heatmaps.amax((2, 3), keepdim=True)
    return heatmaps / torch.where(largest > 0, largest, 1)
