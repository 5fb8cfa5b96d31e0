"""The built-in methods on networks: naive replicas, laws, and what they decline."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from methods.grad_cam import GradCam
from methods.grad_cam_plus_plus import GradCamPlusPlus
from methods.integrated_gradients import IntegratedGradients
from methods.method import NotApplicable
from methods.network_cam import rectified
from methods.reads import NetworkRead
from methods.registry import registered, resolve
from methods.sampler_gradient import sampler_gradient
from methods.vanilla_gradient import vanilla_gradient
from tests.methods.tasks import CASES, NETWORK_CASES, NetworkCase, draw_network_task, draw_task, generator_of
from tests.naive import cam as naive

EVERY_CASE = pytest.mark.parametrize("case", NETWORK_CASES, ids=str)


def claim(method, task):
    """What a method claims of a task, as an array."""
    return method.claim(task, generator=generator_of(0)).numpy()


def sharp(task):
    """The task in double precision, for differences."""
    return replace(task, frames=task.frames.double(), network=task.network.double())


def difference_quotients(task, at):
    """The explained output's slope along every number of the input, by central differences."""
    slopes = np.zeros(at.numel())
    step = 1e-6
    for index in range(at.numel()):
        shift = torch.zeros(at.numel(), dtype=torch.float64)
        shift[index] = step
        shift = shift.reshape(at.shape)
        slopes[index] = (task.read(at + shift) - task.read(at - shift)).item() / (2 * step)
    return slopes.reshape(at.shape)


@EVERY_CASE
def test_vanilla_gradient_is_the_slope(case):
    """The vanilla gradient is the signed slope of the explained output along each pixel."""
    task = sharp(draw_network_task(case))
    np.testing.assert_allclose(
        difference_quotients(task, task.frames), claim(vanilla_gradient, task), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("n_steps", [1, 4])
@EVERY_CASE
def test_integrated_gradients_are_averaged_slopes(case, n_steps):
    """IG returns the multipliers: the slope averaged over the midpoints of the path from black, not times the input."""
    task = sharp(draw_network_task(case))
    points = [task.frames * (step + 0.5) / n_steps for step in range(n_steps)]
    expected = np.mean([difference_quotients(task, point) for point in points], axis=0)
    np.testing.assert_allclose(expected, claim(IntegratedGradients(n_steps), task), rtol=0, atol=1e-6)


def test_integrated_gradients_are_complete():
    """Multipliers times the input add up to the output minus that of a black screen, up to the steps."""
    task = sharp(draw_network_task(NETWORK_CASES[0]))
    total = (claim(IntegratedGradients(512), task) * task.frames.numpy()).sum()
    difference = (task.read(task.frames) - task.read(torch.zeros_like(task.frames))).item()
    assert pytest.approx(difference, rel=2e-3) == total


def maps_and_gradients(task, layer):
    """A layer's maps, and the explained output's gradient at them, without hooks: the rest of the network by hand."""
    network = task.network
    pictures = task.frames if task.frames.ndim == 4 else task.frames.unsqueeze(0)
    maps = network.features[: layer + 1](pictures).detach().requires_grad_()
    rest = network.features[layer + 1 :](maps.clone())
    score = network.head(rest.reshape(1, -1))[0, 1]
    [gradient] = torch.autograd.grad(score, maps)
    return maps.detach(), gradient


@pytest.mark.parametrize(("method", "layer"), [(GradCam(), 2), (GradCamPlusPlus(), 3)], ids=["grad_cam", "plus_plus"])
@EVERY_CASE
def test_class_activation_maps_by_hand(method, layer, case):
    """Grad-CAM of the last convolution, Grad-CAM++ of the ReLU behind it: the papers' sums, upsampled."""
    task = sharp(draw_network_task(case))
    maps, gradients = maps_and_gradients(task, layer)
    heats = []
    for frame_maps, frame_gradients in zip(maps.tolist(), gradients.tolist(), strict=True):
        if layer == 2:
            heats.append(naive.grad_cam(frame_maps, frame_gradients))
        else:
            # Y = exp(S), whose factor is the same all over: with S = 0 the derivatives are powers of the gradient.
            derivatives = naive.exponential_derivatives(0.0, frame_gradients)
            heats.append(naive.grad_cam_plus_plus(frame_maps, derivatives))
    heat = torch.tensor(heats, dtype=torch.float64).unsqueeze(1)
    size = task.frames.shape[-2:]
    upsampled = torch.nn.functional.interpolate(heat, size=size, mode="bilinear", align_corners=False)
    expected = upsampled if task.frames.ndim == 4 else upsampled[0]
    np.testing.assert_allclose(expected.expand_as(task.frames), claim(method, task), rtol=0, atol=1e-9)


def test_layers_are_named():
    """A layer's dotted name chooses it; several with + give their mean."""
    task = draw_network_task(NETWORK_CASES[0])
    first, last = (claim(GradCam(layer), task) for layer in ("features.0", "features.2"))
    np.testing.assert_array_equal(last, claim(GradCam(), task))
    np.testing.assert_allclose((first + last) / 2, claim(GradCam("features.0+features.2"), task), rtol=1e-6)
    assert (first != last).any()


@pytest.mark.parametrize(
    ("layer", "error", "words"),
    [
        ("features.7", ValueError, "modules: unknown module 'features.7'; did you mean"),
        ("head", RuntimeError, r"'.*head' \(Linear\): expected maps .* got shape \(1, 3\); name another"),
    ],
)
def test_a_wrong_layer_is_told(layer, error, words):
    """A layer that is not there, or has no map, is a clear error and leaves no hook."""
    task = draw_network_task(NETWORK_CASES[0])
    with pytest.raises(error, match=words):
        claim(GradCam(layer), task)
    assert [] == [hook for part in task.read.modules() for hook in part._forward_hooks.values()]


class Flat(torch.nn.Module):
    """A network without a convolution."""

    def forward(self, inputs):
        """One number."""
        return inputs.flatten(1).sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("network", "shape", "words"),
    [
        (Flat(), (2, 12, 12), "the network has no Conv2d; name a layer"),
        (Flat(), (84, 84, 2), r"it explains inputs \(C, H, W\) or \(T, C, H, W\), not \(84, 84, 2\)"),
        (Flat(), (12,), r"it explains inputs \(C, H, W\) or \(T, C, H, W\), not \(12,\)"),
    ],
)
def test_what_has_no_map_is_declined(network, shape, words):
    """A network without convolutions, or whose input is no image, is not applicable, with the reason."""
    task = draw_network_task(NETWORK_CASES[0])
    task = replace(task, network=network, read=NetworkRead(network, 0, shape), frames=torch.rand(shape))
    for method in (GradCam(), GradCamPlusPlus()):
        with pytest.raises(NotApplicable, match=words):
            claim(method, task)


