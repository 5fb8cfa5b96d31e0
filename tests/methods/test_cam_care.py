"""What class activation maps leave as it was, and the numbers, modes and habits of networks they work with."""

import contextlib

import pytest
import torch
from torch import nn

from methods.cam import class_activation_map
from tests.methods.networks import Convolutions, Transformer, Wrapped, hooks_of, images, seeded

KINDS = ["gradcam", "gradcam++"]
INPUTS = images(1, 2, 3, 12, 10)
FRAMES = images(1, 2, 3, 3, 12, 10)


def model() -> Convolutions:
    """The network of most tests."""
    return seeded(0, Convolutions)


class Normalised(nn.Module):
    """A convolution, batch normalisation and dropout, each of which behaves differently in training."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.normalisation = nn.BatchNorm2d(4)
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Flatten(), nn.Linear(320, 2))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """The outputs (B, 2)."""
        return self.head(self.normalisation(self.convolution(frames)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trainable", [False, True])
def test_network_is_left_as_it_was(trainable, kind):
    """Parameters, buffers, gradients, modes, output, input and the global generator are the same afterwards."""
    network = seeded(0, Normalised).requires_grad_(trainable)
    network.train()
    network.normalisation.eval()
    gradient = images(3, 2, 320)
    network.head[2].weight.grad = gradient.clone()
    inputs = INPUTS.clone()
    state = {name: value.clone() for name, value in network.state_dict().items()}
    modes = [module.training for module in network.modules()]
    generator = torch.get_rng_state()
    class_activation_map(network, inputs, kind=kind)
    assert modes == [module.training for module in network.modules()]
    assert [trainable] * 6 == [parameter.requires_grad for parameter in network.parameters()]
    assert torch.equal(gradient, network.head[2].weight.grad)
    assert [network.head[2].weight] == [each for each in network.parameters() if each.grad is not None]
    assert all(torch.equal(value, network.state_dict()[name]) for name, value in state.items())
    assert torch.equal(INPUTS, inputs)
    assert not inputs.requires_grad
    assert torch.equal(generator, torch.get_rng_state())


def test_output_is_the_same_before_and_after():
    """The network answers to the last bit what it answered before."""
    network = model()
    before = network(INPUTS)
    class_activation_map(network, INPUTS)
    assert torch.equal(before, network(INPUTS))
    assert not network(INPUTS).requires_grad


def test_training_mode_does_not_matter():
    """A network in training mode is explained as it is in evaluation mode, twice the same."""
    network = seeded(0, Normalised)
    expected = class_activation_map(network, INPUTS)
    network.train()
    assert torch.equal(expected, class_activation_map(network, INPUTS))
    assert torch.equal(expected, class_activation_map(network, INPUTS))


def test_frozen_or_not_does_not_matter():
    """Frozen parameters change no heatmap."""
    expected = class_activation_map(model().requires_grad_(), FRAMES)
    assert torch.equal(expected, class_activation_map(model(), FRAMES))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_under_no_grad(mode):
    """A caller who has switched gradients off gets the same heatmap, also of a tensor that was made there."""
    expected = class_activation_map(model(), INPUTS)
    network = model()
    with mode():
        assert torch.equal(expected, class_activation_map(network, INPUTS))
        assert torch.equal(expected, class_activation_map(network, INPUTS * 1))
        assert torch.equal(expected, class_activation_map(network, INPUTS * 1, preprocess=lambda each: each))
        assert mode is torch.no_grad or torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()


def test_heatmaps_carry_no_graph():
    """A heatmap is a plain tensor, also of an input that had a gradient."""
    inputs = INPUTS.clone().requires_grad_()
    heatmaps = class_activation_map(model().requires_grad_(), inputs)
    assert not heatmaps.requires_grad
    assert inputs.grad is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", ["first", "middle", "last", "relu"])
def test_in_place(layer, kind):
    """A ReLU in place, behind the module or as the module, changes no heatmap."""
    in_place = seeded(0, lambda: Convolutions(inplace=True))
    expected = class_activation_map(model(), INPUTS, kind=kind, modules=layer)
    assert torch.equal(expected, class_activation_map(in_place, INPUTS, kind=kind, modules=layer))


def test_in_place_on_the_input_and_on_an_alias():
    """A network may write into its input, and into a tensor that a module handed on; preprocessing may write too."""

    def forward(inner, frames):
        maps = inner.features(frames.mul_(2))
        handed_on = inner.alias(maps)
        maps.zero_()
        return inner.rest(handed_on)

    network, inputs = Wrapped(model(), forward), INPUTS.clone()
    network.inner.alias = nn.Identity()
    expected = class_activation_map(network.inner, 2 * INPUTS, modules="last")
    assert torch.equal(expected, class_activation_map(network, inputs, modules="inner.alias"))
    assert torch.equal(expected, class_activation_map(network.inner, inputs, preprocess=lambda each: each.mul_(2)))
    assert torch.equal(INPUTS, inputs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_half_precision(dtype, tolerance, kind):
    """In half precision the heatmap is that of double precision up to rounding, and of type float32."""
    half, inputs = seeded(0, Convolutions, dtype), FRAMES.to(dtype)
    # The rounded weights in double precision.
    exact = seeded(0, Convolutions, dtype).double()
    expected = class_activation_map(exact, inputs.double(), kind=kind, output=1)
    heatmaps = class_activation_map(half, inputs, kind=kind, output=1)
    assert torch.float32 == heatmaps.dtype
    largest = expected.max().item()
    torch.testing.assert_close(expected, heatmaps.double(), rtol=0, atol=4 * tolerance * largest)


def test_half_precision_sums_in_float32():
    """Grad-CAM of a half-precision map whose weighted sum is too large for half precision is finite."""
    network = nn.Sequential(nn.Conv2d(1, 2, 1, bias=False), nn.AvgPool2d(2), nn.Flatten()).half()
    nn.init.ones_(network[0].weight)
    inputs = torch.full((1, 1, 2, 2), 40000.0, dtype=torch.float16)
    heatmaps = class_activation_map(network, inputs, output=lambda means: 4 * means.float().sum(1))
    # w = 4 / 4 for both channels, and 40000 + 40000 is beyond 65504, the largest half.
    assert [[[[80000.0] * 2] * 2]] == heatmaps.tolist()


def test_frozen_torch_transformer():
    """Torch's own encoder layers, frozen and in evaluation mode, run their modules and not their fused path."""
    network = seeded(1, lambda: Transformer(9, has_class_token=False))
    inputs = images(2, 1, 3, 12, 12)
    expected = class_activation_map(network, inputs, modules="blocks.0")
    # The output of a layer whose normalisation comes last is the output of that normalisation.
    assert torch.equal(expected, class_activation_map(network, inputs, modules="blocks.0.norm2"))


@pytest.mark.parametrize("modules", [None, "first", ["first", "relu"]])
def test_no_hook_stays(modules):
    """After success no module has a hook but the user's own, which still runs."""
    network, seen = model(), []
    network.last.register_forward_hook(lambda *_: seen.append("own"))
    class_activation_map(network, INPUTS, modules=modules)
    assert ["last"] == hooks_of(network)
    assert ["own"] == seen


def test_hooks_are_there_while_the_network_runs():
    """The check for hooks sees those of a call that is still going on."""
    seen = []

    def forward(inner, frames):
        seen.append(hooks_of(inner))
        raise KeyError("stop")

    with contextlib.suppress(KeyError):
        class_activation_map(Wrapped(model(), forward), INPUTS, modules=["inner.first", "inner.relu"])
    assert [["first", "relu"]] == seen
