"""Cascading weight randomisation: which layers change, how much weights keep of themselves, how alike two maps are."""

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.sanity import (
    STILL_ALIKE,
    CurvePoint,
    Similarity,
    curve_point,
    depths,
    has_changed,
    parametrised_layers,
    randomised,
    similarity,
)

LAYERS = ("head", "body.3", "body.1", "body.0", "")


class Small(torch.nn.Module):
    """Layers in the order in which they are run, one without parameters, one with buffers, and a token of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.token = torch.nn.Parameter(torch.full((1,), 2.0))
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.Conv2d(3, 2, 3)
        )
        self.head = torch.nn.Linear(2, 50)


@pytest.fixture
def network() -> Small:
    """Weights that a seed has drawn, in evaluation mode, frozen."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return Small().eval().requires_grad_(requires_grad=False)


def seeded(seed: int) -> torch.Generator:
    """A generator of its own."""
    return torch.Generator().manual_seed(seed)


def changed(before: torch.nn.Module, after: torch.nn.Module) -> set[str]:
    """The names of the parameters and buffers that differ in any bit."""
    now = after.state_dict()
    return {name for name, value in before.state_dict().items() if not torch.equal(value, now[name])}


# --- weights --------------------------------------------------------------------------------------------------------


def test_layers_go_from_the_output_back(network):
    """Parts with parameters of their own are listed in reverse order of registration, the network itself last."""
    assert parametrised_layers(network) == LAYERS


# A normalisation starts with biases of 0: drawn with a magnitude of 0 they stay.
DRAWN = [
    {"head.weight", "head.bias"},
    {"body.3.weight", "body.3.bias"},
    {"body.1.weight"},
    {"body.0.weight", "body.0.bias"},
    {"token"},
]


@pytest.mark.parametrize("n_layers", range(len(LAYERS) + 1))
def test_only_the_top_layers_change(network, n_layers):
    """The parameters of the top k layers change; every other one and all buffers are bit-identical."""
    after = randomised(network, n_layers, generator=seeded(0))
    assert set().union(*DRAWN[:n_layers]) == changed(network, after)


def test_the_network_itself_stays(network):
    """What is randomised is a copy, as frozen and in the same mode as the network."""
    before = {name: value.clone() for name, value in network.state_dict().items()}
    after = randomised(network, len(LAYERS), generator=seeded(0))
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert ({False}, False) == ({each.requires_grad for each in after.parameters()}, after.training)


def test_a_seed_decides_the_weights(network):
    """The same seed gives the same weights, another seed others, and the global generator plays no part."""
    first = randomised(network, 2, generator=seeded(5))
    torch.rand(3)
    assert set() == changed(first, randomised(network, 2, generator=seeded(5)))
    assert DRAWN[0] | DRAWN[1] == changed(first, randomised(network, 2, generator=seeded(6)))


def test_randomisation_cascades(network):
    """With one seed, a layer has the same weights however many layers below it are redrawn too."""
    assert set().union(*DRAWN[2:]) == changed(
        randomised(network, 2, generator=seeded(1)), randomised(network, 5, generator=seeded(1))
    )


def test_weights_keep_mean_and_deviation():
    """10,000 weights of mean 3 and deviation 0.5 have these again, within five standard errors."""
    layer = torch.nn.Linear(100, 100, bias=False)
    with torch.no_grad():
        # Two values, far from normal: only mean and deviation can survive.
        layer.weight.copy_(torch.tensor([2.5, 3.5]).repeat(5000).reshape(100, 100))
    weight = randomised(layer, 1, generator=seeded(0)).weight.detach()
    # Standard errors: 0.5 / sqrt(10000), and 0.5 / sqrt(20000).
    assert pytest.approx(3.0, abs=0.025) == float(weight.mean())
    assert pytest.approx(0.5, abs=0.018) == float(weight.std())


