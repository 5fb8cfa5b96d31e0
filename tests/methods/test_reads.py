"""The differentiable reads against naive loops, and on paper."""

import hypothesis.strategies as st
import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from methods.reads import EmptyRead, HardRead, OneHotRead, SamplerRead, build_read, input_gradient
from oracle.task import SamplerGeometry
from tests.methods.tasks import CASES, CONTENT, POSITION, Case, draw_question
from tests.naive import methods as naive

RAM_SIZES = (6, 128)
many_examples = settings(deadline=None, derandomize=True, max_examples=200)

# One pixel, drawn at column 20 of row 10 while byte 2 is 5; the read looks at that pixel.
ONE_PIXEL = SamplerGeometry(address=2, value=5, cell=(10, 20), origin=(10, 20), offsets=((0, 0),))
# The same pixel twice, so that the sum can pass 1 and the clamp bites.
TWO_PIXELS = SamplerGeometry(address=2, value=5, cell=(10, 20), origin=(10, 20), offsets=((0, 0), (0, 0)))


def autograd(read: torch.nn.Module, ram: list[float]) -> list[float]:
    """The gradient that autograd gives for the one output of a read."""
    point = torch.tensor(ram, dtype=torch.float64, requires_grad=True)
    read(point).sum().backward()
    return point.grad.tolist()


def value(read: torch.nn.Module, ram: list[float]) -> float:
    """The one output of a read."""
    return read(torch.tensor(ram, dtype=torch.float64)).item()


@st.composite
def sprites(draw: st.DrawFn) -> tuple[tuple, list[float]]:
    """A sprite, perhaps with repeated pixels, and RAM in eighths, so that sums are exact and corners are met exactly.

    The fields of the geometry, not the geometry: its type checks draw random numbers, which strategies must not.
    """
    n_bytes = draw(st.sampled_from(RAM_SIZES))
    address = draw(st.integers(0, n_bytes - 1))
    offsets = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12))
    origin = draw(st.tuples(st.integers(0, 249), st.integers(0, 159)))
    row, column = draw(st.sampled_from(offsets))
    cell = origin[0] + row + draw(st.integers(-1, 1)), origin[1] + column + draw(st.integers(-2, 2))
    byte = draw(st.integers(2, 253))
    ram = [draw(st.integers(0, 255 * 8)) / 8] * n_bytes
    ram[address] = byte + draw(st.integers(-16, 16)) / 8
    return (address, byte, cell, origin, tuple(offsets)), ram


@many_examples
@given(sprites())
def test_sampler_value(sprite):
    """The sampler read is the loop over sprite pixels, at whole and at broken numbers."""
    geometry, ram = SamplerGeometry(*sprite[0]), sprite[1]
    # Eighths add up without rounding, so the two must agree to the last bit.
    assert naive.sampler_value(ram, geometry) == value(SamplerRead(geometry), ram)


@many_examples
@given(sprites())
def test_sampler_gradient(sprite):
    """Autograd through the sampler read is the hand-written one-sided derivative, also exactly on the corners."""
    geometry, ram = SamplerGeometry(*sprite[0]), sprite[1]
    assert naive.sampler_gradient_of(ram, geometry) == autograd(SamplerRead(geometry), ram)


@many_examples
@given(sprites())
def test_hard_value(sprite):
    """The hard read is the sampler at the nearest whole numbers."""
    geometry, ram = SamplerGeometry(*sprite[0]), sprite[1]
    assert naive.hard_value(ram, geometry) == value(HardRead(SamplerRead(geometry)), ram)


@many_examples
@given(sprites())
def test_hard_gradient_is_zero(sprite):
    """The hard read has a graph, and its gradient is exactly zero everywhere."""
    geometry, ram = SamplerGeometry(*sprite[0]), sprite[1]
    # An integer index does not change with its byte: zero, not merely small.
    assert [0.0] * len(ram) == autograd(HardRead(SamplerRead(geometry)), ram)


@many_examples
@given(st.data())
def test_one_hot(data):
    """The content read is the byte itself, and its gradient is 1 there and 0 elsewhere."""
    n_bytes = data.draw(st.sampled_from(RAM_SIZES))
    address = data.draw(st.integers(0, n_bytes - 1))
    ram = data.draw(st.lists(st.floats(0, 255), min_size=n_bytes, max_size=n_bytes))
    read = OneHotRead(n_bytes, address)
    assert naive.one_hot_value(ram, address) == value(read, ram)
    assert naive.one_hot_gradient(ram, address) == autograd(read, ram)


@pytest.mark.parametrize(
    ("byte", "covered", "slope"),
    [
        (5.0, 1.0, 0.0),  # the tip: the derivative of |t| at 0 is 0
        (4.5, 0.5, 1.0),  # half a column left of the cell, moving towards it
        (5.5, 0.5, -1.0),  # half a column right of it, moving away
        (4.0, 0.0, 1.0),  # z = 1 - |t| = 0: max(0, z) passes the gradient
        (6.0, 0.0, -1.0),  # the same on the other side
        (3.875, 0.0, 0.0),  # z < 0: nothing passes
        (6.125, 0.0, 0.0),
    ],
)
def test_one_pixel_on_paper(byte, covered, slope):
    """One sprite pixel covers the cell by the tent of its distance, with one-sided slopes at the corners."""
    read = SamplerRead(ONE_PIXEL)
    ram = [9.0, 9.0, byte, 9.0]
    assert covered == value(read, ram)
    assert [0.0, 0.0, slope, 0.0] == autograd(read, ram)


