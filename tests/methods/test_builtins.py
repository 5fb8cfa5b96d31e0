"""The built-in methods against naive replicas, and their laws."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from methods.integrated_gradients import IntegratedGradients
from methods.registry import registered, resolve
from methods.sampler_gradient import sampler_gradient
from methods.vanilla_gradient import vanilla_gradient
from tests.methods.tasks import CASES, CONTENT, POSITION, Case, draw_question, draw_task, generator_of
from tests.naive import gradients
from tests.naive import methods as naive

# Every method of this project that explains the machine by reading it: a new one without a replica fails here.
BUILT_IN = [name for name, point in registered().items() if point.value.startswith("methods.")]
DECLARED = {name: resolve(name).declaration for name in BUILT_IN}
MACHINE = [name for name in BUILT_IN if "machine" in DECLARED[name].subjects and DECLARED[name].access == "read"]
REPLICAS = naive.REPLICAS | gradients.REPLICAS
# Beside the cases of all tests: many sprites, so that the path of Integrated Gradients crosses them in many ways.
REPLICA_CASES = (*CASES, *(Case(seed, POSITION, n_bytes=n_bytes) for seed in range(20, 50) for n_bytes in (6, 128)))


class MatrixRead(torch.nn.Module):
    """A linear read with several outputs."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, ram: torch.Tensor) -> torch.Tensor:
        """W ram."""
        return ram @ self.get_buffer("weight").T


class SquareRead(torch.nn.Module):
    """(ram_0 - centre)^2: a gradient that changes its sign along the path."""

    def __init__(self, centre: float) -> None:
        super().__init__()
        self._centre = centre

    def forward(self, ram: torch.Tensor) -> torch.Tensor:
        """The square of the first byte's distance."""
        return (ram[..., :1] - self._centre) ** 2


def random_matrix(seed: int, n_outputs: int, n_bytes: int) -> torch.Tensor:
    """Seeded weights of both signs."""
    return torch.tensor(np.random.default_rng(seed).normal(size=(n_outputs, n_bytes)))


def claim(method, task) -> torch.Tensor:
    """What the method claims of the task."""
    return method.claim(task, generator=generator_of(0))


