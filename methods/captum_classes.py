"""What Captum's classes want: which of them explain one input of one function, and with which parameters."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import captum.attr

from games.errors import unknown_name
from methods.method import Family
from methods.spec import CAPTUM, BadSpec

# A parameter without a default.
REQUIRED = inspect.Parameter.empty
# What the adapter gives itself.
GIVEN = frozenset({"self", "inputs", "target", "model", "forward_func", "attribution_method"})
# What is no plain value, or would make another thing of the answer.
HIDDEN = frozenset(
    {
        *("additional_forward_args", "feature_mask", "device_ids", "grad_kwargs", "kwargs", "show_progress"),
        *("custom_attribution_func", "interpretable_model", "similarity_func", "perturb_func", "perm_func"),
        *("return_convergence_delta", "return_input_shape", "attr_dim_summation"),
        "draw_baseline_from_distrib",
    }
)
# Required ones that a plain value can give.
PLAIN: Mapping[str, Any] = {"layer": str, "sliding_window_shapes": tuple[int, ...]}
# A value of each, for who has given none.
EXAMPLES: Mapping[str, str] = {
    "layer": "layer='features.4'",
    "sliding_window_shapes": "sliding_window_shapes=(4,) on the machine, (2,8,8) on networks",
}
MISFITS = {
    "FeaturePermutation": "permutes a batch, and a task is one input",
    "LRP": "has no rules for the reads of the machine, and multiplies by the input on networks",
    "ShapleyValues": "asks 2 ** n times about n numbers; take ShapleyValueSampling",
    "InternalInfluence": "answers with numbers of a layer",
}
FITTING_LAYERS = ("LayerGradCam",)
WRAPPER = "NoiseTunnel"
# Those that draw from torch's or numpy's global generators.
DRAWING = frozenset({WRAPPER, "KernelShap", "Lime", "ShapleyValueSampling"})


def snake_case(name: str) -> str:
    """The name of a class as that of a method.

    >>> snake_case("InputXGradient"), snake_case("LRP"), snake_case("KernelShap")
    ('input_x_gradient', 'lrp', 'kernel_shap')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def fitting_class(name: str) -> type:
    """The class of `captum.attr` of this name, if it explains one input of one function.

    Raises:
        UnknownName: there is no such class.
        BadSpec: it needs something that a task does not have.
    """
    known: dict[str, type] = {each: found for each, found in vars(captum.attr).items() if _is_attribution(found)}
    if name not in known:
        raise unknown_name("class of captum.attr", name, [each for each in known if not _misfit(each, known[each])])
    if reason := _misfit(name, known[name]):
        raise BadSpec(f"{CAPTUM}{name}: expected a class that explains one input, got one that {reason}")
    return known[name]


def _is_attribution(found: object) -> bool:
    # The bases have None in place of `attribute`.
    is_one = isinstance(found, type) and issubclass(found, captum.attr.Attribution)
    return is_one and callable(getattr(found, "attribute", None))


def _misfit(name: str, found: type) -> str:
    """Why `found` can't be put to a task; nothing if it can."""
    if name in MISFITS:
        return MISFITS[name]
    if name.startswith("Layer") and name not in FITTING_LAYERS:
        return "answers with numbers of a layer"
    required = [
        parameter
        for function in (found.__init__, found.attribute)  # type: ignore[attr-defined,misc]
        for parameter, default in _arguments(function).items()
        if default is REQUIRED and parameter not in GIVEN | HIDDEN | set(PLAIN)
    ]
    if "baselines" in required:
        return "needs a sample of baselines"
    return f"needs {', '.join(required)}" if required else ""


def constructor_parameters(found: type) -> dict[str, Any]:
    """The parameters of a class, with their defaults, that are given when it is built."""
    return _settable(found.__init__)  # type: ignore[misc]


def call_parameters(found: type) -> dict[str, Any]:
    """The parameters of a class, with their defaults, that are given when it explains."""
    return _settable(found.attribute)  # type: ignore[attr-defined]


def hint_of(name: str, default: object) -> Any:
    """The type that the value of a parameter must have."""
    if default is REQUIRED:
        return PLAIN.get(name, str)
    if name == "baselines":
        return float | None
    return Any if default is None else type(default)


def family_of(found: type) -> Family:
    """The family of methods that a class belongs to."""
    if found.__name__.endswith("GradCam"):
        return "cam"
    if issubclass(found, captum.attr.LimeBase):
        return "surrogate"
    return "perturbation" if issubclass(found, captum.attr.PerturbationAttribution) else "gradient"


def _settable(function: Callable[..., object]) -> dict[str, Any]:
    return {name: default for name, default in _arguments(function).items() if name not in GIVEN | HIDDEN}


def _arguments(function: Callable[..., object]) -> dict[str, Any]:
    return {name: each.default for name, each in inspect.signature(function).parameters.items()}