def test_only_a_relu_right_behind_counts():
    """Grad-CAM++ takes the ReLU that follows the convolution in the same `Sequential`, and else the convolution."""
    convolution, relu = torch.nn.Conv2d(1, 1, 1), torch.nn.ReLU()
    assert [relu] == rectified(torch.nn.Sequential(torch.nn.Sequential(convolution, relu)), convolution)
    assert rectified(torch.nn.Sequential(convolution, torch.nn.Tanh(), relu), convolution) is None
    assert rectified(torch.nn.ModuleList([convolution, relu]), convolution) is None


def test_a_subject_that_is_not_declared_is_declined():
    """The sampler is the machine's, class activation maps are the network's."""
    with pytest.raises(NotApplicable, match="it explains machine, not network"):
        claim(sampler_gradient, draw_network_task(NETWORK_CASES[0]))
    with pytest.raises(NotApplicable, match="it explains network, not machine"):
        claim(GradCam(), draw_task(CASES[0], GradCam()))


def test_half_precision_works():
    """A network in half precision is explained in its own type; the map is near that in single precision."""
    task = draw_network_task(NetworkCase(0, (2, 12, 12)))
    for method in (vanilla_gradient, GradCam()):
        single = claim(method, task)
        half = claim(method, replace(task, network=task.network.half()))
        np.testing.assert_allclose(single, half, rtol=0, atol=0.02 * np.abs(single).max())
        task.network.float()


def test_every_network_method_has_its_replica_here():
    """Each registered method that explains networks is one of those above, or of `test_network_gradients.py`."""
    ours = {name for name, point in registered().items() if point.value.startswith("methods.")}
    explaining = {name for name in ours if "network" in resolve(name).declaration.subjects}
    above = {"vanilla_gradient", "integrated_gradients", "grad_cam", "grad_cam_plus_plus"}
    assert above | {"deep_lift", "guided_backprop", "smoothgrad"} == explaining
