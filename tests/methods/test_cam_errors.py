"""What class activation maps refuse, with which text, and that nothing stays behind on the network."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import nn

from methods.cam import class_activation_map
from tests.methods.networks import Convolutions, Transformer, TwoCameras, Wrapped, hooks_of, images, seeded

INPUTS = images(1, 2, 3, 12, 10)
FRAMES = images(1, 2, 3, 3, 12, 10)
CAMERAS = {"front": INPUTS, "wrist": INPUTS}


def model() -> Convolutions:
    """The network of most cases."""
    return seeded(0, Convolutions)


def wrapped(function: Callable[[Any, Any], Any]) -> Callable[[], nn.Module]:
    """Makes the same network with another forward."""
    return lambda: Wrapped(model(), function)


@dataclass(frozen=True)
class Refused:
    """A call that fails: the network, the input, the options, the error and its text."""

    text: str
    error: type[Exception] = ValueError
    build: Callable[[], nn.Module] = model
    inputs: Any = field(default_factory=lambda: INPUTS)
    options: dict[str, Any] = field(default_factory=dict)


def without_gradient(inner, frames):
    """A forward that switches gradients off, as some frozen networks do."""
    with torch.no_grad():
        return inner(frames)


def beside(inner, frames):
    """A forward that runs the last convolution, whose map then does not matter."""
    inner.last(inner.first(frames))
    return inner.first(frames).sum((2, 3))


def root_at_zero(inner, frames):
    """A forward whose output is 0 and whose gradient is infinite."""
    return torch.sqrt(0 * inner(frames))


REFUSED = {
    "unknown kind": Refused("kind: unknown kind 'grad_cam'; did you mean gradcam", options={"kind": "grad_cam"}),
    "strange kind": Refused("unknown kind 'x'; expected one of: gradcam, gradcam\\+\\+", options={"kind": "x"}),
    "unknown camera": Refused("unknown camera 'frnt'; did you mean front", inputs=CAMERAS, options={"camera": "frnt"}),
    "camera of a tensor": Refused("expected none for one tensor, got 'front'", options={"camera": "front"}),
    "no camera": Refused("camera: expected at least one, got \\[\\]", inputs=CAMERAS, options={"camera": []}),
    "no inputs": Refused("camera: expected at least one, got no inputs", inputs={}),
    "camera of another rank": Refused(
        r"camera 'state': expected \(B, C, H, W\) or .*, got shape \(2, 7\)",
        inputs={**CAMERAS, "state": torch.ones(2, 7)},
        options={"camera": "state"},
    ),
    "no image": Refused("camera 'text': expected .*, got list", inputs={"text": ["left"]}),
    "rank 3": Refused(r"inputs: expected \(B, C, H, W\) .*, got shape \(3, 12, 10\)", inputs=INPUTS[0]),
    "rank 6": Refused(r"got shape \(1, 2, 3, 3, 12, 10\)", inputs=FRAMES[None]),
    "empty": Refused(r"not empty, got shape \(0, 3, 12, 10\)", inputs=INPUTS[:0]),
    "integers": Refused("expected floating point, got torch.uint8; convert it", inputs=INPUTS.to(torch.uint8)),
    "another device": Refused(r"device of the parameters \(cpu\), got meta; move it", inputs=INPUTS.to("meta")),
    "network elsewhere": Refused(
        r"device of the parameters \(meta\), got cpu; move it", build=lambda: Convolutions().to("meta")
    ),
    "unknown module": Refused("unknown module 'frist'; did you mean first", options={"modules": "frist"}),
    "foreign module": Refused("parts of the model, got a foreign Conv2d", options={"modules": nn.Conv2d(3, 3, 1)}),
    "no module": Refused("modules: expected at least one, got an empty list", options={"modules": []}),
    "modules of no camera": Refused(
        "an entry for camera 'wrist', got them for front",
        build=TwoCameras,
        inputs=CAMERAS,
        options={"modules": {"front": "front.last"}},
    ),
    "modules by camera for a tensor": Refused(
        "no entries by camera for one tensor, got them for front", options={"modules": {"front": "last"}}
    ),
    "output too large": Refused("expected an index from 0 to 2, got 3", options={"output": 3}),
    "output negative": Refused("expected an index from 0 to 2, got -1", options={"output": -1}),
    "output of rank 3": Refused(
        r"returns \(B,\) or \(B, K\), got shape \(2, 3, 1\); give a function",
        build=wrapped(lambda inner, frames: inner(frames)[..., None]),
    ),
    "output without shape": Refused(
        "got tuple; give a function", build=wrapped(lambda inner, frames: (inner(frames), None))
    ),
    "selected too much": Refused(
        r"one number per sample \(2,\), got \(2, 3\); select it", options={"output": lambda answer: answer}
    ),
    "selected for another batch": Refused(
        r"one number per sample \(2,\) or \(6,\), got \(1,\)",
        inputs=FRAMES,
        options={"output": lambda answer: answer[0, :1]},
    ),
    "selected a number": Refused(
        "a function that returns a tensor, got float", options={"output": lambda answer: answer.sum().item()}
    ),
    "wrong grid": Refused(
        r"grid: expected rows x columns = 10 tokens, or one less with a class token, got \(2, 4\)",
        build=lambda: seeded(1, lambda: Transformer(9, has_class_token=True)),
        inputs=images(2, 2, 3, 12, 12),
        options={"modules": "blocks.0", "grid": (2, 4)},
    ),
    "negative grid": Refused(
        r"got \(-3, -3\)",
        build=lambda: seeded(1, lambda: Transformer(9, has_class_token=False)),
        inputs=images(2, 2, 3, 12, 12),
        options={"modules": "blocks.0", "grid": (-3, -3)},
    ),
    "no square": Refused(
        r"expected a square number of patches, got 6 tokens; give grid=\(rows, columns\)",
        build=lambda: seeded(1, lambda: Transformer(6, has_class_token=False)),
        inputs=images(2, 2, 3, 8, 12),
        options={"modules": "blocks.0"},
    ),
    "no map": Refused(
        r"module 'head.1' \(Linear\): expected maps .*, got shape \(2, 6\)", RuntimeError, options={"modules": "head.1"}
    ),
    "tuple": Refused(
        "module 'blocks.1.self_attn' .* got tuple",
        RuntimeError,
        build=lambda: seeded(1, lambda: Transformer(9, has_class_token=False)),
        inputs=images(2, 2, 3, 12, 12),
        options={"modules": "blocks.1.self_attn"},
    ),
    "one place": Refused(
        r"with more than one place, got shape \(2, 3, 1, 1\)",
        RuntimeError,
        build=lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2)).double(),
        options={"modules": "0"},
    ),
    "does not run": Refused(
        r"module 'inner.last' \(Conv2d\): expected it to run with the model, but its hook captured nothing",
        RuntimeError,
        build=wrapped(lambda inner, frames: inner.first(frames).sum((2, 3))),
        options={"modules": "inner.last"},
    ),
    "no convolution": Refused(
        "inputs: expected a Conv2d that runs, has a map and matters to the output, got none",
        RuntimeError,
        build=lambda: nn.Sequential(nn.Flatten(), nn.Linear(360, 2)).double(),
    ),
    "does not matter": Refused(
        "module 'inner.last' .* one that the output depends on, got no gradient",
        RuntimeError,
        build=wrapped(beside),
        options={"modules": "inner.last"},
    ),
    "sees another camera": Refused(
        "module 'wrist.last' .* expected one that sees camera 'front', got one that does not",
        RuntimeError,
        build=lambda: TwoCameras().double(),
        inputs=CAMERAS,
        options={"camera": "front", "modules": "wrist.last"},
    ),
    "several runs": Refused(
        r"expected one run over 2 or 2 rows, or 1 \(one per frame\) over 2, got runs over \[2, 2\]",
        RuntimeError,
        build=wrapped(lambda inner, frames: inner(frames) + inner(frames * 2)),
    ),
    "another batch": Refused(
        r"got runs over \[4\]", RuntimeError, build=wrapped(lambda inner, frames: inner(frames.repeat(2, 1, 1, 1))[:2])
    ),
    "no gradient": Refused(
        "output: expected one with a gradient, got none", RuntimeError, build=wrapped(without_gradient)
    ),
    "NaN output": Refused(
        r"output: expected finite numbers, got \[nan, nan\]",
        RuntimeError,
        build=wrapped(lambda inner, frames: inner(frames) * torch.nan),
    ),
    "NaN input": Refused("expected finite numbers, got", RuntimeError, inputs=INPUTS * torch.nan),
    "NaN gradient": Refused("expected finite maps and gradients", RuntimeError, build=wrapped(root_at_zero)),
    "NaN map": Refused(
        "module 'inner.last' .* expected finite maps and gradients, got NaN",
        RuntimeError,
        build=wrapped(lambda inner, frames: inner.last(inner.first(frames / 0)).nan_to_num(0.0).sum((2, 3))),
    ),
    "half input": Refused("Half|half", RuntimeError, inputs=INPUTS.half()),
    "error inside": Refused(
        "shapes cannot be multiplied", RuntimeError, build=wrapped(lambda inner, frames: inner(frames[..., 2:]))
    ),
}


@pytest.mark.usefixtures("no_type_checks")
@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(case):
    """What cannot be explained is refused with a text that says why, and no hook and no other mode stays behind."""
    network = case.build()
    network.train()
    with pytest.raises(case.error, match=case.text):
        class_activation_map(network, case.inputs, **case.options)
    assert [] == hooks_of(network)
    assert all(module.training for module in network.modules())
    assert all(parameter.grad is None for parameter in network.parameters())