def test_equal_weights_are_drawn_by_their_magnitude():
    """A tensor of equal numbers -2 becomes draws from N(0, 2)."""
    layer = torch.nn.Linear(100, 100, bias=False)
    torch.nn.init.constant_(layer.weight, -2.0)
    weight = randomised(layer, 1, generator=seeded(0)).weight.detach()
    assert pytest.approx(0.0, abs=0.1) == float(weight.mean())
    assert pytest.approx(2.0, abs=0.07) == float(weight.std())


def test_whole_numbers_stay():
    """A parameter of integers, as quantised layers have it, is left alone, and its neighbour is not."""
    layer = torch.nn.Linear(2, 2)
    layer.codes = torch.nn.Parameter(torch.tensor([1, 2, 3]), requires_grad=False)
    assert {"weight", "bias"} == changed(layer, randomised(layer, 1, generator=seeded(0)))


@given(n_layers=st.integers(1, 300), most=st.integers(2, 40))
def test_depths_reach_from_the_first_layer_to_all(n_layers, most):
    """The points of a curve grow from 1 to all layers, each once, and no more than asked for."""
    found = depths(n_layers, most)
    assert (1, n_layers, min(n_layers, most)) == (found[0], found[-1], len(found))
    assert sorted(set(found)) == list(found)


def test_a_network_without_layers_has_no_curve():
    """No layer, no point."""
    assert () == depths(0)


# --- maps -----------------------------------------------------------------------------------------------------------

NUMBERS = st.floats(-100, 100, allow_nan=False).map(lambda value: round(value, 1))
MAPS = arrays.arrays(np.float64, (2, 3, 4), elements=NUMBERS).filter(lambda each: len(np.unique(np.abs(each))) > 1)


@given(MAPS)
def test_a_map_is_like_itself_and_opposed_to_its_negative(drawn):
    """With itself a map has 1 and 1; with its negative 1 for absolute values and -1 with signs."""
    same, opposite = similarity(drawn, drawn), similarity(drawn, -drawn)
    assert pytest.approx((1.0, 1.0)) == (same.absolute, same.signed)
    assert pytest.approx((1.0, -1.0)) == (opposite.absolute, opposite.signed)


@given(MAPS, MAPS)
def test_similarity_is_spearman(first, second):
    """Both numbers are what scipy calls Spearman's rho, whatever way round and in whatever unit."""
    expected = stats.spearmanr(np.abs(first).ravel(), np.abs(second).ravel()).statistic
    signed = stats.spearmanr(first.ravel(), second.ravel()).statistic
    for found in (similarity(first, second), similarity(second, 8.0 * first)):
        assert pytest.approx((expected, signed), abs=1e-9) == (found.absolute, found.signed)


@given(MAPS, NUMBERS)
def test_a_constant_map_is_like_nothing(drawn, number):
    """A vanished map has 0 with any map, also with itself."""
    constant = np.full_like(drawn, number)
    for pair in ((constant, drawn), (drawn, constant), (constant, constant)):
        assert Similarity(0.0, 0.0) == similarity(*pair)


def test_a_map_of_one_size_has_signs_only():
    """Of +1 and -1 only the signs can be ranked: 0 for absolute values, which are constant, and 1 with signs."""
    drawn = np.array([1.0, -1.0, 1.0])
    assert Similarity(0.0, 1.0) == similarity(drawn, drawn)


def test_a_point_is_a_mean_over_draws():
    """Of one equal and one opposite map, the absolute mean is 1 and the signed one 0."""
    trained = np.array([1.0, -2.0, 3.0])
    assert CurvePoint("y", "head", 1.0, 0.0) == curve_point("y", "head", trained, [trained, -trained])


@pytest.mark.parametrize(
    ("absolute", "other", "expected"),
    [
        (STILL_ALIKE - 0.01, 2.0, True),
        (STILL_ALIKE, 2.0, False),
        # The very same map: constant maps have no similarity that would tell.
        (0.0, 1.0, False),
    ],
)
def test_a_claim_has_changed(absolute, other, expected):
    """A claim depends on what was changed if it is less alike than the limit, and not the same every time."""
    trained = np.array([1.0, 1.0])
    assert expected == has_changed(absolute, trained, [trained, trained * other])
