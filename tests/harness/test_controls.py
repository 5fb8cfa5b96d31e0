"""Controls: what they claim, and the scores that follow."""

import math

import numpy as np
import pytest

from harness import scores
from harness.controls import CONTROLS, EVERYWHERE, Truth, control_entries
from oracle.movement import Movement
from oracle.protocol import protocol

EFFECT = np.array([17.0, 108.0, 68.0, 4.0, 0.0, 0.0, 8.0, 4.0])


def claim_of(name, seed=0):
    """The claim of a control."""
    return CONTROLS[name](Truth(EFFECT), generator=np.random.default_rng(seed))


def test_the_oracle_claims_the_effects():
    """The oracle's claim is the effects, in an array of its own."""
    claim = claim_of("oracle")
    assert EFFECT.tolist() == claim.tolist()
    claim[0] = 99.0
    assert 17.0 == EFFECT[0]


def test_random_draws_from_its_generator():
    """The random claim is the first uniform numbers of the given generator: another seed, another claim."""
    assert np.random.default_rng(4).random(8).tolist() == claim_of("random", seed=4).tolist()
    assert claim_of("random", seed=4).tolist() != claim_of("random", seed=5).tolist()


def test_uniform_names_every_cause_alike():
    """The uniform claim is 1 for every cause."""
    assert [1.0] * 8 == claim_of("uniform").tolist()


@pytest.mark.parametrize(
    ("name", "faithfulness", "minimality"),
    [
        ("oracle", 1.0, 1.0),  # itself; six movers, six named
        ("uniform", 0.0, math.nan),  # vanished
    ],
)
def test_ceiling_and_floor(name, faithfulness, minimality):
    """The oracle has F = M = 1; the uniform claim has vanished."""
    claim = claim_of(name)
    assert pytest.approx(faithfulness, abs=1e-12) == scores.pearson(claim, EFFECT)
    assert pytest.approx(minimality, abs=1e-12, nan_ok=True) == scores.minimality_v1(claim, EFFECT)


def test_random_knows_nothing():
    """Over 400 draws the random claim's F is 0 on average, and M is six movers over eight named."""
    claims = [claim_of("random", seed=seed) for seed in range(400)]
    # A correlation of n causes by chance has standard deviation 1 / sqrt(n - 1); a mean over 400, a 20th of it.
    error = 1 / math.sqrt(7) / math.sqrt(400)
    assert pytest.approx(0.0, abs=3 * error) == np.mean([scores.pearson(claim, EFFECT) for claim in claims])
    assert {0.75} == {scores.minimality_v1(claim, EFFECT) for claim in claims}


def test_every_control_has_an_entry():
    """The controls of ram-v2 are those of the dictionary, in a class of access and a family of their own."""
    assert [(name, name, "control", "control", "cause") for name in CONTROLS] == [
        (entry.label, entry.spec, entry.family, entry.access, entry.domain)
        for entry in control_entries(protocol("ram-v2"))
    ]


def test_a_protocol_adds_its_own_controls():
    """ram-v1 has the controls of every board, ram-v2 two more, which know the machine only."""
    assert list(EVERYWHERE) == [entry.label for entry in control_entries(protocol("ram-v1"))]
    only_machine = [entry.label for entry in control_entries(protocol("ram-v2")) if entry.subjects == ("machine",)]
    assert ["oracle_redraw", "hub"] == only_machine


@pytest.mark.parametrize("name", ["oracle_redraw", "hub"])
def test_the_controls_of_a_protocol_claim_what_it_says(name):
    """A protocol's own control claims the row that was measured for it, in an array of its own."""
    claims = {"oracle_redraw": np.array([3.0, 1.0]), "hub": np.array([0.5, 0.25])}
    claim = CONTROLS[name](Truth(EFFECT[:2], claims=claims), generator=np.random.default_rng(0))
    assert claims[name].tolist() == claim.tolist()
    claim[0] = 99.0
    assert 99.0 != claims[name][0]


# Three causes that move two pixels.
MOVED = np.array([[[1.0, -2.0]], [[0.0, 0.5]], [[-3.0, 0.0]]], dtype=np.float32)
MOVEMENT = Movement.of(list(MOVED), np.zeros((1, 2), np.float32), np.arange(3))


def test_controls_of_a_network_are_maps():
    """On a network `uniform` is a map of ones and `random` one of draws, both projected on what the causes move."""
    truth = Truth(np.array([4.0, 1.0, 2.0]), MOVEMENT)
    uniform = CONTROLS["uniform"](truth, generator=np.random.default_rng(0))
    # How much each cause moves the input: 1 + 2, 0.5, 3.
    assert [3.0, 0.5, 3.0] == uniform.tolist()
    first, second = np.random.default_rng(7).random((1, 2))[0]
    random = CONTROLS["random"](truth, generator=np.random.default_rng(7))
    assert [first + 2 * second, 0.5 * second, 3 * first] == pytest.approx(random.tolist(), abs=1e-12)
    assert [4.0, 1.0, 2.0] == CONTROLS["oracle"](truth, generator=np.random.default_rng(0)).tolist()


def test_the_uniform_map_knows_nothing_beyond_size():
    """The uniform map has F_partial 0: it is the size."""
    truth = Truth(np.array([4.0, 1.0, 2.0]), MOVEMENT)
    claim = CONTROLS["uniform"](truth, generator=np.random.default_rng(0))
    size = np.abs(MOVED).sum(axis=(1, 2)).astype(np.float64)
    assert scores.partial_pearson(claim, truth.effect, size) == 0.0
    assert scores.pearson(claim, truth.effect) > 0.5
