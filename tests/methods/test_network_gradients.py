"""DeepLIFT, guided backpropagation and SmoothGrad on networks: replicas with matrices, and networks that defy hooks."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from harness.claims import CountedRead, hooked
from methods.captum_calls import HOOKED
from methods.deep_lift import deep_lift
from methods.guided_backprop import guided_backprop
from methods.method import NotApplicable
from methods.reads import NetworkRead
from methods.smoothgrad import SmoothGrad
from methods.vanilla_gradient import vanilla_gradient
from tests.methods.tasks import NETWORK_CASES, draw_network_task, generator_of
from tests.methods.test_network_methods import EVERY_CASE, claim, sharp
from tests.naive import gradients as naive

HOOKING = pytest.mark.parametrize("method", [deep_lift, guided_backprop], ids=lambda one: one.label)


def layers_of(task):
    """The network of a task as matrices: each convolution is asked about every unit vector."""
    network, shape = task.network, task.frames.shape
    pictures = task.frames if task.frames.ndim == 4 else task.frames.unsqueeze(0)
    hidden = network.features[0](pictures).shape
    layers = [_matrix(network.features[0], shape), _matrix(network.features[2], hidden)]
    return [*layers, (network.head.weight.numpy(), network.head.bias.numpy())]


def _matrix(convolution, shape):
    units = torch.eye(int(np.prod(shape)), dtype=torch.float64)
    both = torch.cat([torch.zeros(1, len(units), dtype=torch.float64), units])
    answers = convolution(both.reshape(-1, *shape[-3:])).reshape(len(both), -1).numpy()
    return (answers[1:] - answers[0]).T, answers[0]


@pytest.mark.parametrize(
    ("method", "replica"),
    [(deep_lift, naive.rescaled_gradient), (guided_backprop, naive.guided_gradient)],
    ids=["deep_lift", "guided_backprop"],
)
@EVERY_CASE
def test_replica(case, method, replica):
    """DeepLIFT and guided backpropagation are those of the papers, with each layer as one matrix; in place or not."""
    task = sharp(draw_network_task(case))
    expected = replica(layers_of(task), task.frames.flatten().numpy(), 1).reshape(task.frames.shape)
    np.testing.assert_allclose(expected, claim(method, task), rtol=0, atol=1e-9)
    # Were it the gradient all the same, the replica would prove nothing.
    assert np.abs(expected - claim(vanilla_gradient, task)).max() > 1e-3


def slopes(task, at):
    """The explained output's slope along every number of the input, by central differences, all at once."""
    step = 1e-6
    shifts = step * torch.eye(at.numel(), dtype=at.dtype).reshape(-1, *at.shape)
    return ((task.read(at + shifts) - task.read(at - shifts)) / (2 * step)).reshape(at.shape).numpy()


@EVERY_CASE
def test_smoothgrad_is_the_mean_slope_at_noisy_inputs(case):
    """SmoothGrad is the mean of signed slopes at inputs with noise of 0.15 times their range, or the share given."""
    task = sharp(draw_network_task(case))
    noise = torch.randn(3, *task.frames.shape, generator=generator_of(0), dtype=torch.float64)
    spread = (task.frames.max() - task.frames.min()).item()
    for method, share in ((SmoothGrad(3), 0.15), (SmoothGrad(3, noise_share=0.4), 0.4)):
        expected = np.mean([slopes(task, task.frames + share * spread * each) for each in noise], axis=0)
        np.testing.assert_allclose(expected, claim(method, task), rtol=0, atol=1e-6)


def test_smoothgrad_without_noise():
    """Without noise SmoothGrad is the gradient."""
    task = draw_network_task(NETWORK_CASES[0])
    np.testing.assert_allclose(
        claim(vanilla_gradient, task), claim(SmoothGrad(70, noise_share=0.0), task), rtol=0, atol=1e-4
    )


@EVERY_CASE
def test_deep_lift_is_complete(case):
    """The multipliers times the input add up to the output minus that of a black screen."""
    task = sharp(draw_network_task(case))
    difference = (task.read(task.frames) - task.read(torch.zeros_like(task.frames))).item()
    assert difference == pytest.approx((claim(deep_lift, task) * task.frames.numpy()).sum(), rel=1e-9)


def test_open_networks_need_no_guidance():
    """Where all weights are positive every ReLU is open and every gradient positive: all methods give the gradient."""
    task = sharp(draw_network_task(NETWORK_CASES[0]))
    for parameter in task.network.parameters():
        parameter.abs_()
    expected = claim(vanilla_gradient, task)
    for method in (guided_backprop, deep_lift, SmoothGrad(4, noise_share=0.0)):
        np.testing.assert_allclose(expected, claim(method, task), rtol=1e-9)


# --- networks that defy hooks ---


class Residual(torch.nn.Module):
    """W (relu(V x) + V x): what goes into the ReLU goes past it as well."""

    def __init__(self):
        super().__init__()
        self.first, self.rectify, self.second = torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad=False).normal_(generator=generator_of(parameter.numel()))

    def forward(self, inputs):
        """(B, 2)."""
        hidden = self.first(inputs)
        return self.second(self.rectify(hidden) + hidden)


