"""What a network sees, and what it says."""

import numpy as np
import pytest
import torch

from oracle.network import SIDE, Network, input_dtype, preprocess
from oracle.output import network_output
from tests.naive.network import area_resized
from tests.toy import WeightedPixels


@pytest.mark.parametrize("shape", [(210, 160), (250, 160), (84, 84), (8, 10)])
def test_preprocessing_is_resizing_by_area(shape):
    """Each cell is the mean of the pixels it touches, over 255, for every height of screen."""
    frames = np.random.default_rng(0).integers(0, 256, (2, *shape))
    seen = preprocess(torch.from_numpy(frames.astype(np.float32)))
    assert (2, SIDE, SIDE) == seen.shape
    np.testing.assert_allclose(area_resized(frames, SIDE) / 255, seen.numpy(), rtol=0, atol=1e-6)


def test_preprocessing_is_differentiable():
    """The gradient of a cell is the share that each pixel has in it: a cell of 3 by 2 pixels gives each a sixth."""
    frames = torch.zeros(1, 3 * SIDE, 2 * SIDE, requires_grad=True)
    preprocess(frames)[0, 5, 7].backward()
    expected = torch.zeros(3 * SIDE, 2 * SIDE)
    expected[15:18, 14:16] = 1 / 6 / 255
    torch.testing.assert_close(expected, frames.grad[0])


def test_a_batch_is_resized_frame_by_frame():
    """Leading axes change nothing."""
    frames = torch.rand(3, 2, 210, 160)
    torch.testing.assert_close(torch.stack([preprocess(each) for each in frames]), preprocess(frames), rtol=0, atol=0)


def test_values_come_in_the_order_of_the_outputs():
    """The values are those of the explained columns, in the order of the outputs."""
    weights = torch.arange(3.0).reshape(3, 1, 1, 1)
    outputs = tuple(network_output(name, "content", column) for name, column in (("last", 2), ("second", 1)))
    network = Network("three", WeightedPixels(weights), preprocess, outputs)
    assert [20.0, 10.0] == network.values(np.full((1, 1, 1), 10.0, np.float32)).tolist()


def test_the_type_of_a_network_s_input():
    """The input has the type of the floating point parameters; whole numbers among them say nothing."""
    quantised = torch.nn.Module()
    for name, dtype in (("levels", torch.int8), ("scale", torch.float64)):
        quantised.register_parameter(name, torch.nn.Parameter(torch.zeros(1, dtype=dtype), requires_grad=False))
    assert [torch.float64, torch.float32] == [input_dtype(quantised), input_dtype(torch.nn.ReLU())]
