"""The contract of an attribution method: what it declares, what it is asked, what its answer must be."""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Literal, get_type_hints

import torch
from pydantic import TypeAdapter, ValidationError

from games.errors import VeritariError
from methods.reads import ReadKind
from oracle.task import Task

Domain = Literal["ram", "cause", "pixels"]
Subject = Literal["machine", "network"]
Family = Literal["gradient", "cam", "perturbation", "surrogate", "counterfactual", "control"]
Access = Literal["read", "world"]


class NotApplicable(VeritariError):
    """Raised by a method that has nothing to say about this kind of task; recorded as such, never as 0."""


class BadMethod(VeritariError):
    """A method that does not keep the contract: its declaration, its parameters or its answer is wrong."""


@dataclass(frozen=True)
class Declaration:
    """What a method says of itself.

    Attributes:
        name: snake case, unique.
        domain: what it returns one number for: `ram` per byte, `cause` per cause, `pixels` per number that a network is
            given. On a network, a method that uses the read only answers in pixels, whatever it does on the machine.
        family: its kind, for grouping tables.
        access: `read` if it uses the read's values and gradients only, `world` if it runs rollouts.
        source: citation.
        title: its name for people.
        read: the read it is shown in the position regime; `hard` has no gradient there.
        subjects: what it can explain; if not given, networks for `pixels`, else the machine.
        signed: whether the sign of a pixel map means something, so that the claims of pixels that move up and down
            cancel; where a method multiplies by the input, it returns the multipliers.
        seeded: whether it draws from its generator, and so is worth asking with several seeds.
    """

    name: str
    domain: Domain
    family: Family
    access: Access
    source: str
    title: str = ""
    read: ReadKind = "sampler"
    subjects: tuple[Subject, ...] = ()
    signed: bool = False
    seeded: bool = False

    def __post_init__(self) -> None:
        if not self.subjects:
            # The one way to fill in a field of a frozen dataclass.
            object.__setattr__(self, "subjects", ("network",) if self.domain == "pixels" else ("machine",))
        for field, hint in get_type_hints(Declaration).items():
            _require(f"{self.name}: {field}", hint, getattr(self, field))
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise BadMethod(f"method name: expected snake case like 'my_method', got {self.name!r}; rename it")
        if not self.source:
            raise BadMethod(f"{self.name}: source: expected a citation, got an empty text; say where it comes from")
        if self.domain == "cause" and self.access == "read" and "network" in self.subjects:
            raise BadMethod(f"{self.name}: domain: expected pixels for networks, got cause; declare access='world'")
        if self.domain == "pixels" and "machine" in self.subjects:
            raise BadMethod(f"{self.name}: domain: expected ram or cause for the machine, got pixels; it has none")

    def domain_on(self, subject: str) -> str:
        """What it returns one number for on this subject."""
        return domain_on(subject, self.domain, self.access)


def domain_on(subject: str, domain: str, access: str) -> str:
    """What a method returns one number for: on a network, one that only reads answers in pixels."""
    return "pixels" if subject == "network" and access == "read" else domain


