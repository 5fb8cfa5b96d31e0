"""The contract: declarations, parameters, and answers that are refused."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest
import torch

from methods.integrated_gradients import IntegratedGradients
from methods.method import (
    BadMethod,
    Declaration,
    Method,
    NotApplicable,
    checked_attribution,
    expected_shape,
    method,
    require_parameters,
)
from tests.methods.tasks import CASES, CONTENT, NETWORK_CASES, Case, draw_task, generator_of

GOOD = {"name": "mine", "domain": "ram", "family": "gradient", "access": "read", "source": "a paper"}


@dataclass(frozen=True)
class Blur(Method):
    """A method of a class, with parameters of several types."""

    declaration: ClassVar[Declaration] = Declaration(**GOOD | {"name": "blur"})

    sigma: float = 1.0
    mode: Literal["fast", "slow"] = "fast"
    n_steps: int = 8

    def __post_init__(self) -> None:
        if self.sigma <= 0:
            raise ValueError(f"sigma: expected above 0, got {self.sigma}")

    def attribute(self, task, *, generator):
        """RAM times sigma."""
        return task.ram * self.sigma


@dataclass(frozen=True)
class Answering(Method):
    """A method that returns whatever it is given."""

    declaration: ClassVar[Declaration] = Declaration(**GOOD | {"name": "answering"})

    answer: object = None

    def attribute(self, task, *, generator):
        """The given answer."""
        return self.answer


@dataclass(frozen=True)
class Silent(Method):
    """A method that has nothing to say."""

    declaration: ClassVar[Declaration] = Declaration(**GOOD | {"name": "silent"})

    def attribute(self, task, *, generator):
        """A refusal."""
        raise NotApplicable("silent: expected a network, got the machine; ask another method")


@method("scaled", domain="ram", family="gradient", access="read", source="a paper")
def scaled(task, *, generator, factor: float = 2.0, tag: str = "plain", shift=0):
    """RAM times a factor plus a shift."""
    return task.ram * factor + shift


@method("bare", domain="cause", family="control", access="world", source="a paper", title="Bare one", read="hard")
def bare(task, weight: float = 3.0, *, generator):
    """One number per cause; `weight` is no parameter, since it is not keyword-only."""
    return torch.full((len(task.causes),), weight)


def claim(some_method, case=CASES[0]):
    """What the method claims of the case."""
    return some_method.claim(draw_task(case, some_method), generator=generator_of(0))


# --- declarations ---


@pytest.mark.parametrize("name", ["", "My_method", "my-method", "my method", "1st", "my.method", "m(a=1)", "a:b"])
def test_name_is_snake_case(name):
    """A name that is no snake case is refused, with an example of one that is."""
    with pytest.raises(BadMethod, match=r"method name: expected snake case like 'my_method', got .*; rename it"):
        Declaration(**GOOD | {"name": name})


@pytest.mark.usefixtures("no_type_checks")
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("domain", "bytes", "mine: domain: Input should be 'ram', 'cause' or 'pixels', got 'bytes'"),
        ("family", "magic", "mine: family: Input should be 'gradient', .* or 'control', got 'magic'"),
        ("access", "all", "mine: access: Input should be 'read' or 'world', got 'all'"),
        ("read", "soft", "mine: read: Input should be 'sampler' or 'hard', got 'soft'"),
        ("source", 2014, "mine: source: Input should be a valid string, got 2014"),
        ("title", None, "mine: title: Input should be a valid string, got None"),
        ("subjects", "machine", "mine: subjects: Input should be a valid tuple, got 'machine'"),
    ],
)
def test_declared_values(field, value, message):
    """A declared value outside its choices is refused, with the method, the field, the choices and the value."""
    with pytest.raises(BadMethod, match=message):
        Declaration(**GOOD | {field: value})


def test_declaration_defaults():
    """A declaration without more is one for the machine that is shown the sampler read."""
    declaration = Declaration(**GOOD)
    assert ("machine",) == declaration.subjects
    assert "sampler" == declaration.read


def test_decorator_declares():
    """The decorator declares what it is told, and makes the title from the name if it is told none."""
    assert Declaration("scaled", "ram", "gradient", "read", "a paper", "scaled", "sampler") == scaled.declaration
    assert Declaration("bare", "cause", "control", "world", "a paper", "Bare one", "hard") == bare.declaration
    decorate = method("two_words", domain="ram", family="gradient", access="read", source="a paper")
    assert "two words" == decorate(lambda task, *, generator: task.ram).declaration.title


# --- parameters ---


def test_class_parameters():
    """The parameters of a class are its fields; changed ones are in the label, others are not."""
    assert {"sigma": 1.0, "mode": "fast", "n_steps": 8} == Blur().parameters()
    changed = Blur().with_parameters(sigma=0.5, mode="slow")
    assert Blur(0.5, "slow", 8) == changed
    assert "blur(sigma=0.5,mode='slow')" == changed.label
    assert "blur" == Blur().with_parameters(sigma=1.0).label


def test_function_parameters():
    """The parameters of a function are its keyword-only arguments after `generator`, typed or not."""
    assert {"factor": 2.0, "tag": "plain", "shift": 0} == scaled.parameters()
    assert {} == bare.parameters()
    changed = scaled.with_parameters(factor=0.5, shift=1)
    assert {"factor": 0.5, "tag": "plain", "shift": 1} == changed.parameters()
    assert "scaled(factor=0.5,shift=1)" == changed.label
    assert "scaled" == scaled.label


def test_parameters_reach_the_method():
    """A changed parameter changes the claim, of a class and of a function; the original keeps its own."""
    ram = draw_task(CASES[0], scaled).ram
    assert (ram * 0.5).tolist() == claim(Blur().with_parameters(sigma=0.5)).tolist()
    assert (ram * 0.5 + 1).tolist() == claim(scaled.with_parameters(factor=0.5, shift=1)).tolist()
    assert (ram * 2.0).tolist() == claim(scaled).tolist()


@pytest.mark.parametrize("some_method", [Blur(), scaled], ids=["class", "function"])
def test_parameters_add_up(some_method):
    """A second change of parameters keeps the first, for a class and for a function."""
    first, _, second = some_method.defaults()
    twice = some_method.with_parameters(**{first: 0.5}).with_parameters(**{second: 3})
    # Both changes, the third parameter as it was.
    assert some_method.defaults() | {first: 0.5, second: 3} == twice.parameters()


@pytest.mark.parametrize(
    ("some_method", "values", "message"),
    [
        (Blur(), {"gamma": 1}, r"blur: expected a parameter of \(sigma, mode, n_steps\), got 'gamma'"),
        (Blur(), {"declaration": 1}, r"blur: expected a parameter of \(sigma, mode, n_steps\), got 'declaration'"),
        (scaled, {"gamma": 1}, r"scaled: expected a parameter of \(factor, tag, shift\), got 'gamma'"),
        (scaled, {"generator": 1}, r"scaled: expected a parameter of \(factor, tag, shift\), got 'generator'"),
        (bare, {"weight": 1.0}, r"bare: expected a parameter of \(none\), got 'weight'"),
    ],
)
def test_unknown_parameter(some_method, values, message):
    """A parameter that the method lacks is refused, with those it has."""
    with pytest.raises(BadMethod, match=message):
        some_method.with_parameters(**values)


@pytest.mark.parametrize(
    ("some_method", "values", "message"),
    [
        (Blur(), {"sigma": "wide"}, "blur: parameter sigma: Input should be a valid number, got 'wide'"),
        (Blur(), {"mode": "medium"}, "blur: parameter mode: Input should be 'fast' or 'slow', got 'medium'"),
        (Blur(), {"n_steps": 2.5}, "blur: parameter n_steps: Input should be a valid integer, got 2.5"),
        (Blur(), {"n_steps": True}, "blur: parameter n_steps: Input should be a valid integer, got True"),
        (Blur(), {"n_steps": "8"}, "blur: parameter n_steps: Input should be a valid integer, got '8'"),
        (scaled, {"factor": None}, "scaled: parameter factor: Input should be a valid number, got None"),
        (scaled, {"tag": 1}, "scaled: parameter tag: Input should be a valid string, got 1"),
    ],
)
def test_parameter_of_another_type(some_method, values, message):
    """A parameter of another type is refused and never converted."""
    with pytest.raises(BadMethod, match=message):
        some_method.with_parameters(**values)


def test_parameter_out_of_range():
    """What a class says against a value comes back as an error of its method."""
    with pytest.raises(BadMethod, match=r"blur: sigma: expected above 0, got -1\.0"):
        Blur().with_parameters(sigma=-1.0)
    with pytest.raises(BadMethod, match="integrated_gradients: n_steps: expected at least 1, got 0"):
        IntegratedGradients().with_parameters(n_steps=0)


def test_parameter_without_a_type():
    """A parameter of a function without an annotation takes any value."""
    assert {"factor": 2.0, "tag": "plain", "shift": None} == scaled.with_parameters(shift=None).parameters()


def test_require_parameters_takes_good_ones():
    """Whole numbers are numbers: an int is taken for a float."""
    require_parameters("mine", {"sigma": 1}, {"sigma": float})
    with pytest.raises(BadMethod, match=r"mine: expected a parameter of \(none\), got 'sigma'"):
        require_parameters("mine", {"sigma": 1}, {})


def test_generator_is_no_parameter():
    """The generator is no parameter of a function, even where it has a default: the judge alone sets it."""

    @method("seeded", domain="ram", family="control", access="read", source="a paper")
    def seeded(task, *, generator=None, shift: int = 0):
        return torch.rand(len(task.ram), generator=generator) + shift

    assert {"shift": 0} == seeded.defaults()
    with pytest.raises(BadMethod, match=r"seeded: expected a parameter of \(shift\), got 'generator'"):
        seeded.with_parameters(generator=3)


# --- answers ---


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([1.0, 2.0], r"attribution: expected a torch\.Tensor, got list; return a tensor"),
        (None, r"attribution: expected a torch\.Tensor, got NoneType; return a tensor"),
        (torch.ones(2).numpy(), r"attribution: expected a torch\.Tensor, got ndarray; return a tensor"),
        (torch.ones(3), r"attribution: expected shape \(2,\), got \(3,\); return one number each"),
        (torch.ones(2, 1), r"attribution: expected shape \(2,\), got \(2, 1\); return one number each"),
        (torch.tensor(1.0), r"attribution: expected shape \(2,\), got \(\); return one number each"),
        (torch.ones(2) * 1j, r"attribution: expected real numbers, got torch\.complex64; return a float tensor"),
        (torch.tensor([1.0, torch.nan]), "attribution: expected finite numbers, got 1 NaN or infinite; return 0"),
        (torch.tensor([1.0, -1.0]) / 0, "attribution: expected finite numbers, got 2 NaN or infinite; return 0"),
    ],
    ids=["list", "none", "array", "longer", "matrix", "scalar", "complex", "nan", "infinite"],
)
def test_wrong_answer(answer, message):
    """An answer that is no vector of finite real numbers is refused, and says which it is, from a claim as well."""
    with pytest.raises(BadMethod, match=message):
        checked_attribution(answer, (2,))


def test_claim_checks_the_answer():
    """A claim checks its answer against the number of bytes of this task."""
    with pytest.raises(BadMethod, match=r"expected shape \(6,\), got \(128,\)"):
        claim(Answering(torch.ones(128)), Case(0, CONTENT, n_bytes=6))
    with pytest.raises(BadMethod, match=r"expected a torch\.Tensor, got list"):
        claim(Answering([1.0]))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (torch.tensor([-3, 4]), [-3.0, 4.0]),
        (torch.tensor([200, 255], dtype=torch.uint8), [200.0, 255.0]),
        (torch.tensor([True, False]), [1.0, 0.0]),
        (torch.tensor([0.5, -0.25], dtype=torch.float32), [0.5, -0.25]),
        (torch.tensor([0.5, -0.25], dtype=torch.bfloat16), [0.5, -0.25]),
        (torch.tensor([0.5, -0.25], requires_grad=True) * 2, [1.0, -0.5]),
    ],
    ids=["integer", "byte", "boolean", "single", "half", "graph"],
)
def test_good_answer(answer, expected):
    """Real numbers of any type become float64 without a graph; signs stay, they are the method's own."""
    values = checked_attribution(answer, (2,))
    assert expected == values.tolist()
    assert torch.float64 == values.dtype
    assert not values.requires_grad


