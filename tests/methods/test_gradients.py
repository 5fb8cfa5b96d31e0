"""Laws of the gradient methods on the machine, beside the replicas of `test_builtins.py`."""

from dataclasses import replace

import pytest
import torch

from harness.claims import CountedRead
from methods.deep_lift import deep_lift
from methods.expected_gradients import ExpectedGradients
from methods.gradient_times_input import gradient_times_input
from methods.guided_backprop import guided_backprop
from methods.method import BadMethod, NotApplicable
from methods.reads import SamplerRead
from methods.relu_read import ReluSamplerRead, rectified
from methods.sampler_gradient import sampler_gradient
from methods.smoothgrad import SmoothGrad
from tests.methods.tasks import CASES, CONTENT, POSITION, Case, draw_question, draw_task, generator_of
from tests.methods.test_builtins import MatrixRead, SquareRead, claim, random_matrix
from tests.naive import gradients as naive

SPRITES = [Case(seed, POSITION, n_bytes=n_bytes) for seed in range(20, 50) for n_bytes in (6, 128)]


def linear_task(method, pool_row=None):
    """A task whose read has three linear outputs; with a row, that is the whole reference pool."""
    task = replace(draw_task(Case(0, CONTENT), method), read=MatrixRead(random_matrix(5, 3, 128)))
    return task if pool_row is None else replace(task, reference_pool=pool_row.unsqueeze(0))


def zeros(n_numbers=128):
    """An empty RAM."""
    return torch.zeros(n_numbers, dtype=torch.float64)


@pytest.mark.parametrize("method", [gradient_times_input, deep_lift, ExpectedGradients(3)], ids=lambda one: one.label)
def test_linear_reads_make_contributions_agree(method):
    """On a linear read, from zero, every method that multiplies by the input gives |weight x byte|, over outputs."""
    task = linear_task(method, pool_row=zeros())
    expected = (task.read.weight * task.ram).abs().sum(0)
    assert expected.tolist() == pytest.approx(claim(method, task).tolist(), rel=1e-12)


@pytest.mark.parametrize("method", [SmoothGrad(), guided_backprop], ids=lambda one: one.label)
def test_linear_reads_make_gradients_agree(method):
    """On a linear read every other gradient gives |weight|, added over outputs."""
    task = linear_task(method)
    assert task.read.weight.abs().sum(0).tolist() == pytest.approx(claim(method, task).tolist(), rel=1e-12)


# --- SmoothGrad ---


@pytest.mark.parametrize("n_samples", [1, 130])
@pytest.mark.parametrize("case", SPRITES[:8], ids=str)
def test_smoothgrad_without_noise(case, n_samples):
    """Without noise SmoothGrad is the sampler gradient, whatever the number of copies."""
    method = SmoothGrad(n_samples=n_samples, sigma=0.0)
    expected = claim(sampler_gradient, draw_task(case, sampler_gradient))
    assert expected.tolist() == pytest.approx(claim(method, draw_task(case, method)).tolist(), rel=1e-12)


@pytest.mark.parametrize(("n_samples", "sigma"), [(1, 8.0), (70, 3.0)])
def test_smoothgrad_parameters(n_samples, sigma):
    """Another number of copies and another sigma are those of the replica, also with more than one batch of copies."""
    differing = 0
    for case in SPRITES:
        question, method = draw_question(case), SmoothGrad(n_samples=n_samples, sigma=sigma)
        expected = naive.smoothgrad(question, question.outputs[POSITION], n_samples, sigma)
        differing += expected != pytest.approx(naive.smoothgrad(question, question.outputs[POSITION]))
        assert expected == pytest.approx(claim(method, draw_task(case, method)).tolist(), rel=1e-12, abs=1e-12)
    assert differing > 0


def test_smoothgrad_takes_the_mean_before_the_size():
    """At the bottom of a parabola SmoothGrad is the size of the mean slope, not the mean size."""
    method = SmoothGrad(n_samples=20, sigma=2.0)
    task = draw_task(Case(0, CONTENT), method)
    task = replace(task, read=SquareRead(task.ram[0].item()))
    # The slope at the bottom plus sigma * noise is 2 * sigma * noise.
    mean_noise = sum(row[0] for row in naive.drawn_noise(20, 128)) / 20
    assert abs(4.0 * mean_noise) == pytest.approx(claim(method, task)[0].item(), rel=1e-9)


# --- expected gradients ---


def test_one_row_makes_expected_gradients_integrated_gradients():
    """With one row in the pool, the mean over many draws is Integrated Gradients from that row, within 5 errors."""
    method = ExpectedGradients(n_samples=20_000)
    task = draw_task(Case(0, CONTENT), method)
    task = replace(task, read=SquareRead(10.0), reference_pool=task.reference_pool[:1])
    start, end = task.reference_pool[0, 0].item(), task.ram[0].item()
    # A draw is (end - start) * 2 * (start + share * (end - start) - 10): of a uniform share, the variance is 1/12.
    standard_error = 2 * (end - start) ** 2 / (12 * 20_000) ** 0.5
    exact = abs((end - 10) ** 2 - (start - 10) ** 2)
    assert exact > 20 * standard_error
    assert exact == pytest.approx(claim(method, task)[0].item(), abs=5 * standard_error)