class Method(ABC):
    """Base of all methods. A subclass is a frozen dataclass whose fields are the method's parameters."""

    declaration: ClassVar[Declaration]

    @abstractmethod
    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        """One number per RAM byte, cause or pixel; only in a signed pixel map does the sign count."""

    def claim(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        """The attribution of `task`, checked: float64, of the right shape, finite.

        Raises:
            BadMethod: anything else came back.
            NotApplicable: the method says so, or does not explain this subject.
        """
        if task.subject not in self.declaration.subjects:
            raise NotApplicable(f"it explains {' and '.join(self.declaration.subjects)}, not {task.subject}")
        return checked_attribution(self.attribute(task, generator=generator), expected_shape(self.declaration, task))

    @property
    def label(self) -> str:
        """Name with the parameters that differ from their defaults, as `--methods` takes it."""
        changed = {name: value for name, value in self.parameters().items() if value != self.defaults()[name]}
        inside = ",".join(f"{name}={value!r}" for name, value in changed.items())
        return f"{self.declaration.name}({inside})" if changed else self.declaration.name

    def parameters(self) -> dict[str, Any]:
        """The values of all parameters."""
        return {name: getattr(self, name) for name in self.defaults()}

    def defaults(self) -> dict[str, Any]:
        """The default of every parameter."""
        return {field.name: field.default for field in fields(self) if field.default is not MISSING}  # type: ignore[arg-type]

    def with_parameters(self, **values: Any) -> "Method":
        """The same method with other parameters.

        Raises:
            BadMethod: an unknown parameter, or a value of another type or out of range.
        """
        hints = get_type_hints(type(self))
        require_parameters(self.declaration.name, values, {name: hints[name] for name in self.defaults()})
        try:
            return replace(self, **values)  # type: ignore[type-var]
        except ValueError as error:
            raise BadMethod(f"{self.declaration.name}: {error}") from error


@dataclass(frozen=True)
class FunctionMethod(Method):
    """A plain function as a method; its keyword-only arguments after `generator` are the parameters."""

    declared: Declaration
    function: Callable[..., torch.Tensor]
    values: tuple[tuple[str, Any], ...] = ()

    @property
    def declaration(self) -> Declaration:  # type: ignore[override]
        return self.declared

    def attribute(self, task: Task, *, generator: torch.Generator) -> torch.Tensor:
        return self.function(task, generator=generator, **dict(self.values))

    def parameters(self) -> dict[str, Any]:
        return self.defaults() | dict(self.values)

    def defaults(self) -> dict[str, Any]:
        arguments = inspect.signature(self.function).parameters.values()
        return {
            each.name: each.default
            for each in arguments
            if each.kind is each.KEYWORD_ONLY and each.name != "generator" and each.default is not each.empty
        }

    def with_parameters(self, **values: Any) -> "FunctionMethod":
        hints = get_type_hints(self.function)
        require_parameters(self.declaration.name, values, {name: hints.get(name, Any) for name in self.defaults()})
        merged = self.parameters() | values
        # In the order of the signature and without defaults, so that equal methods are equal.
        changed = [(name, merged[name]) for name, default in self.defaults().items() if merged[name] != default]
        return replace(self, values=tuple(changed))


def method(  # noqa: PLR0913  # the fields of `Declaration`, by keyword
    name: str,
    *,
    domain: Domain,
    family: Family,
    access: Access,
    source: str,
    title: str = "",
    read: ReadKind = "sampler",
    subjects: tuple[Subject, ...] = (),
    signed: bool = False,
    seeded: bool = False,
) -> Callable[[Callable[..., torch.Tensor]], FunctionMethod]:
    """Make a method of a function `(task, *, generator) -> tensor`; see `Declaration` for the arguments.

    Raises:
        BadMethod: a declaration with a wrong name or value.
    """
    title = title or name.replace("_", " ")
    declared = Declaration(name, domain, family, access, source, title, read, subjects, signed, seeded)

    def declare(function: Callable[..., torch.Tensor]) -> FunctionMethod:
        if isinstance(function, type):
            raise BadMethod(
                f"{name}: expected a function under @method, got a class; make it a frozen dataclass below "
                "methods.method.Method instead, with `declaration` and `attribute`"
            )
        return FunctionMethod(declared, function)

    return declare


def expected_shape(declaration: Declaration, task: Task) -> tuple[int, ...]:
    """The shape of a claim on `task`."""
    shapes: dict[str, tuple[int, ...]] = {
        "ram": (len(task.ram),),
        "cause": (len(task.causes),),
        "pixels": tuple(task.point.shape),
    }
    return shapes[declaration.domain_on(task.subject)]


def checked_attribution(answer: object, expected: tuple[int, ...]) -> torch.Tensor:
    """`answer` in float64, if it has the expected shape and is finite.

    Raises:
        BadMethod: it is something else.
    """
    if not isinstance(answer, torch.Tensor):
        raise BadMethod(f"attribution: expected a torch.Tensor, got {type(answer).__name__}; return a tensor")
    if tuple(answer.shape) != expected:
        raise BadMethod(f"attribution: expected shape {expected}, got {tuple(answer.shape)}; return one number each")
    if answer.is_complex():
        raise BadMethod(f"attribution: expected real numbers, got {answer.dtype}; return a float tensor")
    # A copy: a method may return the very tensor it was given.
    values = answer.detach().to(device="cpu", dtype=torch.float64, copy=True)
    if not torch.isfinite(values).all():
        n_bad = int((~torch.isfinite(values)).sum())
        raise BadMethod(f"attribution: expected finite numbers, got {n_bad} NaN or infinite; return 0 for no claim")
    return values


def require_parameters(name: str, values: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Refuse parameters that a method does not have, and values of another type.

    Raises:
        BadMethod: naming the parameter.
    """
    for parameter, value in values.items():
        if parameter not in hints:
            known = ", ".join(hints) or "none"
            raise BadMethod(f"{name}: expected a parameter of ({known}), got {parameter!r}")
        _require(f"{name}: parameter {parameter}", hints[parameter], value)


def _require(what: str, hint: Any, value: object) -> None:
    try:
        TypeAdapter(hint).validate_python(value, strict=True)
    except ValidationError as error:
        raise BadMethod(f"{what}: {error.errors()[0]['msg']}, got {value!r}") from error