class Chain(torch.nn.Module):
    """Three layers with a rectifier behind the first two: the same twice, or one each."""

    def __init__(self, first, second):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(6, 5), torch.nn.Linear(5, 4), torch.nn.Linear(4, 2)])
        self.first, self.second = first, second
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad=False).normal_(generator=generator_of(parameter.numel()))

    def forward(self, inputs):
        """(B, 2)."""
        first, second, last = self.layers
        return last(self.second(second(self.first(first(inputs)))))


def vector_task(network):
    """A task about the second output of a network of six numbers, in double precision."""
    task = draw_network_task(NETWORK_CASES[0])
    frames = torch.randn(6, generator=generator_of(3), dtype=torch.float64)
    return replace(task, network=network.double(), read=NetworkRead(network, 1, (6,)), frames=frames)


def test_a_residual_connection_keeps_its_gradient():
    """Where the input of a ReLU also goes past it, only the gradient through the ReLU is changed."""
    network = Residual()
    task = vector_task(network)
    first, second = network.first.weight.numpy(), network.second.weight.numpy()[1]
    here = first @ task.frames.numpy() + network.first.bias.numpy()
    there = network.first.bias.numpy()
    guided = (np.where(here > 0, np.maximum(second, 0.0), 0.0) + second) @ first
    np.testing.assert_allclose(guided, claim(guided_backprop, task), rtol=1e-9)
    steepness = (np.maximum(here, 0.0) - np.maximum(there, 0.0)) / (here - there)
    np.testing.assert_allclose((second * steepness + second) @ first, claim(deep_lift, task), rtol=1e-9)


def test_a_shared_relu_guides_at_every_use():
    """Guided backpropagation through one ReLU module that is used twice is that through two."""
    shared = torch.nn.ReLU()
    expected = claim(guided_backprop, vector_task(Chain(torch.nn.ReLU(), torch.nn.ReLU())))
    np.testing.assert_array_equal(expected, claim(guided_backprop, vector_task(Chain(shared, shared))))
    assert (expected != claim(vanilla_gradient, vector_task(Chain(shared, shared)))).any()


def test_deep_lift_declines_a_shared_relu():
    """DeepLIFT can't tell the uses of one module apart: such a network is declined, and nothing is left on it."""
    shared = torch.nn.ReLU()
    task = vector_task(Chain(shared, shared))
    with pytest.raises(NotApplicable, match="the network uses one ReLU module twice; give each use its own"):
        claim(deep_lift, task)
    assert {} == hooked(task.read)
    assert set(vars(torch.nn.ReLU())) == set(vars(shared))


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (torch.nn.Tanh(), torch.nn.GELU(), "the network has no torch.nn.ReLU module"),
        (torch.relu, torch.nn.functional.relu, "the network has no torch.nn.ReLU module"),
        (torch.nn.ReLU(), torch.relu, "1 of the network's ReLUs are functions; make each a torch.nn.ReLU module"),
        (torch.nn.functional.relu, torch.nn.ReLU(inplace=True), "1 of the network's ReLUs are functions"),
    ],
)
def test_guided_backprop_declines_what_it_cannot_hook(first, second, words):
    """A network without ReLU modules, or with a ReLU that is a function, is declined with the reason."""
    task = vector_task(Chain(first, second))
    with pytest.raises(NotApplicable, match=words):
        claim(guided_backprop, task)
    assert {} == hooked(task.read)


@pytest.mark.parametrize("functional", [torch.relu, torch.tanh, torch.nn.functional.silu])
def test_deep_lift_declines_what_it_cannot_see(functional):
    """A function between modules breaks completeness, so the network is declined and told what to use."""
    task = vector_task(Chain(torch.nn.ReLU(), functional))
    with pytest.raises(NotApplicable, match=r"add up to .*: Captum misses a nonlinearity; use one module each"):
        claim(deep_lift, task)
    assert {} == hooked(task.read)


@pytest.mark.parametrize("kind", [torch.nn.ELU, torch.nn.LeakyReLU, torch.nn.Sigmoid, torch.nn.Tanh, torch.nn.Softplus])
def test_deep_lift_knows_other_activations(kind):
    """Every other activation of one number that Captum hooks is complete too, and is in our list."""
    assert kind in HOOKED
    task = vector_task(Chain(kind(), kind()))
    difference = (task.read(task.frames) - task.read(torch.zeros(6, dtype=torch.float64))).item()
    assert difference == pytest.approx((claim(deep_lift, task) * task.frames.numpy()).sum(), rel=1e-9)


class Loud(torch.nn.Module):
    """A layer that warns whenever it runs."""

    n_runs = 0

    def forward(self, inputs):
        """The inputs."""
        self.n_runs += 1
        warnings.warn("the network's own", stacklevel=1)
        return inputs


@HOOKING
def test_only_captums_warnings_are_silent(method):
    """Every warning of the network itself comes through, and no other."""
    loud = Loud()
    task = vector_task(Chain(torch.nn.Sequential(torch.nn.ReLU(), loud), torch.nn.ReLU()))
    with pytest.warns(UserWarning, match="the network's own") as caught:
        claim(method, task)
    assert ["the network's own"] * loud.n_runs == [str(each.message) for each in caught]


@HOOKING
@EVERY_CASE
def test_gradients_on_networks_are_counted(case, method):
    """The judge counts the gradients of methods with hooks: one, and for DeepLIFT one at the black screen too."""
    task = draw_network_task(case)
    task = replace(task, read=CountedRead(task.read))
    claim(method, task)
    assert {"deep_lift": 2, "guided_backprop": 1}[method.label] == task.read.n_gradients