def test_expected_gradients_from_ram_itself_are_nothing():
    """A pool that holds nothing but RAM at f* leaves nothing to attribute."""
    method = ExpectedGradients()
    task = linear_task(method)
    task = replace(task, reference_pool=task.ram.repeat(4, 1))
    assert [0.0] * 128 == claim(method, task).tolist()


@pytest.mark.parametrize("method", [SmoothGrad(), ExpectedGradients()], ids=lambda one: one.label)
def test_another_generator_gives_another_answer(method):
    """What is drawn depends on the generator."""
    tasks = [draw_task(case, method) for case in SPRITES]
    first, second = ([method.claim(task, generator=generator_of(seed)).tolist() for task in tasks] for seed in (0, 1))
    assert first != second


# --- DeepLIFT and its twin of the sampler ---


@pytest.mark.parametrize("case", SPRITES, ids=str)
def test_the_twin_reads_the_same(case):
    """The read of ReLU modules gives what the sampler read gives, at whole numbers and between them."""
    question = draw_question(case)
    sampler = SamplerRead(question.geometry)
    rows = torch.zeros(1500, case.n_bytes, dtype=torch.float64)
    # All bytes, and shifts by less than a pixel round the one at f*.
    places = torch.cat([torch.arange(256.0), question.geometry.value + torch.linspace(-8, 8, 1244)])
    rows[:, question.geometry.address] = places
    assert sampler(rows).count_nonzero() > 0
    torch.testing.assert_close(sampler(rows), ReluSamplerRead(sampler)(rows), rtol=0, atol=1e-12)


def test_deep_lift_sees_what_a_gradient_misses():
    """Where the slope at RAM is zero but the sprite covers the cell, DeepLIFT claims all of the coverage."""
    n_found = 0
    for case in SPRITES:
        claims = [claim(method, draw_task(case, method)) for method in (sampler_gradient, deep_lift)]
        n_found += claims[0].count_nonzero().item() == 0 and claims[1].max().item() == 1.0
    assert n_found > 0


def test_the_twin_is_only_lent():
    """Sampler reads are exchanged inside a read, at any depth, and are back afterwards, also after an error."""
    sampler = SamplerRead(draw_question(Case(20, POSITION)).geometry)
    read = torch.nn.Sequential(torch.nn.Sequential(sampler), torch.nn.Identity())
    with rectified(read) as twin:
        assert (read, ReluSamplerRead) == (twin, type(read[0][0]))
    assert sampler is read[0][0]
    with pytest.raises(IndexError, match="out of bounds"), rectified(read):
        read(torch.zeros(0))
    assert sampler is read[0][0]


def test_a_read_with_an_unseen_corner_is_declined():
    """A read whose curve is in no module is declined, with both sums, and not given gradient times input instead."""
    task = draw_task(Case(0, CONTENT), deep_lift)
    task = replace(task, read=SquareRead(0.0))
    square = task.ram[0].item() ** 2
    # The gradient times the byte is 2 ram_0 * ram_0.
    words = f"its contributions add up to {2 * square:.6g}, but the output differs from that at zero by {square:.6g}"
    with pytest.raises(NotApplicable, match=words):
        claim(deep_lift, task)


# --- what it costs, and parameters ---


@pytest.mark.parametrize(
    ("method", "n_gradients"),
    # DeepLIFT runs the input and the empty RAM beside each other.
    [(gradient_times_input, 1), (guided_backprop, 1), (deep_lift, 2), (SmoothGrad(70), 70), (ExpectedGradients(7), 7)],
    ids=lambda value: getattr(value, "label", value),
)
@pytest.mark.parametrize("case", CASES[:2], ids=str)
def test_gradients_are_counted(case, method, n_gradients):
    """The judge's count of gradients is the number of points at which a method asks for one."""
    task = draw_task(case, method)
    task = replace(task, read=CountedRead(task.read))
    claim(method, task)
    assert n_gradients == task.read.n_gradients


@pytest.mark.parametrize(
    ("method", "values", "message"),
    [
        (SmoothGrad(), {"n_samples": 0}, "smoothgrad: n_samples: expected at least 1, got 0"),
        (SmoothGrad(), {"sigma": -1.0}, r"smoothgrad: sigma: expected a finite number of at least 0, got -1\.0"),
        (SmoothGrad(), {"noise_share": float("nan")}, "smoothgrad: noise_share: expected a finite number .*, got nan"),
        (ExpectedGradients(), {"n_samples": 0}, "expected_gradients: n_samples: expected at least 1, got 0"),
    ],
)
def test_parameters_out_of_range(method, values, message):
    """A parameter that makes no sense is refused with its method and name."""
    with pytest.raises(BadMethod, match=message):
        method.with_parameters(**values)
