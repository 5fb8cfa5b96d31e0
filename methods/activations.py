"""What layers of a network compute while it runs: recorded by hooks that are gone afterwards, and read as maps."""

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeGuard

import torch
from jaxtyping import Float

# Tokens of one image, or its feature maps.
Activation = Float[torch.Tensor, "row token feature"] | Float[torch.Tensor, "row channel y x"]
MapStack = Float[torch.Tensor, "row channel y x"]
Choice = torch.nn.Module | str | Sequence[torch.nn.Module | str]


@dataclass(frozen=True)
class Call:
    """One run of one module: what it gave back, a tensor or anything else."""

    module: torch.nn.Module
    output: object


@contextmanager
def recorded(modules: Iterable[torch.nn.Module]) -> Iterator[list[Call]]:
    """Inside, every run of one of `modules` is appended to the list, in the order in which they run."""
    calls: list[Call] = []

    def record(module: torch.nn.Module, _arguments: object, output: object) -> torch.Tensor | None:
        # The model goes on with a second copy: an operation in place, before or behind this one, would else overwrite
        # what is recorded, in silence.
        kept = output.clone() if isinstance(output, torch.Tensor) else output
        calls.append(Call(module, kept))
        return kept.clone() if isinstance(kept, torch.Tensor) else None

    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_hook(record).remove)
        yield calls


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Inside, dropout is off and normalisation keeps its statistics; afterwards every module has its mode again."""
    training = {module: module.training for module in model.modules()}
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module, was_training in training.items():
            module.training = was_training


def nearest(kind: str, name: str, known: Iterable[str]) -> str:
    """The text of an error about an unknown `name`, with the known ones that look like it.

    >>> nearest("camera", "frnt", ["front", "wrist"])
    "unknown camera 'frnt'; did you mean front?"
    """
    names = sorted(each for each in known if each)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"unknown {kind} {name!r}; did you mean {', '.join(close)}?"
    few = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"unknown {kind} {name!r}; expected one of: {few or 'none here'}"


def find_module(model: torch.nn.Module, wanted: torch.nn.Module | str) -> torch.nn.Module:
    """The module of `model` with this dotted name; a module itself is only checked to be a part of it.

    Raises:
        ValueError: `model` has no such module.
    """
    known: dict[str, torch.nn.Module] = dict(model.named_modules(remove_duplicate=False))
    if isinstance(wanted, torch.nn.Module):
        if all(wanted is not module for module in known.values()):
            raise ValueError(f"modules: expected parts of the model, got a foreign {type(wanted).__name__}; name one")
        return wanted
    if wanted not in known:
        raise ValueError(f"modules: {nearest('module', wanted, known)}")
    return known[wanted]


def chosen_modules(
    model: torch.nn.Module, modules: Choice | Mapping[str, Choice] | None, asked: list[str]
) -> dict[str, list[torch.nn.Module]]:
    """The modules to use by camera; none where the default is wanted.

    Raises:
        ValueError: an unknown module, an empty list, or no entry for a camera.
    """
    if modules is None:
        return {name: [] for name in asked}
    by_camera = modules if isinstance(modules, Mapping) else dict.fromkeys(asked, modules)
    for name in asked:
        if name not in by_camera:
            what = f"an entry for camera {name!r}" if name else "no entries by camera for one tensor"
            raise ValueError(f"modules: expected {what}, got them for {', '.join(by_camera)}; correct it")
    return {name: _found_modules(model, by_camera[name]) for name in asked}


def _found_modules(model: torch.nn.Module, choice: Choice) -> list[torch.nn.Module]:
    wanted = [choice] if isinstance(choice, torch.nn.Module | str) else list(choice)
    if not wanted:
        raise ValueError("modules: expected at least one, got an empty list; name one, or leave the default")
    return list(dict.fromkeys(find_module(model, each) for each in wanted))


def hooked_modules(model: torch.nn.Module, chosen: Mapping[str, list[torch.nn.Module]]) -> list[torch.nn.Module]:
    """The chosen modules, each once; every candidate of the default, which is known after the run only."""
    named = dict.fromkeys(module for modules in chosen.values() for module in modules)
    return list(named) or [module for module in model.modules() if isinstance(module, torch.nn.Conv2d)]


def name_of(model: torch.nn.Module, module: torch.nn.Module) -> str:
    """The dotted name of a module of `model`, with its class."""
    names = [name for name, each in model.named_modules() if each is module]
    return f"module {names[0]!r} ({type(module).__name__})"


def patch_grid(n_tokens: int, grid: tuple[int, int] | None) -> tuple[int, int]:
    """Rows and columns of the patches among `n_tokens`, of which the first may be a class token.

    >>> patch_grid(197, None)
    (14, 14)

    Raises:
        ValueError: `grid` has another number of patches, or there is none and the patches make no square.
    """
    if grid is not None:
        if min(grid) < 1 or math.prod(grid) not in (n_tokens, n_tokens - 1):
            raise ValueError(
                f"grid: expected rows x columns = {n_tokens} tokens, or one less with a class token, got {grid}; "
                "correct it"
            )
        return grid
    for n_patches in (n_tokens, n_tokens - 1):
        if n_patches > 0 and math.isqrt(n_patches) ** 2 == n_patches:
            return math.isqrt(n_patches), math.isqrt(n_patches)
    raise ValueError(f"grid: expected a square number of patches, got {n_tokens} tokens; give grid=(rows, columns)")


def as_maps(activation: Activation, grid: tuple[int, int] | None) -> MapStack:
    """Feature maps as they are; tokens without their class token on the patch grid, row by row.

    Raises:
        ValueError: see `patch_grid`.
    """
    if activation.ndim == 4:
        return activation
    rows, columns = patch_grid(activation.shape[1], grid)
    patches = activation[:, -rows * columns :]
    return patches.transpose(1, 2).reshape(len(patches), -1, rows, columns)


def has_map(output: object) -> TypeGuard[torch.Tensor]:
    """Whether a module's output can be read as feature maps or tokens with more than one place."""
    if not isinstance(output, torch.Tensor):
        return False
    return (output.ndim == 4 and output.shape[2:].numel() > 1) or (output.ndim == 3 and output.shape[1] > 2)


def joined(
    parts: Sequence[Float[torch.Tensor, "part_row channel y x"]], n_samples: int, n_frames: int
) -> MapStack | None:
    """The maps of one run, or of one run per frame as if time were folded; None where the runs fit neither.

    Rows are samples, or samples x frames with the frames of one sample beside each other.
    """
    if len(parts) == 1:
        return parts[0] if len(parts[0]) in (n_samples, n_samples * n_frames) else None
    if len(parts) == n_frames and all(part.shape == (n_samples, *parts[0].shape[1:]) for part in parts):
        return torch.stack(list(parts), dim=1).flatten(0, 1)
    return None


def gradient_at(
    value: Float[torch.Tensor, ""], point: Float[torch.Tensor, "*shape"]
) -> Float[torch.Tensor, "*shape"] | None:
    """d value / d point; None where `value` was not computed from `point`. No other gradient is touched."""
    if not (value.requires_grad and point.requires_grad):
        return None
    gradient: torch.Tensor | None = torch.autograd.grad(value, point, retain_graph=True, allow_unused=True)[0]
    return gradient