def test_expected_shape():
    """A claim has one number per byte, or per cause where the method says so; on a network one per pixel."""
    many, one = Case(0, CONTENT, n_bytes=6), Case(0, CONTENT, n_bytes=6, one_cause=True)
    assert (6,) == expected_shape(scaled.declaration, draw_task(many, scaled))
    # Five bytes with two causes each, a register and an action.
    assert (12,) == expected_shape(bare.declaration, draw_task(many, bare))
    assert (1,) == expected_shape(bare.declaration, draw_task(one, bare))
    assert (2, 12, 12) == expected_shape(scaled.declaration, draw_task(NETWORK_CASES[0], scaled))
    assert [3.0] * 12 == claim(bare, many).tolist()


def test_not_applicable_passes():
    """A method that does not apply says so itself: the claim passes its reason on."""
    with pytest.raises(NotApplicable, match="silent: expected a network, got the machine"):
        claim(Silent())


def test_generator_reaches_the_method():
    """The generator that a claim is given is the one that the method draws from."""

    @method("drawing", domain="ram", family="control", access="read", source="a paper")
    def drawing(task, *, generator):
        return torch.rand(len(task.ram), generator=generator)

    expected = torch.rand(128, generator=generator_of(0)).double()
    assert expected.tolist() == claim(drawing).tolist()


def test_a_read_of_a_network_is_answered_in_pixels():
    """On a network a method that only reads has no number per cause: such a declaration is refused."""
    with pytest.raises(BadMethod, match="mine: domain: expected pixels for networks, got cause; declare acce"):
        method(**GOOD | {"domain": "cause", "subjects": ("network",)})
