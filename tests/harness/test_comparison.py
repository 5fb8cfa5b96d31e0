"""Which methods can be told apart: against loops, and what must not depend on order, labels or missing games."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.comparison import compare, family_of_pairs, holm, rank_intervals, significantly_better
from harness.sign_flip import drawn_signs
from harness.statistics import Interval, drawn_games
from tests.naive import comparison as naive
from tests.naive.statistics import bca_interval

NAN = math.nan
N_GAMES = 22
DRAWS, SIGNS = drawn_games(N_GAMES, seed=0, n_draws=300), drawn_signs(N_GAMES, seed=0, n_flips=999)
P = st.one_of(st.integers(0, 100).map(lambda number: number / 100), st.none())
# The board of `three`, and the pairs of all its methods.
ALL_PAIRS = family_of_pairs([0, 1, 2], [])


def three():
    """One method far above two that differ by little; whole 64ths, and some games missing."""
    values = np.random.default_rng(7).integers(-20, 20, (3, 2, N_GAMES)) / 64
    values[0] += 1.0
    values[0, 0, 3:6] = values[1, 1, 4:6] = values[2, :, 9] = NAN
    return values


def as_rows(values):
    """An array as rows of plain numbers, None for NaN."""
    return [[None if math.isnan(value) else value for value in row] for row in values.tolist()]


def with_none(p):
    """p values as an array, NaN for None."""
    return np.array(p, dtype=np.float64)


# --- Holm -----------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(p=st.lists(P, max_size=8))
def test_holm_equals_its_replica(p):
    """Corrected p values are Holm's by another formula, ties included; NaN stay, and count for nothing."""
    np.testing.assert_allclose(with_none(naive.holm(p)), holm(with_none(p)), rtol=0, atol=1e-12)


@settings(deadline=None)
@given(p=st.lists(st.integers(0, 1000).map(lambda number: (number + 0.5) / 10_000), min_size=1, max_size=8))
def test_holm_rejects_what_stepping_down_rejects(p):
    """Corrected p below 0.05 are the tests that the step-down procedure rejects at 0.05."""
    assert naive.rejected_by_holm(p, 0.05) == set(np.flatnonzero(holm(with_none(p)) < 0.05))


@settings(deadline=None)
@given(p=st.lists(P, min_size=1, max_size=8), smaller=st.floats(0, 1))
def test_holm_is_monotone(p, smaller):
    """If one p shrinks, no corrected p grows."""
    before, after = with_none(p), with_none(p)
    after[0] *= smaller
    is_test = ~np.isnan(before)
    assert (holm(after)[is_test] <= holm(before)[is_test] + 1e-15).all()


def test_holm_by_hand():
    """Four tests: 4, 3, 2 and 1 times the sorted p, never less than the one before, never above 1."""
    # 4 * 0.01, 3 * 0.02, then 2 * 0.025 = 0.05 is less than 0.06, and 1 * 0.9.
    assert [0.9, 0.04, 0.06, 0.06] == pytest.approx(holm(with_none([0.9, 0.01, 0.025, 0.02])).tolist())
    assert [1.0, 1.0] == holm(with_none([0.5, 0.7])).tolist()


# --- pairs and relations --------------------------------------------------------------------------------------------


def test_the_family_of_thirty_methods_and_two_floors():
    """All pairs of contestants, and each against each floor: 435 + 60, each once, no floor against the other."""
    pairs = family_of_pairs(range(30), [30, 31])
    assert 495 == len({frozenset(pair) for pair in pairs.tolist()})
    assert frozenset({30, 31}) not in {frozenset(pair) for pair in pairs.tolist()}


def test_a_family_of_nobody_has_no_pairs():
    """Without contestants there is nothing to compare."""
    found = compare(three(), family_of_pairs([], [0, 1]), DRAWS, SIGNS)
    assert ((0, 2), [], [[], [], []]) == (found.pairs.shape, found.intervals, found.not_told_apart())


def test_significantly_better_is_below_five_percent():
    """The better method of a pair is that with the positive difference, if the corrected p is below 0.05."""
    pairs = np.array([[0, 1], [2, 0], [1, 2], [3, 0]])
    found = significantly_better(
        np.array([0.3, -0.2, 0.4, 0.9]), np.array([0.01, 0.049, 0.05, NAN]), pairs, n_methods=4
    )
    # 0 over 1; 0 over 2, since 2 less 0 is negative; 1 and 2 have exactly 0.05; 3 and 0 have no p.
    assert [[0, 1], [0, 2]] == np.argwhere(found).tolist()


@settings(deadline=None)
@given(
    above=st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=5, max_size=5),
    contestants=st.permutations(range(5)).flatmap(lambda order: st.integers(1, 5).map(lambda n: order[:n])),
)
def test_rank_intervals_equal_their_replica(above, contestants):
    """Ranks are counted among the contestants alone, in the order they are given."""
    is_better = np.array(above) & ~np.array(above).T
    expected = [naive.rank_interval(is_better.tolist(), contestants, own) for own in contestants]
    assert [list(each) for each in expected] == rank_intervals(is_better, contestants).tolist()


# --- the comparison -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regimes", [slice(0, 1), slice(1, 2), slice(0, 2)])
def test_comparison_equals_its_replica(regimes):
    """Differences, their intervals and p are those of loops over the games both methods have: per regime, and for F."""
    values = three()[:, regimes]
    found = compare(values, ALL_PAIRS, DRAWS, SIGNS)
    for place, (first, second) in enumerate(ALL_PAIRS.tolist()):
        rows = naive.difference(as_rows(values[first]), as_rows(values[second]))
        low, high = bca_interval(rows, DRAWS.tolist())
        assert len(naive.compared_games(rows)) == found.n_games[place]
        assert pytest.approx(float(naive.mean_difference(rows, [1] * N_GAMES))) == found.differences[place]
        assert pytest.approx((low, high)) == (found.intervals[place].low, found.intervals[place].high)
        assert pytest.approx(naive.p_of_drawn_flips(rows, SIGNS.tolist())) == found.p[place]
    assert pytest.approx(naive.holm(found.p.tolist())) == found.corrected.tolist()