@pytest.mark.parametrize(
    ("byte", "covered", "slope"),
    [
        (4.5, 1.0, 2.0),  # 2 * 0.5 = 1: the upper bound belongs to the interval that passes, so both slopes add up
        (4.625, 1.0, 0.0),  # 2 * 0.625 > 1: clamped, nothing passes
        (4.375, 0.75, 2.0),  # 2 * 0.375, inside
        (4.0, 0.0, 2.0),  # 2 * 0: the lower bound belongs to the interval too
    ],
)
def test_clamp_on_paper(byte, covered, slope):
    """The clamp to 0..1 passes the gradient on its bounds and stops it outside."""
    read = SamplerRead(TWO_PIXELS)
    ram = [9.0, 9.0, byte, 9.0]
    assert covered == value(read, ram)
    assert [0.0, 0.0, slope, 0.0] == autograd(read, ram)


def test_another_row_is_not_covered():
    """A sprite pixel in the row next to the cell covers none of it, however its byte moves."""
    geometry = SamplerGeometry(address=0, value=5, cell=(11, 20), origin=(10, 20), offsets=((0, 0),))
    # tri(11 - 10 - 0) = 0 multiplies every column weight.
    assert 0.0 == value(SamplerRead(geometry), [4.5])
    assert [0.0] == autograd(SamplerRead(geometry), [4.5])


def test_halves_round_to_even():
    """The hard read sends 4.5 to 4 and 5.5 to 6, both one column away from the cell."""
    read = HardRead(SamplerRead(ONE_PIXEL))
    # tri(+-1) = 0 at 4 and 6; rounding halves up would give 5 for 4.5, where the cell is covered.
    assert [0.0, 1.0, 0.0] == [value(read, [9.0, 9.0, byte, 9.0]) for byte in (4.5, 4.75, 5.5)]


def every_read() -> list[torch.nn.Module]:
    """One read of each class over 6 bytes."""
    return [OneHotRead(6, 2), SamplerRead(ONE_PIXEL), HardRead(SamplerRead(ONE_PIXEL)), EmptyRead()]


@pytest.mark.parametrize("read", every_read(), ids=lambda read: type(read).__name__)
def test_batch_dimensions(read):
    """A batch of any rank gives one output per row, equal to the rows asked one by one."""
    generator = np.random.default_rng(3)
    batch = 5.0 + generator.integers(-12, 13, (2, 3, 6)) / 8
    rows = [[[value(read, ram)] for ram in block] for block in batch.tolist()]
    assert rows == read(torch.tensor(batch)).tolist()


@pytest.mark.parametrize("read", every_read(), ids=lambda read: type(read).__name__)
def test_float32(read):
    """A read takes float32 and gives the same value: eighths are exact in both."""
    ram = [1.0, 2.5, 4.625, 0.0, 255.0, 5.0]
    assert value(read, ram) == read(torch.tensor(ram, dtype=torch.float32)).item()


def test_empty_read():
    """Without a sprite the read is 0, with a graph, and its gradient is 0."""
    assert 0.0 == value(EmptyRead(), [3.0, 255.0])
    assert [0.0, 0.0] == autograd(EmptyRead(), [3.0, 255.0])


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("kind", ["sampler", "hard"])
def test_build_read(case, kind):
    """The read of a question's output is the naive read of its kind, in value and gradient, at RAM and halfway to 0."""
    question = draw_question(case)
    output = question.outputs[case.output]
    read = build_read(question, output, kind)
    for share in (1.0, 0.5):
        ram = (share * question.ram).tolist()
        assert naive.read_value(question, output, kind, ram) == value(read, ram)
        assert naive.read_gradient(question, output, kind, ram) == autograd(read, ram)


def test_kinds_agree_on_content():
    """Kinds differ in the position regime only: a content read is the same one-hot read for both."""
    question = draw_question(Case(0, CONTENT))
    for kind in ("sampler", "hard"):
        assert isinstance(build_read(question, question.outputs[CONTENT], kind), OneHotRead)


def test_kinds_agree_at_whole_numbers():
    """At whole numbers the hard read and the sampler read have the same value."""
    for seed in range(50):
        question = draw_question(Case(seed, POSITION))
        hard, smooth = (build_read(question, question.outputs[POSITION], kind) for kind in ("hard", "sampler"))
        assert value(smooth, question.ram.tolist()) == value(hard, question.ram.tolist())


def test_input_gradient_of_many_outputs():
    """The input gradient is the sum over outputs of the sizes of the Jacobian's rows."""
    read = torch.nn.Linear(3, 2, dtype=torch.float64)
    with torch.no_grad():
        read.weight.copy_(torch.tensor([[1.0, -2.0, 0.0], [-3.0, 0.5, 0.0]]))
    # |1| + |-3|, |-2| + |0.5|, 0; a norm taken after adding the rows would give 2, 1.5, 0.
    assert [4.0, 2.5, 0.0] == input_gradient(read, torch.ones(3, dtype=torch.float64)).tolist()


def test_shapes_are_checked_in_tests():
    """While tests run, an argument of another shape than its signature says is refused."""
    with pytest.raises(jaxtyping.TypeCheckError, match="ram"):
        OneHotRead(6, 2)(torch.zeros((), dtype=torch.float64))
