"""Class activation maps against Captum, against naive loops from the papers, and on paper."""

import math
from functools import partial
from itertools import pairwise

import pytest
import torch
from captum.attr import LayerGradCam
from torch import nn

from methods.cam import class_activation_map
from tests.methods.networks import (
    Convolutions,
    FrameByFrame,
    OneOfTwo,
    Transformer,
    TwoCameras,
    Wrapped,
    images,
    seeded,
)
from tests.naive import cam as naive

KINDS = ["gradcam", "gradcam++"]
SHAPES = {"images": (3, 3, 12, 10), "one frame": (2, 1, 3, 12, 10), "frames": (2, 4, 3, 12, 10)}


class OneMap(nn.Module):
    """A 1 x 1 convolution that changes nothing, and an output linear in its maps."""

    def __init__(self, gradients: torch.Tensor) -> None:
        super().__init__()
        n_channels = len(gradients)
        self.layer = nn.Conv2d(n_channels, n_channels, 1, bias=False, dtype=gradients.dtype)
        self.layer.weight.data.copy_(torch.eye(n_channels)[..., None, None])
        self.gradients = gradients

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """The maps times the gradients, added up: (B,)."""
        return (self.layer(maps) * self.gradients).sum((1, 2, 3))


def naive_heatmap(kind, maps, gradients, score, size):
    """The naive replica on the maps of one image; of Grad-CAM++ divided by exp(S), which ours leaves out."""
    if kind == "gradcam":
        return naive.upsampled(naive.grad_cam(maps, gradients), *size)
    heat = naive.grad_cam_plus_plus(maps, naive.exponential_derivatives(score, gradients))
    return naive.upsampled([[value / math.exp(score) for value in row] for row in heat], *size)