def test_one_above_two_that_are_alike():
    """The method far above the others is told from both, they are not told from each other."""
    found = compare(three(), ALL_PAIRS, DRAWS, SIGNS)
    assert [[False, True, True], [True, False, False], [True, False, False]] == found.told_apart.tolist()
    assert [[], [2], [1]] == found.not_told_apart()
    assert [[1, 1], [2, 3], [2, 3]] == rank_intervals(found.is_better, [0, 1, 2]).tolist()


def test_told_apart_is_no_partition():
    """Two methods may differ while a third is told from neither."""
    noise = np.random.default_rng(1).normal(0, 0.3, (3, 1, N_GAMES))
    found = compare(noise + np.array([0.0, 0.15, 0.3])[:, None, None], ALL_PAIRS, DRAWS, SIGNS)
    assert [[1], [0, 2], [1]] == found.not_told_apart()
    assert [[2, 3], [1, 3], [1, 2]] == rank_intervals(found.is_better, [0, 1, 2]).tolist()


def test_floors_are_compared_but_not_ranked():
    """A floor takes no rank, and stands in the list of a method that cannot be told from it."""
    found = compare(three(), family_of_pairs([0, 1], [2]), DRAWS, SIGNS)
    assert [[], [2], [1]] == found.not_told_apart()
    assert [[1, 1], [2, 2]] == rank_intervals(found.is_better, [0, 1]).tolist()


def test_a_pair_without_p_is_not_told_apart():
    """With five common games there is no p and no telling apart; other pairs are corrected without it."""
    values = three()
    # Games 4 and 5 have no regime in common: five are left of the first seven.
    values[1, :, 7:], values[2] = NAN, values[0] - np.random.default_rng(0).normal(1, 0.3, (2, N_GAMES))
    found = compare(values, ALL_PAIRS, DRAWS, SIGNS)
    assert [True, False, True] == np.isnan(found.p).tolist()
    assert [5, "t"] == [found.n_games[0], found.intervals[0].kind]
    assert [[1], [0, 2], [1]] == found.not_told_apart()
    assert found.p[1] == found.corrected[1]


def test_methods_without_a_common_game_have_no_difference():
    """Undefined is NaN, never 0."""
    values = three()
    values[0, :, ::2], values[1, :, 1::2] = NAN, NAN
    found = compare(values, ALL_PAIRS[:1], DRAWS, SIGNS)
    assert [True, True, 0] == [math.isnan(found.differences[0]), math.isnan(found.p[0]), found.n_games[0]]
    assert "none" == found.intervals[0].kind


def test_games_of_one_method_alone_count_for_nothing():
    """What a method scores where the other has no value changes nothing of their pair."""
    values = three()
    before = compare(values, ALL_PAIRS[:1], DRAWS, SIGNS)
    values[1, 0, 3:6] = values[0, 1, 4:6] = 99.0
    after = compare(values, ALL_PAIRS[:1], DRAWS, SIGNS)
    assert (before.differences, before.intervals, before.p) == (after.differences, after.intervals, after.p)


def test_differences_are_antisymmetric():
    """The pair in the other order has the negative difference, the mirrored interval, and the same p and relation."""
    one, other = (compare(three(), pairs, DRAWS, SIGNS) for pairs in (ALL_PAIRS, ALL_PAIRS[:, ::-1].copy()))
    np.testing.assert_array_equal(one.differences, -other.differences)
    np.testing.assert_array_equal(one.p, other.p)
    np.testing.assert_array_equal(one.is_better, other.is_better)
    mirrored = [dataclasses.replace(each, low=-each.high, high=-each.low) for each in other.intervals]
    for each, expected in zip(one.intervals, mirrored, strict=True):
        assert pytest.approx((expected.low, expected.high), abs=1e-12) == (each.low, each.high)


def test_order_of_the_methods_is_nothing():
    """Methods in another order are better than the same others, by as much."""
    order = [2, 0, 1]
    found, moved = (compare(values, ALL_PAIRS, DRAWS, SIGNS) for values in (three(), three()[order]))
    np.testing.assert_array_equal(found.is_better[np.ix_(order, order)], moved.is_better)
    # New pair (0, 1) is the old (2, 0), the old pair (0, 2) in the other order.
    assert (-found.differences[1], found.p[1]) == (moved.differences[0], moved.p[0])


def test_what_both_methods_gain_is_nothing():
    """A constant added to both methods in a game, however large, changes no difference, interval or p."""
    gained = np.random.default_rng(0).integers(-8, 8, (1, 2, N_GAMES)) * 1.0
    found, moved = (compare(values, ALL_PAIRS, DRAWS, SIGNS) for values in (three(), three() + gained))
    np.testing.assert_array_equal(found.differences, moved.differences)
    np.testing.assert_array_equal(found.p, moved.p)
    assert found.intervals == moved.intervals


def test_a_method_is_not_told_from_itself():
    """Equal methods differ by 0, with an interval of no width and p = 1."""
    twin = np.stack([three()[1], three()[1]])
    found = compare(twin, ALL_PAIRS[:1], DRAWS, SIGNS)
    assert (0.0, 1.0, [Interval(0.0, 0.0, "t")]) == (found.differences[0], found.p[0], found.intervals)
