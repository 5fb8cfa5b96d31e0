"""The read of a whole sprite against the sum over all pairs of its pixels, on paper, and its laws."""

from dataclasses import replace

import hypothesis.strategies as st
import pytest
import torch
from captum.attr import GuidedBackprop
from hypothesis import given, settings

from methods.captum_calls import captum_rows, hookable
from methods.deep_lift import complete_multipliers, deep_lift
from methods.reads import HardRead, input_gradient, jacobian, jacobians
from methods.relu_read import ReluTemplateRead, rectified
from methods.template_read import TemplateRead
from oracle.template import Template, TranslatingByte
from tests.methods.tasks import CONTENT, Case, draw_task
from tests.naive import sprites as naive

many_examples = settings(deadline=None, derandomize=True, max_examples=40)

# Byte 1 moves right, byte 2 moves down, both one pixel per unit, and stand at 50 and 60.
ALONG_X, ALONG_Y = TranslatingByte(1, 1.0, 0.0, 50), TranslatingByte(2, 0.0, 1.0, 60)
HERE = [9.0, 50.0, 60.0, 9.0]
DOT = Template(((30, 40, 7),), (ALONG_X, ALONG_Y))
SQUARE = Template(((30, 40, 7), (30, 41, 200), (31, 40, 0), (31, 41, 7)), (ALONG_X, ALONG_Y))


def tensor(numbers):
    """Float64, as RAM is."""
    return torch.tensor(numbers, dtype=torch.float64)


def moved(right, down):
    """RAM that shifts the sprites above by so much."""
    return [9.0, 50.0 + right, 60.0 + down, 9.0]


@st.composite
def templates(draw):
    """The fields of a template of up to 5 x 6 pixels with one to three bytes, and RAM, all in exact fractions."""
    places = draw(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1))
    top, left = draw(st.integers(0, 200)), draw(st.integers(0, 150))
    pixels = tuple((top + row, left + column, draw(st.integers(0, 255))) for row, column in sorted(places))
    addresses = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True))
    # Whole numbers often: there lie the corners.
    slopes = st.integers(-1, 1).map(float) | st.integers(-4, 4).map(lambda quarters: quarters / 4)
    steps = st.integers(-3, 3).map(float) | st.integers(-24, 24).map(lambda eighths: eighths / 8)
    movers = tuple((address, draw(slopes), draw(slopes), draw(st.integers(100, 150))) for address in addresses)
    ram = [float(draw(st.integers(0, 255))) for _ in range(6)]
    for address, _, _, value in movers:
        ram[address] = value + draw(steps)
    return pixels, movers, ram


def built(fields):
    """The template of drawn fields; not drawn itself, since its type checks draw random numbers."""
    return Template(fields[0], tuple(TranslatingByte(*each) for each in fields[1]))


@many_examples
@given(templates())
def test_values(fields):
    """The read is the sum over all pairs of template pixels, at whole numbers and between them, to the last bit."""
    expected = naive.read_values(built(fields), fields[2])
    assert expected == TemplateRead(built(fields))(tensor(fields[2])).tolist()


@many_examples
@given(templates())
def test_jacobian(fields):
    """Autograd gives the slopes by hand, exactly on the corners too: whole numbers, tips and feet of tents."""
    expected = naive.read_jacobian(built(fields), fields[2])
    assert expected == jacobian(TemplateRead(built(fields)), tensor(fields[2])).tolist()