def naive_heatmaps(kind, maps, scores_of, size):
    """The naive replica on maps (B', C, h, w), and the rest of the network, which makes (B,) of them: (B, T, H, W)."""
    leaf = maps.detach().requires_grad_()
    scores = scores_of(leaf)
    (gradients,) = torch.autograd.grad(scores.sum(), leaf)
    each_score = scores.repeat_interleave(len(maps) // len(scores)).tolist()
    rows = zip(maps.tolist(), gradients.tolist(), each_score, strict=True)
    heatmaps = torch.tensor([naive_heatmap(kind, *row, size) for row in rows], dtype=torch.float64)
    return heatmaps.unflatten(0, (len(scores), -1))


def captum_heatmaps(model, inputs, layer, target):
    """Captum's LayerGradCam, then the ReLU and the upsampling that it leaves to its user."""
    heat = LayerGradCam(model, layer).attribute(inputs, target=target)
    size = inputs.shape[-2:]
    upsampled = nn.functional.interpolate(torch.relu(heat), size=size, mode="bilinear", align_corners=False)
    return upsampled.reshape(len(inputs), -1, *size).detach()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layer", ["first", "middle", "last", "relu"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_grad_cam_is_captums(seed, shape, layer, dtype):
    """Grad-CAM is Captum's LayerGradCam with ReLU and bilinear upsampling, for images and for folded frames."""
    model, inputs = seeded(seed, Convolutions, dtype).requires_grad_(), images(seed, *shape, dtype=dtype)
    expected = captum_heatmaps(model, inputs, model.get_submodule(layer), seed)
    heatmaps = class_activation_map(model, inputs, modules=layer, output=seed)
    assert expected.max() > 0
    torch.testing.assert_close(expected, heatmaps, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_replica(seed, shape, kind):
    """Both kinds are the loops of their papers' equations, on the last convolution, the output by its index."""
    model, inputs = seeded(seed, Convolutions), images(seed, *shape)
    maps = model.features(inputs.reshape(-1, 3, 12, 10))
    n_frames = len(maps) // len(inputs)
    for output in range(3):
        scores_of = partial(outputs_of, model, n_frames, output)
        expected = naive_heatmaps(kind, maps, scores_of, (12, 10))
        heatmaps = class_activation_map(model, inputs, kind=kind, output=output)
        assert expected.max() > 0
        torch.testing.assert_close(expected, heatmaps, rtol=1e-9, atol=1e-12)


def outputs_of(model, n_frames, output, maps):
    """One output of the network (B,) from the maps of its last convolution."""
    return model.rest(maps, n_frames)[:, output]


@pytest.mark.parametrize("seed", range(5))
def test_grad_cam_plus_plus_is_of_an_exponential(seed):
    """Up to the factor exp(S), Grad-CAM++ has the derivatives of exp(S) that autograd finds, one place at a time."""
    model, inputs = seeded(seed, Convolutions), images(seed, 1, 3, 12, 10)
    maps = torch.relu(model.features(inputs)).detach().requires_grad_()
    score = model.head(maps)[0, 1]
    derivatives = tuple(torch.zeros_like(maps) for _ in range(3))
    (first,) = torch.autograd.grad(torch.exp(score), maps, create_graph=True)
    for place in maps[0].detach().isfinite().nonzero().tolist():
        value = first[0][tuple(place)]
        for order in range(3):
            derivatives[order][0][tuple(place)] = value.detach()
            if order < 2:
                value = torch.autograd.grad(value, maps, create_graph=True)[0][0][tuple(place)]
    heat = naive.grad_cam_plus_plus(maps[0].tolist(), tuple(each[0].tolist() for each in derivatives))
    expected = torch.tensor([[naive.upsampled(heat, 12, 10)]], dtype=torch.float64) / score.exp().detach()
    heatmaps = class_activation_map(model, inputs, kind="gradcam++", modules="relu", output=1)
    assert expected.max() > 0
    torch.testing.assert_close(expected, heatmaps, rtol=1e-9, atol=1e-12)


MAPS = [[[1.0, 2.0], [3.0, 4.0]], [[4.0, 3.0], [2.0, 1.0]]]


@pytest.mark.parametrize(
    ("kind", "maps", "gradients", "expected"),
    [
        # w = (1 + 3 + 0 + 0) / 4 = 1 and (-2 - 2 + 0 + 0) / 4 = -1; 1 - 4 < 0, 2 - 3 < 0, 3 - 2, 4 - 1.
        ("gradcam", MAPS, [[[1, 3], [0, 0]], [[-2, 0], [0, -2]]], [[0, 0], [1, 3]]),
        # A mean below 0 on a map below 0 counts.
        ("gradcam", [[[-1.0, 2.0], [0.0, -3.0]]], [[[-4, 0], [0, 0]]], [[1, 0], [0, 3]]),
        # sum(A) = 10: alpha = 1/(2 + 10) for g = 1 and 4/(8 + 80) for g = 2; w = 1/12 + 2 * 1/22; g < 0 has none.
        ("gradcam++", MAPS[:1], [[[1, -1], [0, 2]]], [[23 / 132, 46 / 132], [69 / 132, 92 / 132]]),
        # alpha = 1/(2 - 2) is taken as 0, and so is 0/0 where g = 0.
        ("gradcam++", [[[-1.0, 0.0], [0.0, -1.0]]], [[[1, 0], [0, 0]]], [[0, 0], [0, 0]]),
        # sum(A) = -4: alpha = 1/(2 - 4) and w = -1/2 turns the map around.
        ("gradcam++", [[[-4.0, 2.0], [0.0, -2.0]]], [[[1, 0], [0, 0]]], [[2, 0], [0, 1]]),
        # g^3 is below what float32 holds; alpha is 1/(2 + 1e-19), so w = 5e-21.
        ("gradcam++", MAPS[:1], [[[1e-20, 0], [0, 0]]], [[5e-21, 1e-20], [1.5e-20, 2e-20]]),
    ],
)
def test_two_by_two_on_paper(kind, maps, gradients, expected):
    """A map of two by two gives the heatmap that is computed by hand."""
    model = OneMap(torch.tensor(gradients, dtype=torch.float32))
    heatmaps = class_activation_map(model, torch.tensor([maps]), kind=kind)
    torch.testing.assert_close(torch.tensor([[expected]], dtype=torch.float32), heatmaps, rtol=1e-6, atol=0.0)


def test_upsampling_on_paper():
    """Two places become four pixels whose centres lie at -1/4, 1/4, 3/4 and 5/4, clamped at the borders."""
    model = nn.Sequential(nn.AvgPool2d((1, 2)), OneMap(torch.ones(1, 1, 2)))
    heatmaps = class_activation_map(model, torch.tensor([[[[0.0, 0.0, 4.0, 4.0]]]]))
    assert [[[[0.0, 1.0, 3.0, 4.0]]]] == heatmaps.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_class_token", [False, True])
@pytest.mark.parametrize(("size", "grid"), [((12, 12), None), ((12, 12), (3, 3)), ((8, 12), (2, 3))])
def test_tokens(size, grid, has_class_token, kind):
    """Tokens are the map of their patches, row by row, with or without a class token in front."""
    rows, columns = grid or (3, 3)
    model = seeded(1, lambda: Transformer(rows * columns, has_class_token=has_class_token))
    inputs = images(2, 2, 3, *size)
    leaf = model.tokens(inputs).detach().requires_grad_()
    (gradients,) = torch.autograd.grad(model.rest(leaf)[:, 1].sum(), leaf)
    expected = []
    for tokens, gradient in zip(leaf.tolist(), gradients.tolist(), strict=True):
        maps, slopes = (naive.patch_maps(each, rows, columns) for each in (tokens, gradient))
        expected.append([naive_heatmap(kind, maps, slopes, 0.0, size)])
    heatmaps = class_activation_map(model, inputs, kind=kind, modules="blocks.0", output=1, grid=grid)
    assert heatmaps.max() > 0
    torch.testing.assert_close(torch.tensor(expected, dtype=torch.float64), heatmaps, rtol=1e-9, atol=1e-12)


def test_last_block_behind_a_class_token():
    """Where only the class token is read out, patches of the last block's output claim nothing; its input does."""
    model = seeded(1, lambda: Transformer(9, has_class_token=True))
    inputs = images(2, 2, 3, 12, 12)
    assert 0.0 == class_activation_map(model, inputs, modules="blocks.1").abs().max().item()
    assert class_activation_map(model, inputs, modules="blocks.0.norm2").max() > 0


def test_modules_are_averaged():
    """Several modules give the mean of their heatmaps, each once, by name or as objects."""
    model, inputs = seeded(0, Convolutions), images(0, 2, 3, 12, 10)
    first, last = (class_activation_map(model, inputs, modules=name) for name in ("first", "last"))
    both = class_activation_map(model, inputs, modules=["first", model.last, "last"])
    torch.testing.assert_close((first + last) / 2, both)


def test_default_is_the_last_convolution_that_matters():
    """The default passes over convolutions that do not run, do not matter to the output, or have a map of 1 x 1."""
    model, inputs = seeded(0, Convolutions), images(0, 2, 3, 12, 10)

    def forward(inner, frames):
        maps = inner.features(frames)
        inner.beside(maps)
        return inner.rest(maps * torch.sigmoid(inner.gate(maps.mean((2, 3), keepdim=True))))

    model.unused = nn.Conv2d(5, 5, 3).double()
    model.beside = nn.Conv2d(5, 5, 3).double()
    model.gate = nn.Conv2d(5, 5, 1).double()
    wrapped = Wrapped(model, forward)
    expected = class_activation_map(wrapped, inputs, modules="inner.last")
    assert expected.max() > 0
    assert torch.equal(expected, class_activation_map(wrapped, inputs))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("modules", [None, {"front": "front.first", "wrist": ["wrist.last", "wrist.first"]}])
def test_cameras(modules, kind, shared):
    """Each camera's heatmaps are those of the network of this camera alone, with an encoder each or a shared one."""
    model = seeded(3, lambda: TwoCameras(shared=shared))
    inputs = {"wrist": images(4, 2, 3, 12, 10), "bias": torch.ones(3), "front": images(5, 2, 2, 3, 12, 10)}
    heatmaps = class_activation_map(model, inputs, kind=kind, modules=modules, output=2)
    assert ["wrist", "front"] == list(heatmaps)
    for name, encoder in (("front", model.front), ("wrist", model.wrist)):
        others = {other: value for other, value in inputs.items() if other != name}
        # The other camera's encoder is a copy, so that a shared one runs once.
        alone = Wrapped(OneOfTwo(model, name, others), _with_copies)
        chosen = [encoder.last] if modules is None else [model.get_submodule(each) for each in _listed(modules[name])]
        expected = class_activation_map(alone, inputs[name], kind=kind, modules=chosen, output=2)
        assert expected.max() > 0
        torch.testing.assert_close(expected, heatmaps[name])


def _listed(names):
    return [names] if isinstance(names, str) else names


def _with_copies(alone, frames):
    """The product of the two encoders, the other's values taken as plain numbers from functions without hooks."""
    model, name = alone.inner, alone.name
    (other,) = {"front", "wrist"} - {name}
    shown = alone.others[other]
    encoder = getattr(model, other)
    functions = {key: value.clone() for key, value in encoder.state_dict().items()}
    twin = Convolutions().double()
    twin.load_state_dict(functions)
    return getattr(model, name)(frames) * twin(shown) + alone.others["bias"]


def test_camera_gives_a_tensor_or_a_dictionary():
    """One camera by name gives its tensor, a list a dictionary in its order, however many cameras there are."""
    model = seeded(3, TwoCameras)
    inputs = {"front": images(4, 2, 3, 12, 10), "wrist": images(5, 2, 3, 12, 10)}
    every = class_activation_map(model, inputs)
    assert torch.equal(every["wrist"], class_activation_map(model, inputs, camera="wrist"))
    assert ["wrist", "front"] == list(class_activation_map(model, inputs, camera=["wrist", "front"]))
    assert ["front"] == list(class_activation_map(model, inputs, camera=["front"]))
    single = Wrapped(model.front, lambda inner, given: inner(given["front"]))
    assert ["front"] == list(class_activation_map(single, {"front": inputs["front"], "text": ["left", "right"]}))


def test_output_selectors():
    """An index, a function and the default choose the same output where they should, the default for each sample."""
    model, inputs = seeded(0, Convolutions), images(1, 6, 3, 12, 10)
    by_index = [class_activation_map(model, inputs, output=index) for index in range(3)]
    assert not any(torch.allclose(one, other) for one, other in pairwise(by_index))
    largest = model(inputs).argmax(1).tolist()
    assert len(set(largest)) > 1
    expected = torch.stack([by_index[index][sample] for sample, index in enumerate(largest)])
    assert torch.equal(expected, class_activation_map(model, inputs))
    assert torch.equal(by_index[1], class_activation_map(model, inputs, output=lambda answer: answer[:, 1]))
    only = Wrapped(model, lambda inner, frames: inner(frames)[:, 1])
    assert torch.equal(by_index[1], class_activation_map(only, inputs))
    nested = Wrapped(model, lambda inner, frames: {"logits": inner(frames)})
    chosen = class_activation_map(nested, inputs, output=lambda answer: answer["logits"][:, 1])
    assert torch.equal(by_index[1], chosen)


def test_one_output_per_frame():
    """A network that gives an output for every frame explains each frame by its own."""
    model, inputs = seeded(0, Convolutions), images(1, 2, 4, 3, 12, 10)
    per_frame = Wrapped(model, lambda inner, frames: inner(frames.flatten(0, 1)))
    expected = class_activation_map(model, inputs.flatten(0, 1)).reshape(2, 4, 12, 10)
    torch.testing.assert_close(expected, class_activation_map(per_frame, inputs))


@pytest.mark.parametrize("kind", KINDS)
def test_frame_by_frame(kind):
    """An encoder that runs once per frame gives the same heatmaps as one that runs on folded frames."""
    model, inputs = seeded(0, Convolutions), images(1, 2, 4, 3, 12, 10)
    expected = class_activation_map(model, inputs, kind=kind)
    torch.testing.assert_close(expected, class_activation_map(FrameByFrame(model), inputs, kind=kind))


def test_frames_that_do_not_matter():
    """Where only the last of three frames reaches the output, the others claim exactly nothing."""
    model, inputs = seeded(0, Convolutions), images(1, 2, 3, 3, 12, 10)
    last = Wrapped(model, lambda inner, frames: inner.rest([inner.features(each) for each in frames.unbind(1)][-1]))
    heatmaps = class_activation_map(last, inputs)
    assert [0.0, 0.0] == heatmaps[:, :2].amax((0, 2, 3)).tolist()
    assert torch.equal(class_activation_map(model, inputs[:, -1])[:, 0], heatmaps[:, 2])


def test_one_map_counts_for_all_frames():
    """A network that stacks frames as channels has one map, which is repeated for every frame."""
    model, inputs = seeded(0, Convolutions), images(1, 2, 3, 1, 12, 10)
    stacked = Wrapped(model, lambda inner, frames: inner(frames.flatten(1, 2)))
    expected = class_activation_map(model, inputs.flatten(1, 2)).expand(-1, 3, -1, -1)
    assert torch.equal(expected, class_activation_map(stacked, inputs))


def test_samples_do_not_mix():
    """A batch gives what its samples give one by one."""
    model, inputs = seeded(0, Convolutions), images(1, 5, 2, 3, 12, 10)
    expected = torch.cat([class_activation_map(model, sample.unsqueeze(0)) for sample in inputs])
    torch.testing.assert_close(expected, class_activation_map(model, inputs))


def test_scaled():
    """Scaled maps have the maximum 1 each, and a map that claims nothing stays 0."""
    inputs = torch.tensor([[[[1.0, 2.0], [-3.0, 4.0]]], [[[-1.0, -2.0], [-3.0, -4.0]]]])
    heatmaps = class_activation_map(OneMap(torch.ones(1, 2, 2)), inputs, scaled=True)
    # w = 1: the ReLU of the inputs, divided by 4; the second sample has nothing above 0.
    assert [[[[0.25, 0.5], [0.0, 1.0]]], [[[0.0, 0.0], [0.0, 0.0]]]] == heatmaps.tolist()


def test_scaled_each_frame():
    """Frames are scaled one by one."""
    model, inputs = seeded(0, Convolutions), images(1, 2, 4, 3, 12, 10)
    plain = class_activation_map(model, inputs)
    expected = plain / plain.amax((2, 3), keepdim=True)
    torch.testing.assert_close(expected, class_activation_map(model, inputs, scaled=True))


def test_preprocess():
    """Preprocessing comes before the model, without a gradient, and the heatmaps have the size of what it was given."""
    model = seeded(0, Convolutions)
    screens = (100 + 30 * images(1, 2, 3, 24, 30)).to(torch.uint8)

    def preprocess(each):
        return nn.functional.interpolate(each.double() / 255, size=(12, 10), mode="area")

    maps = model.features(preprocess(screens))
    expected = naive_heatmaps("gradcam", maps, partial(outputs_of, model, 1, 0), (24, 30))
    heatmaps = class_activation_map(model, screens, preprocess=preprocess, output=0)
    assert expected.max() > 0
    torch.testing.assert_close(expected, heatmaps, rtol=1e-9, atol=1e-12)


def test_preprocess_of_every_camera():
    """The cameras that are not asked for are preprocessed as well; what is no image is left alone."""
    model = seeded(3, TwoCameras)
    inputs = {"front": images(4, 2, 3, 12, 10), "wrist": images(5, 2, 3, 12, 10)}
    doubled = {name: 2 * value for name, value in inputs.items()}
    expected = class_activation_map(model, {**doubled, "bias": torch.ones(3)}, camera="front")
    given = {**inputs, "bias": torch.ones(3)}
    assert torch.equal(expected, class_activation_map(model, given, camera="front", preprocess=lambda each: 2 * each))
