"""The control `hub`: a naive replica, and examples worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import scores
from oracle.hub import eligible_bytes, hub_claim
from tests.naive import scores_v2 as naive

N_BYTES = 5


@st.composite
def games(draw):
    """Effects of some causes on five bytes, where each cause belongs, and which bytes count."""
    n_causes = draw(st.integers(1, 7))
    rows = st.lists(st.sampled_from([0.0, 0.0, 1.0, 3.0, 250.0]), min_size=N_BYTES, max_size=N_BYTES)
    effects = draw(st.lists(rows, min_size=n_causes, max_size=n_causes))
    addresses = draw(st.lists(st.integers(-1, N_BYTES - 1), min_size=n_causes, max_size=n_causes))
    return effects, addresses, draw(st.lists(st.booleans(), min_size=N_BYTES, max_size=N_BYTES))


@given(games(), st.integers(0, 3))
def test_eligible_bytes_are_their_replica(game, least):
    """A byte is eligible if at least so many different other bytes move it."""
    effects, addresses, _ = game
    found = eligible_bytes(np.array(effects), np.array(addresses), least=least)
    assert naive.eligible_bytes(effects, addresses, least) == found.tolist()


@given(games(), st.one_of(st.none(), st.integers(0, N_BYTES - 1)))
def test_the_claim_is_its_replica(game, output_byte):
    """The claim is the naive loop's, for content and position outputs, and with several causes of one byte."""
    effects, addresses, eligible = game
    found = hub_claim(
        np.array(effects), eligible=np.array(eligible), addresses=np.array(addresses), output_byte=output_byte
    )
    expected = naive.hub_claim(effects, eligible, addresses, output_byte)
    assert pytest.approx(expected, abs=1e-12) == found.tolist()


def test_three_other_bytes_make_a_byte_eligible():
    """A byte that moves itself, a cause outside RAM, and a second cause of the same byte do not count."""
    effects, addresses = np.zeros((7, N_BYTES)), np.array([0, 1, 2, 3, 4, -1, 1])
    effects[[1, 2, 3], 0] = 1.0
    effects[[0, 1, 2], 1] = 1.0  # itself among them
    effects[[0, 1, 5], 2] = 1.0  # the last one is no byte
    effects[[0, 1, 6], 3] = 1.0  # byte 1 twice
    effects[:, 4] = 1.0
    assert [True, False, False, False, True] == eligible_bytes(effects, addresses).tolist()


def test_the_claim_by_hand():
    """A byte's own column and the output's are left out, and each column counts in shares of its largest effect."""
    effects = np.array([[9.0, 50.0, 3.0, 1.0], [1.0, 99.0, 6.0, 0.0], [2.0, 99.0, 9.0, 4.0], [0.0, 0.0, 12.0, 2.0]])
    addresses = np.array([0, 1, 2, -1])
    eligible = np.array([True, True, True, False])
    # About byte 1: byte 0 on 2; byte 1 on 0 and 2; byte 2 on 0; the cause outside RAM on 0 and 2.
    expected = [3 / 12, (1 / 9 + 6 / 12) / 2, 2 / 9, (0 + 12 / 12) / 2]
    found = hub_claim(effects, eligible=eligible, addresses=addresses, output_byte=1)
    assert pytest.approx(expected) == found.tolist()


def test_without_other_bytes_nothing_is_claimed():
    """Where no other eligible byte is left the claim is 0 for that cause, and no other."""
    effects, addresses = np.full((3, 3), 7.0), np.array([0, 1, -1])
    eligible = np.array([True, False, False])
    assert [0.0, 1.0, 1.0] == hub_claim(effects, eligible=eligible, addresses=addresses, output_byte=None).tolist()
    assert [0.0] * 3 == hub_claim(effects, eligible=eligible, addresses=addresses, output_byte=0).tolist()


def test_what_it_claims_does_not_depend_on_the_output():
    """The effects on the output itself are not used: with others in their place the claim is the same."""
    generator = np.random.default_rng(0)
    effects, addresses = generator.exponential(size=(8, 8)), np.arange(8)
    other = effects.copy()
    other[:, 3] = generator.exponential(size=8)
    claims = [
        hub_claim(each, eligible=np.full(8, fill_value=True), addresses=addresses, output_byte=3)
        for each in (effects, other)
    ]
    assert claims[0].tolist() == claims[1].tolist()


def test_a_hub_is_known_without_looking_at_the_output():
    """Where the same bytes matter everywhere, the hub correlates with an output that it has not seen."""
    generator = np.random.default_rng(2)
    effects = np.outer(generator.exponential(size=30), generator.exponential(size=30))
    claim = hub_claim(effects, eligible=np.full(30, fill_value=True), addresses=np.arange(30), output_byte=4)
    assert pytest.approx(1.0, abs=1e-9) == scores.pearson(claim, effects[:, 4])
