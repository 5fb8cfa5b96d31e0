"""The sign-flip test: against exact fractions and scipy, its laws, and how its p behave if nothing differs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harness import sign_flip
from harness.sign_flip import drawn_signs, sign_flip_p
from harness.statistics import board_value
from tests.naive import comparison as naive

NAN = math.nan
FEW_SIGNS = drawn_signs(8, seed=0, n_flips=10)


def rows_of(n_games, *, missing=True):
    """Differences in tenths, which no float holds exactly, so that ties need care: whole numbers, of two regimes."""
    number = st.integers(-4, 4)
    row = st.lists(st.one_of(number, st.none()) if missing else number, min_size=n_games, max_size=n_games)
    return st.tuples(row, row)


def tenths(rows):
    """One pair's differences, as floats."""
    return np.array([[[NAN if number is None else number * 0.1 for number in row] for row in rows]])


def normal(n_pairs, n_games, *, seed, mean=0.0):
    """Pairs whose differences are normal in both regimes, with a third of the games lacking position."""
    generator = np.random.default_rng(seed)
    differences = generator.normal(mean, 1.0, (n_pairs, 2, n_games))
    differences[:, 1, : n_games // 3] = NAN
    return differences


# --- all flips ------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(rows=rows_of(8))
def test_all_flips_equal_exact_fractions(rows):
    """With few games, p is the share of all flips counted in exact fractions: ties and missing games included."""
    expected = naive.p_of_all_flips(rows) if len(naive.compared_games(rows)) >= 6 else NAN
    assert pytest.approx(expected, abs=1e-12, nan_ok=True) == sign_flip_p(tenths(rows), FEW_SIGNS)[0]


@pytest.mark.parametrize("n_games", [6, 11, 16])
def test_all_flips_agree_with_scipy(n_games):
    """On one regime without ties p is that of scipy's exact permutation test of paired samples."""
    differences = normal(3, n_games, seed=n_games, mean=0.4)[:, :1]
    expected = [
        stats.permutation_test((row,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
        for row in differences[:, 0]
    ]
    np.testing.assert_allclose(expected, sign_flip_p(differences, drawn_signs(n_games, seed=0, n_flips=1)), atol=1e-12)


@pytest.mark.parametrize(
    ("expected", "numbers"),
    [
        (NAN, [1, 2, 3, 4, 5]),  # five games
        (NAN, [1, 2, 3, 4, 5, None]),
        (2 / 64, [1, 2, 3, 4, 5, 6]),  # only itself and its opposite
        (4 / 64, [1, 2, 3, 4, 5, 0]),  # a zero may be flipped for nothing, and is a game
        (1.0, [0, 0, 0, 0, 0, 0]),
        (1.0, [1, 0, 0, 0, 0, 0]),
        (14 / 64, [1, 1, 1, 1, 1, -1]),  # |sum| >= 4: at most one sign differs, 2 (1 + 6)
    ],
)
def test_p_by_hand(expected, numbers):
    """Small cases counted on paper; under six games there is none."""
    rows = [numbers, [None] * len(numbers)]
    assert pytest.approx(expected, nan_ok=True) == sign_flip_p(tenths(rows), drawn_signs(len(numbers), seed=0))[0]


# --- drawn flips ----------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(rows=rows_of(19, missing=False), seed=st.integers(0, 100))
def test_drawn_flips_equal_exact_fractions(rows, seed):
    """With many games, p counts the given flips as exact fractions do."""
    signs = drawn_signs(19, seed=seed, n_flips=40)
    assert pytest.approx(naive.p_of_drawn_flips(rows, signs.tolist()), abs=1e-12) == sign_flip_p(tenths(rows), signs)[0]


def test_drawn_flips_with_missing_games():
    """Games that only one regime has, or none, are treated as the fractions treat them."""
    rows = [[*range(-5, 20), None, None], [*[None] * 5, *range(8, -12, -1), 3, None]]
    signs = drawn_signs(27, seed=3, n_flips=200)
    expected = naive.p_of_drawn_flips(rows, signs.tolist())
    assert pytest.approx(expected, abs=1e-12) == sign_flip_p(tenths(rows), signs)[0]


def test_seventeen_games_are_drawn_and_sixteen_are_not():
    """Up to sixteen games the drawn signs count for nothing; from seventeen on they decide."""
    keep = np.ones((9, 17), dtype=np.int8)
    differences = normal(1, 17, seed=0, mean=2.0)[:, :1]
    # Nine flips that flip nothing are all as large.
    assert 1.0 == sign_flip_p(differences, keep)[0]
    assert 2 / 2**16 == sign_flip_p(np.abs(differences[..., :16]), keep[:, :16])[0]


def test_drawn_flips_estimate_all_flips(monkeypatch):
    """The share among drawn flips is that among all, within what drawing leaves open."""
    differences = normal(20, 14, seed=1, mean=0.3)
    exact = sign_flip_p(differences, FEW_SIGNS[:, [0] * 14])
    monkeypatch.setattr(sign_flip, "MAX_GAMES_FOR_ALL_FLIPS", 10)
    drawn = sign_flip_p(differences, drawn_signs(14, seed=2, n_flips=20_000))
    errors = np.sqrt(exact * (1 - exact) / 20_000) + 1 / 20_000
    assert (np.abs(drawn - exact) < 4 * errors).all()
    assert (exact != drawn).any()


def test_blocks_change_nothing(monkeypatch):
    """p is the same, however many flips are multiplied at once."""
    differences, signs = normal(5, 20, seed=4), drawn_signs(20, seed=0, n_flips=1000)
    expected = sign_flip_p(differences, signs)
    monkeypatch.setattr(sign_flip, "BLOCK", 7)
    assert expected.tolist() == sign_flip_p(differences, signs).tolist()


def test_signs_belong_to_their_seed():
    """The same seed gives the same signs: 1 or -1, alike often, and those of two games independent."""
    signs = drawn_signs(5, seed=1, n_flips=20_000)
    assert signs.tolist() == drawn_signs(5, seed=1, n_flips=20_000).tolist()
    assert signs.tolist() != drawn_signs(5, seed=2, n_flips=20_000).tolist()
    assert {-1, 1} == set(np.unique(signs))
    # Products of two games' signs, and the signs: each mean is 0 with a standard error of 1 / sqrt(20,000) = 0.007.
    wide = signs.astype(np.float64)
    np.testing.assert_allclose(np.eye(5), wide.T @ wide / 20_000, atol=4.5 * 0.0071)
    np.testing.assert_allclose(np.zeros(5), wide.mean(axis=0), atol=4.5 * 0.0071)


# --- laws -----------------------------------------------------------------------------------------------------------


def mixed(n_games):
    """Pairs with ever fewer games: some with drawn flips, some with all, some without p."""
    differences = normal(n_games - 2, n_games, seed=5, mean=0.3)
    for pair, rows in enumerate(differences):
        rows[:, n_games - pair :] = NAN
    return differences


def test_each_pair_has_the_p_it_has_alone():
    """Which other pairs are tested changes no p."""
    differences, signs = mixed(20), drawn_signs(20, seed=0, n_flips=500)
    alone = [sign_flip_p(rows[None], signs)[0] for rows in differences]
    np.testing.assert_array_equal(alone, sign_flip_p(differences, signs))
    # 18 pairs of 20 down to 3 games: those with five, four and three have no p.
    assert 3 == np.isnan(alone).sum()


def test_order_of_the_games_is_nothing():
    """Games in another order, with their signs, give the same p."""
    differences, signs = mixed(20), drawn_signs(20, seed=0, n_flips=500)
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_array_equal(
        sign_flip_p(differences, signs), sign_flip_p(differences[..., order], signs[:, order])
    )


@pytest.mark.parametrize("factor", [-1.0, 0.1, 1e-9, 7e6])
def test_factors_are_nothing(factor):
    """Swapping the two methods, or measuring in another unit, gives the same p."""
    differences, signs = mixed(20), drawn_signs(20, seed=0, n_flips=500)
    np.testing.assert_array_equal(sign_flip_p(differences, signs), sign_flip_p(differences * factor, signs))


def test_p_follows_the_statistic():
    """The tested statistic is the board value of the differences: without it, p is 1; far from it, p is least."""
    differences, signs = normal(1, 30, seed=0), drawn_signs(30, seed=0, n_flips=999)
    centred = differences - board_value(differences)[:, None, None]
    assert [1.0, 1 / 1000] == [sign_flip_p(centred, signs)[0], sign_flip_p(centred + 9.0, signs)[0]]


@pytest.mark.parametrize("n_games", [12, 24])
def test_p_is_uniform_under_the_null(n_games):
    """Over 2,000 pairs that differ by nothing but chance, p is uniform: with all flips and with drawn ones."""
    p = sign_flip_p(normal(2000, n_games, seed=n_games), drawn_signs(n_games, seed=0, n_flips=4095))
    # Kolmogorov's bound at the level 0.001: 1.95 / sqrt(2000); p has steps of at most 1 / 2048 besides.
    assert 1.95 / math.sqrt(2000) + 1 / 2048 > stats.kstest(p, "uniform").statistic


def test_p_of_outliers_stays_honest():
    """With heavy tails, where a t test errs, 5 % of the pairs that do not differ have a p of 0.05 or less."""
    heavy = np.random.default_rng(9).standard_cauchy((2000, 1, 12))
    found = np.mean(sign_flip_p(heavy, drawn_signs(12, seed=0, n_flips=1)) <= 0.05)
    # 0.05 of 4096 flips are 204.8, so 204 of them at most, which is 0.0498.
    assert pytest.approx(204 / 4096, abs=3 * math.sqrt(0.05 * 0.95 / 2000)) == found
