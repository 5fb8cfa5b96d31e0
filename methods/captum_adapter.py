"""Any attribution class of Captum as a method, without a file: `captum.attr:Name(parameter=value, ...)`.

What the constructor and what `attribute` take stands in the same parentheses; a class that wraps another one names it
as `inner`, whose parameters are given beside its own: `captum.attr:NoiseTunnel(inner=IntegratedGradients, n_steps=8)`.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import captum.attr
import numpy as np
import torch

from methods.activations import find_module
from methods.captum_calls import captum_rows, hookable, require_relu_modules
from methods.captum_classes import (
    DRAWING,
    EXAMPLES,
    REQUIRED,
    WRAPPER,
    call_parameters,
    constructor_parameters,
    family_of,
    fitting_class,
    hint_of,
    snake_case,
)
from methods.deep_lift import complete_multipliers
from methods.method import BadMethod, Declaration, Method, NotApplicable, require_parameters
from methods.reads import combined
from methods.relu_read import rectified
from methods.spec import CAPTUM
from oracle.task import Task

# Which hook ReLU modules, and would be wrong in silence where a ReLU is a function.
GUIDING = ("GuidedBackprop", "Deconvolution", "GuidedGradCam")
# Which can't tell the uses of one module apart.
HOOKING_ONCE = ("DeepLift", "Deconvolution")
NOT_WRAPPED = (WRAPPER, "LayerGradCam")


def captum_method(name: str, values: Mapping[str, Any]) -> Method:
    """The class `name` of `captum.attr` as a method with these parameters.

    Raises:
        UnknownName: there is no such class; also of `inner`.
        BadSpec: it needs what no task has.
        BadMethod: a parameter is unknown, missing or wrong.
    """
    outer = fitting_class(name)
    if name == WRAPPER:
        inner = _inner_class(values)
        defaults = {"inner": REQUIRED} | call_parameters(outer) | _parameters_of(inner)
    else:
        inner, defaults = outer, _parameters_of(outer)
    label = f"{CAPTUM}{name}"
    require_parameters(label, values, {each: hint_of(each, default) for each, default in defaults.items()})
    for each, default in defaults.items():
        if default is REQUIRED and each not in values:
            raise BadMethod(f"{label}: expected a parameter {each}, got none; add it, as {EXAMPLES[each]}")
    # Captum asserts that some numbers are no int.
    given = {each: float(value) if isinstance(defaults[each], float) else value for each, value in values.items()}
    changed = [(each, given[each]) for each in defaults if each in given and given[each] != defaults[each]]
    return CaptumMethod(outer, inner, tuple(defaults.items()), tuple(changed))


def _inner_class(values: Mapping[str, Any]) -> type:
    if not isinstance(values.get("inner"), str):
        raise BadMethod(f"{CAPTUM}{WRAPPER}: expected a parameter inner that names a class; add one, as inner=Saliency")
    inner = fitting_class(values["inner"])
    if inner.__name__ in NOT_WRAPPED:
        raise BadMethod(f"{CAPTUM}{WRAPPER}: inner: expected a class that answers per input, got {inner.__name__}")
    return inner


def _parameters_of(found: type) -> dict[str, Any]:
    return constructor_parameters(found) | call_parameters(found)


@dataclass(frozen=True)
class CaptumMethod(Method):
    """A class of Captum, of which `inner` is the one that looks at the read; they are one unless the outer wraps it.

    On networks a class that can leave out the factor of the input does (`multiply_by_inputs=False`). Where Captum draws
    from a global generator, that is seeded from ours and put back.
    """

    outer: type
    inner: type
    # Every parameter with its default, `REQUIRED` where there is none; and those that are given and differ.
    known: tuple[tuple[str, Any], ...]
    values: tuple[tuple[str, Any], ...]

    @property
    def declaration(self) -> Declaration:  # type: ignore[override]
        needs_layer = "layer" in self.defaults()
        return Declaration(
            name=f"captum_{snake_case(self.outer.__name__)}",
            title=f"Captum {self.outer.__name__}",
            domain="pixels" if needs_layer else "ram",
            family=family_of(self.inner),
            access="read",
            source=f"captum.attr.{self.outer.__name__}, Captum {version('captum')}",
            subjects=("network",) if needs_layer else ("machine", "network"),
            signed=self._is_signed(),
            seeded=not DRAWING.isdisjoint((self.outer.__name__, self.inner.__name__)),
        )

    @property
    def label(self) -> str:
        shown = [f"{name}={value if name == 'inner' else repr(value)}" for name, value in self.values]
        target = f"{CAPTUM}{self.outer.__name__}"
        return f"{target}({','.join(shown)})" if shown else target

    def parameters(self) -> dict[str, Any]:
        return self.defaults() | dict(self.values)

    def defaults(self) -> dict[str, Any]:
        return dict(self.known)

    def with_parameters(self, **values: Any) -> Method:
        return captum_method(self.outer.__name__, dict(self.values) | values)

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        self._require_applicable(task)
        hooks_once = self.inner.__name__ in HOOKING_ONCE
        twin = rectified(task.read) if self.inner is captum.attr.DeepLift else nullcontext(task.read)
        with twin as read, hookable(read, once=hooks_once), _seeded(generator):
            explainer = self._explainer(read, task)
            options = self._given(call_parameters(self.inner))
            options |= self._given(call_parameters(self.outer))

            def explain(point: torch.Tensor, output: int) -> torch.Tensor:
                return self._on_input(explainer.attribute(point, target=output, **options), point)

            rows = captum_rows(explain, read, task.point)
        # The judge takes no negative number in a map that is not signed.
        return combined(rows if self._is_signed() else rows.abs(), task.subject)

    def _is_signed(self) -> bool:
        """Slopes have a sign that counts; maps of importance do not: sizes, CAMs, and what taking a pixel away does."""
        if self.parameters().get("nt_type", "smoothgrad") != "smoothgrad":
            return False
        if self.inner is captum.attr.Saliency:
            return not self.parameters()["abs"]
        return family_of(self.inner) == "gradient" or self.inner is captum.attr.GuidedGradCam

    def _require_applicable(self, task: Task) -> None:
        name, shape = self.inner.__name__, tuple(task.point.shape)
        if task.subject == "network" and name == "InputXGradient":
            raise NotApplicable("it multiplies by the input; without that it is Saliency(abs=False)")
        if "layer" in self.defaults() and len(shape) != 3:
            raise NotApplicable(f"it explains inputs (C, H, W), not {shape}")
        window = self.parameters().get("sliding_window_shapes", shape)
        if len(window) != len(shape):
            raise NotApplicable(f"sliding_window_shapes: it has {len(window)} sides, the input {len(shape)}")
        if task.subject == "network" and name in GUIDING:
            require_relu_modules(task.read, task.point)
        if name == "DeepLift":
            complete_multipliers(task)

    def _explainer(self, read: torch.nn.Module, task: Task) -> Any:
        known = constructor_parameters(self.inner)
        options = self._given(known)
        if "layer" in options and task.network is not None:
            options["layer"] = find_module(task.network, options["layer"])
        if "multiply_by_inputs" in known and task.subject == "network":
            options["multiply_by_inputs"] = False
        explainer = self.inner(read, **options)
        return explainer if self.outer is self.inner else self.outer(explainer)

    def _given(self, known: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in self.values if name in known}

    def _on_input(self, answer: torch.Tensor, point: torch.Tensor) -> torch.Tensor:
        """The answer itself; a map of a layer upsampled to the input, the same for all channels."""
        if self.inner is not captum.attr.LayerGradCam:
            return answer
        if answer.ndim != 4:
            raise NotApplicable(f"layer: expected one with maps (1, C, H, W), got {tuple(answer.shape)}; name another")
        upsampled: torch.Tensor = captum.attr.LayerAttribution.interpolate(
            answer, tuple(point.shape[-2:]), interpolate_mode="bilinear"
        )
        return upsampled.expand_as(point)


@contextmanager
def _seeded(generator: torch.Generator) -> Iterator[None]:
    """Inside, the global generators are seeded from `generator`; afterwards they stand where they stood."""
    seed = int(torch.randint(2**32, (), generator=generator))
    # NPY002: what Captum draws from is not ours to choose.
    numpys, pythons = np.random.get_state(), random.getstate()  # noqa: NPY002
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.callback(np.random.set_state, numpys)
        stack.callback(random.setstate, pythons)
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        yield