@many_examples
@given(templates(), st.integers(1, 7))
def test_finite_differences(fields, eighths):
    """Between whole shifts the slope is what half a step to each side shows."""
    template = built((fields[0], ((0, 1.0, -0.25, 50), (1, 0.25, 1.0, 60))))
    # Shifts of (1 - 1/4 + ..) eighths are no whole numbers; the read is bilinear from one whole number to the next.
    ram = tensor([50 + eighths / 8 - 1 / 64, 60 + (8 - eighths) / 8 + 1 / 128, *fields[2][2:]])
    read, step = TemplateRead(template), 2.0**-12
    slopes = jacobian(read, ram)
    for address in range(len(ram)):
        change = torch.zeros_like(ram)
        change[address] = step
        ratio = (read(ram + change) - read(ram - change)) / (2 * step)
        assert slopes[:, address].tolist() == pytest.approx(ratio.tolist(), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(
    ("right", "down", "covered", "slopes"),
    [
        (0.0, 0.0, 1.0, (0.0, 0.0)),  # the tip of both tents
        (0.25, 0.0, 0.75, (-1.0, 0.0)),  # moving away, a quarter is gone
        (-0.25, 0.0, 0.75, (1.0, 0.0)),
        (0.25, 0.5, 0.375, (-0.5, -0.75)),  # 3/4 * 1/2; each slope is scaled by the other tent
        (1.0, 0.0, 0.0, (-1.0, 0.0)),  # the foot of the tent passes the gradient
        (1.0, -1.0, 0.0, (0.0, 0.0)),  # on both feet each slope is multiplied by an empty tent
        (1.125, 0.0, 0.0, (0.0, 0.0)),  # out of reach
        (80.0, -60.0, 0.0, (0.0, 0.0)),  # far out of the mask
    ],
)
def test_one_pixel_on_paper(right, down, covered, slopes):
    """One pixel covers its own place by the product of two tents."""
    read = TemplateRead(DOT)
    assert [covered] == read(tensor(moved(right, down))).tolist()
    assert [[0.0, *slopes, 0.0]] == jacobian(read, tensor(moved(right, down))).tolist()


def test_a_square_on_paper():
    """At f* a 2 x 2 sprite covers all its pixels, and each has one neighbour per axis, whose side tells the sign."""
    read = TemplateRead(SQUARE)
    assert [1.0] * 4 == read(tensor(HERE)).tolist()
    # To the right the left column has nothing that follows (-1), the right one is refilled from its left (+1).
    expected = [[0.0, -1.0, -1.0, 0.0], [0.0, 1.0, -1.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]]
    assert expected == jacobian(read, tensor(HERE)).tolist()
    assert [0.0, 4.0, 4.0, 0.0] == input_gradient(read, tensor(HERE)).tolist()
    # A quarter to the right: the left column loses it, the right one stays full.
    assert [0.75, 1.0, 0.75, 1.0] == read(tensor(moved(0.25, 0.0))).tolist()


def test_palette_indices_do_not_count():
    """Sprites of one shape in other colours have one read."""
    recoloured = Template(tuple((row, column, 255 - colour) for row, column, colour in SQUARE.pixels), SQUARE.bytes)
    ram = tensor(moved(0.375, -0.25))
    assert TemplateRead(SQUARE)(ram).tolist() == TemplateRead(recoloured)(ram).tolist()


@many_examples
@given(templates(), st.sampled_from([(1, -1), (-1, 1), (-1, -1)]))
def test_mirrored_sprites_have_the_same_attribution(fields, signs):
    """The L1 norm of the Jacobian at f* is the same for a sprite mirrored left-right or upside down.

    Its bytes keep their slopes: were the sign, or an edge, decided by the side on which a window starts, the norms
    would differ.
    """
    template = built(fields)
    ram = tensor(fields[2])
    for address, _, _, value in fields[1]:
        ram[address] = value
    mirrored = Template(
        tuple((200 + signs[0] * row, 200 + signs[1] * column, colour) for row, column, colour in template.pixels),
        template.bytes,
    )
    along_axes = [Template(each.pixels, (ALONG_X, ALONG_Y)) for each in (template, mirrored)]
    both = [input_gradient(TemplateRead(each), tensor(HERE)).tolist() for each in along_axes]
    assert both[0] == both[1]
    # Along a slanted way the mirrored sprite has to move the mirrored way.
    turned = tuple(
        TranslatingByte(each.address, signs[1] * each.slope_x, signs[0] * each.slope_y, each.value)
        for each in template.bytes
    )
    expected = input_gradient(TemplateRead(template), ram).tolist()
    assert expected == input_gradient(TemplateRead(Template(mirrored.pixels, turned)), ram).tolist()


@many_examples
@given(templates())
def test_several_bytes_share_one_shift(fields):
    """Two bytes that undo each other leave the sprite in place, and at equal slopes have equal attributions."""
    pair = (TranslatingByte(1, 0.5, -1.0, 50), TranslatingByte(2, 0.5, -1.0, 60))
    read = TemplateRead(Template(built(fields).pixels, pair))
    assert read(tensor(HERE)).tolist() == read(tensor(moved(3.0, -3.0))).tolist()
    gradient = input_gradient(read, tensor(moved(0.25, 0.0)))
    assert gradient[1].item() == gradient[2].item()


def test_batches_and_float32():
    """A batch of any rank gives the rows asked one by one; float32 gives the same float64."""
    read = TemplateRead(SQUARE)
    rows = tensor([[moved(right / 4, down / 8) for right in range(-5, 6)] for down in range(-3, 4)])
    expected = [[read(ram).tolist() for ram in block] for block in rows]
    assert expected == read(rows).tolist() == read(rows.float()).tolist()
    assert torch.float64 == read(rows.float()).dtype
    assert jacobian(read, rows[1, 2]).tolist() == jacobians(read, rows[1])[:, 2].tolist()


def test_a_hard_read_has_no_gradient():
    """Through an integer index the values at whole numbers are the same and the gradient is exactly zero."""
    read = HardRead(TemplateRead(SQUARE))
    for ram in (HERE, moved(1.0, 0.0), moved(0.25, 0.75)):
        assert TemplateRead(SQUARE)(tensor(ram).round()).tolist() == read(tensor(ram)).tolist()
        assert [[0.0] * 4] * 4 == jacobian(read, tensor(ram)).tolist()


# --- the twin of ReLU modules ---


@many_examples
@given(templates())
def test_the_twin_reads_the_same(fields):
    """The read of ReLU modules gives the same values, for one point and for batches with and without halves."""
    read = TemplateRead(built(fields))
    twin = ReluTemplateRead(read)
    steps = torch.linspace(-6.0, 6.0, 31, dtype=torch.float64).unsqueeze(-1)
    rows = tensor(fields[2]) + steps * torch.tensor([1.0, 0.5, -1.0, 0.3, 0.0, 2.0])
    for points in (rows, rows[:10], rows[3]):
        torch.testing.assert_close(read(points), twin(points), rtol=0, atol=1e-12)


def deep_lift_task(read, first_bytes):
    """A task with another read, and RAM of which only the first bytes are not 0."""
    task = draw_task(Case(0, CONTENT, n_bytes=6), deep_lift)
    return replace(task, read=read, ram=tensor([*first_bytes, *[0.0] * (6 - len(first_bytes))]))


@pytest.mark.parametrize("ram", [(0.0, 2.0, 1.0), (0.0, 1.5, 1.25), (0.0, 0.75, 3.0), (0.0, 90.0, 1.0)], ids=str)
def test_deep_lift_adds_up_along_both_axes(ram):
    """DeepLIFT's contributions add up to what the empty RAM lacks, also where both axes move at once."""
    movers = (TranslatingByte(1, 1.0, 0.0, 2), TranslatingByte(2, -0.5, 1.0, 1))
    read = TemplateRead(Template(SQUARE.pixels, movers))
    task = deep_lift_task(read, ram)
    difference = read(task.ram) - read(torch.zeros_like(task.ram))
    assert difference.count_nonzero() > 0
    contributions = (complete_multipliers(task) * task.ram).sum(1)
    assert difference.tolist() == pytest.approx(contributions.tolist(), abs=1e-12)


def test_deep_lift_of_one_pixel_on_paper():
    """Half of what both axes do together belongs to each."""
    # At f* the pixel is covered; the empty RAM stands a quarter and a half away: 3/4 * 1/2 are covered.
    movers = (TranslatingByte(0, 0.25, 0.0, 1), TranslatingByte(1, 0.0, 0.5, 1))
    read = TemplateRead(Template(DOT.pixels, movers))
    task = deep_lift_task(read, [1.0, 1.0])
    # The tents differ by 1/4 and 1/2, and each is weighed by the mean of the other: (1 + 1/2) / 2 and (1 + 3/4) / 2.
    assert [[0.1875, 0.4375, 0.0, 0.0, 0.0, 0.0]] == (complete_multipliers(task) * task.ram).tolist()


def test_hooks_find_every_corner():
    """Guided backpropagation through the twin differs from the gradient: it loses what a ReLU gives back negative."""
    twin, ram = ReluTemplateRead(TemplateRead(DOT)), tensor(moved(0.25, 0.0))
    with hookable(twin, once=True):
        rows = captum_rows(lambda point, output: GuidedBackprop(twin).attribute(point, target=output), twin, ram)
    # 1 - |t| falls with |t|, so all that comes back to |t| is negative.
    assert [[0.0, -1.0, 0.0, 0.0]] == jacobian(twin, ram).tolist()
    assert [[0.0] * 4] == rows.tolist()


def test_the_twin_is_only_lent():
    """Inside `rectified` the twin stands in place of a template read, at any depth, and the read is back afterwards."""
    read = TemplateRead(SQUARE)
    with rectified(read) as alone:
        assert ReluTemplateRead is type(alone)
    nested = torch.nn.Sequential(torch.nn.Sequential(read))
    with rectified(nested) as twin:
        assert (nested, ReluTemplateRead) == (twin, type(nested[0][0]))
    assert read is nested[0][0]


@many_examples
@given(templates())
def test_the_jacobian_at_once_is_that_of_each_pixel(fields):
    """One backward pass for all pixels gives every row that a pass of its own gives, at whole numbers and between."""
    read, ram = TemplateRead(built(fields)), tensor(fields[2])
    points = torch.stack([ram, ram + 0.25, ram.round()])
    leaves = points.clone().requires_grad_()
    rows = [torch.autograd.grad(pixel.sum(), leaves, retain_graph=True)[0] for pixel in read(leaves).unbind(-1)]
    torch.testing.assert_close(torch.stack(rows), read.direct_jacobians(points), rtol=0, atol=1e-12)
    assert torch.equal(jacobians(read, points), read.direct_jacobians(points))
    hard = HardRead(read)(leaves)
    rows = [torch.autograd.grad(pixel.sum(), leaves, retain_graph=True)[0] for pixel in hard.unbind(-1)]
    assert torch.equal(torch.stack(rows), jacobians(HardRead(read), points))