@pytest.mark.parametrize("case", REPLICA_CASES, ids=str)
@pytest.mark.parametrize("name", MACHINE)
def test_replica(name, case):
    """A built-in method claims what its naive replica does."""
    question = draw_question(case)
    expected = REPLICAS[name](question, question.outputs[case.output])
    method = resolve(name)
    # Sums of 64 terms may be rounded in another order, hence not to the last bit.
    assert expected == pytest.approx(claim(method, draw_task(case, method)).tolist(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n_steps", [1, 2, 16])
def test_integrated_gradients_steps(n_steps):
    """Integrated Gradients with another number of steps is the sum over that many midpoints."""
    differing = 0
    for seed in range(30):
        case = Case(seed, POSITION, n_bytes=6)
        question = draw_question(case)
        expected = naive.integrated_gradients(question, question.outputs[POSITION], n_steps=n_steps)
        differing += expected != naive.integrated_gradients(question, question.outputs[POSITION])
        method = IntegratedGradients(n_steps=n_steps)
        assert expected == pytest.approx(claim(method, draw_task(case, method)).tolist(), rel=1e-12, abs=1e-12)
    # Were the number ignored, the sums above would be those of 64 midpoints: they are not in all of these questions.
    assert differing > 0


@pytest.mark.parametrize("n_steps", [1, 64])
@pytest.mark.parametrize("n_bytes", [6, 128])
def test_integrated_gradients_on_a_linear_read(n_bytes, n_steps):
    """On a linear read Integrated Gradients is |gradient x input| added over the outputs, with one step or many."""
    method = IntegratedGradients(n_steps=n_steps)
    weight = random_matrix(5, 3, n_bytes)
    task = replace(draw_task(Case(0, CONTENT, n_bytes=n_bytes), method), read=MatrixRead(weight))
    # The gradient of output k is w_k at every midpoint, so the mean is w_k, and |w_ki ram_i| is added over k.
    expected = [
        sum(abs(weight[output, byte].item() * task.ram[byte].item()) for output in range(3)) for byte in range(n_bytes)
    ]
    assert expected == pytest.approx(claim(method, task).tolist(), rel=1e-12)


def test_integrated_gradients_is_complete_on_a_linear_read():
    """With weights of one sign the claims of Integrated Gradients add up to read(ram) - read(0)."""
    method = IntegratedGradients()
    weight = random_matrix(6, 1, 128).abs()
    task = replace(draw_task(Case(0, CONTENT), method), read=MatrixRead(weight))
    expected = (task.read(task.ram) - task.read(torch.zeros(128, dtype=torch.float64))).item()
    assert expected == pytest.approx(claim(method, task).sum().item(), rel=1e-12)


@pytest.mark.parametrize("n_steps", [1, 2, 64])
def test_integrated_gradients_takes_the_mean_before_the_size(n_steps):
    """A gradient that is as often positive as negative on the path averages to zero: sizes are taken afterwards."""
    method = IntegratedGradients(n_steps=n_steps)
    task = draw_task(Case(0, CONTENT), method)
    symmetric = replace(task, read=SquareRead(task.ram[0].item() / 2))
    # Completeness: (ram_0 / 2)^2 - (-ram_0 / 2)^2 = 0, and the midpoint rule is exact for a linear gradient.
    assert [0.0] * 128 == pytest.approx(claim(method, symmetric).tolist(), abs=1e-9)


@pytest.mark.parametrize("n_steps", [1, 2, 64])
def test_integrated_gradients_of_a_square(n_steps):
    """On ram_0^2 Integrated Gradients from zero gives ram_0^2, for any number of midpoints."""
    method = IntegratedGradients(n_steps=n_steps)
    task = replace(draw_task(Case(0, CONTENT), method), read=SquareRead(0.0))
    # ram_0 * mean of 2 a ram_0 over midpoints a, whose mean is 1/2. Left or right ends would miss it by 1/n.
    assert task.ram[0].item() ** 2 == pytest.approx(claim(method, task)[0].item(), rel=1e-12)


def test_integrated_gradients_with_odd_steps():
    """Seven midpoints, whose shares are no binary fractions, give the same on a square."""
    method = IntegratedGradients(n_steps=7)
    task = replace(draw_task(Case(0, CONTENT), method), read=SquareRead(0.0))
    # As above; Captum keeps the weight 1/7 in single precision, hence a relative error of up to 6e-8.
    assert task.ram[0].item() ** 2 == pytest.approx(claim(method, task)[0].item(), rel=1e-7)


@pytest.mark.parametrize("n_bytes", [6, 128])
def test_gradients_agree_on_content(n_bytes):
    """On content the vanilla and the sampler gradient both name the byte itself with 1, and nothing else."""
    case = Case(9, CONTENT, n_bytes=n_bytes)
    address = draw_question(case).outputs[CONTENT].ram_address
    # The read is the byte: d ram_c / d ram_i = 1 if i = c.
    expected = [1.0 if byte == address else 0.0 for byte in range(n_bytes)]
    assert expected == claim(vanilla_gradient, draw_task(case, vanilla_gradient)).tolist()
    assert expected == claim(sampler_gradient, draw_task(case, sampler_gradient)).tolist()


@pytest.mark.parametrize("n_bytes", [6, 128])
def test_vanilla_gradient_vanishes_on_position(n_bytes):
    """On position the vanilla gradient is exactly zero where the sampler gradient is not."""
    n_alive = 0
    for seed in range(30):
        case = Case(seed, POSITION, n_bytes=n_bytes)
        # An integer index has no gradient.
        assert [0.0] * n_bytes == claim(vanilla_gradient, draw_task(case, vanilla_gradient)).tolist()
        n_alive += claim(sampler_gradient, draw_task(case, sampler_gradient)).count_nonzero().item()
    # At whole numbers the slope is that of the neighbours, one of them missing at every edge of a sprite.
    assert n_alive > 0
