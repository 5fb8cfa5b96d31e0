"""Intervals over games: a naive replica, the textbook, and how often they cover a known truth."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harness.statistics import (
    BLOCK,
    Interval,
    board_value,
    drawn_games,
    game_values,
    interval,
    intervals,
    spread_over_seeds,
    spread_over_states,
)
from tests.naive import statistics as naive

N_FEW_DRAWS = 300
NAN = math.nan


def table(rows):
    """One row of game values per regime; None where a game lacks the regime."""
    return np.array([[NAN if value is None else value for value in row] for row in rows], dtype=np.float64)


def both_regimes(n_games):
    """A random table of two regimes: whole 64ths, so that sums are exact and ties are common, and some missing."""
    value = st.one_of(st.integers(-64, 64).map(lambda number: number / 64), st.none())
    row = st.lists(value, min_size=n_games, max_size=n_games)
    return st.tuples(row, row)


def nested(shape):
    """Random scores as lists within lists: whole 64ths, some missing."""
    scores = st.one_of(st.integers(-64, 64).map(lambda number: number / 64), st.none())
    for size in reversed(shape):
        scores = st.lists(scores, min_size=size, max_size=size)
    return scores


def array(scores):
    """The same as an array, NaN for what is missing."""
    return np.array(scores, dtype=np.float64)


def exactly(found):
    """Intervals to compare bit for bit, also where undefined."""
    return [(repr(each.low), repr(each.high), each.kind) for each in found]


def parts(found):
    """An interval as a tuple, to compare with approximate numbers."""
    return found.low, found.high, found.kind


def near(low, high, kind):
    """The same, up to rounding."""
    return pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9), kind


def varied(rows):
    """True if the bootstrap has something to vary: three different values among at least twelve games with a value."""
    n_present = sum(any(row[game] is not None for row in rows) for game in range(len(rows[0])))
    return n_present >= 12 and len({value for row in rows for value in row} - {None}) >= 3


# --- the value ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "rows"),
    [
        (0.5, [[1.0, 0.0], [0.5, None]]),  # (1/2 + 1/2) / 2
        (0.375, [[1.0, 0.0], [0.25, None]]),  # (1/2 + 1/4) / 2: regimes weigh alike, however many games have them
        (0.25, [[None, None], [0.0, 0.5]]),  # no game has content
        (-0.5, [[-1.0], [0.0]]),  # nothing is clipped here
        (NAN, [[None], [None]]),
        (NAN, [[], []]),
    ],
)
def test_board_value(expected, rows):
    """The board value is the mean over regimes of the mean over the games that have the regime."""
    assert pytest.approx(expected, abs=1e-15, nan_ok=True) == float(board_value(table(rows)))


@given(rows=both_regimes(7))
def test_board_value_equals_its_replica(rows):
    """The board value equals loops over plain numbers."""
    expected = naive.board_value(rows)
    assert pytest.approx(NAN if expected is None else expected, abs=1e-12, nan_ok=True) == float(
        board_value(table(rows))
    )


def test_board_value_of_many_draws_at_once():
    """A stack of tables gives one value each."""
    stack = np.stack([table([[1.0, 0.0], [0.5, None]]), table([[1.0, 1.0], [0.0, 0.0]])])
    # (1/2 + 1/2) / 2, and (1 + 0) / 2.
    assert [0.5, 0.5] == board_value(stack).tolist()


@settings(max_examples=50, deadline=None)
@given(scores=nested((2, 3, 2, 3, 2)))
def test_game_values_equal_their_replica(scores):
    """A game value is the mean over states of the mean over outputs of the mean over seeds, each of what is there."""
    expected = [[naive.game_value(states) for states in games] for games in scores]
    np.testing.assert_allclose(table(expected), game_values(array(scores)), rtol=0, atol=1e-12)


def test_game_values_by_hand():
    """Means of means: a state with one output weighs as much as one with two, an output with one seed too."""
    scores = array([[[[[1.0, 0.0], [0.25, None]], [[None, None], [1.0, 0.5]]]]])
    # First state: (1/2 + 1/4) / 2 = 3/8; second: 3/4.
    assert [[9 / 16]] == game_values(scores).tolist()


# --- the spread -----------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(content=nested((2, 3, 3, 2, 2)), position=nested((2, 3, 3, 1, 2)))
def test_spreads_equal_their_replicas(content, position):
    """The spreads over states and seeds equal loops over the board values of each state and each seed."""
    by_method = list(zip(content, position, strict=True))
    scores = [array(content), array(position)]
    for spread, replica in (
        (spread_over_states, naive.spread_over_states),
        (spread_over_seeds, naive.spread_over_seeds),
    ):
        expected = array([replica(regimes) for regimes in by_method])
        np.testing.assert_allclose(expected, spread(scores), rtol=0, atol=1e-9)


def test_spreads_by_hand():
    """States that differ by 0.5 and seeds that differ by 0.25 spread by that over the root of 2."""
    # Two games, two states, one output, two seeds; the second game is the first plus 0.25.
    game = np.array([[[0.0, 0.25]], [[0.5, 0.75]]])
    scores = np.stack([game, game + 0.25])[None]
    assert pytest.approx(0.5 / math.sqrt(2)) == spread_over_states([scores])[0]
    assert pytest.approx(0.25 / math.sqrt(2)) == spread_over_seeds([scores])[0]


def test_spread_of_one_is_undefined():
    """One state, or one seed beside missing ones, has no spread; it is not 0."""
    scores = np.random.default_rng(0).random((2, 5, 1, 2, 3))
    scores[1, ..., 1:] = NAN
    assert [True, True] == np.isnan(spread_over_states([scores])).tolist()
    assert [False, True] == np.isnan(spread_over_seeds([scores])).tolist()


# --- the draws ------------------------------------------------------------------------------------------------------


def test_draws_belong_to_their_seed():
    """The same seed gives the same draws, another seed others: all methods of a run see the same games."""
    draws = drawn_games(20, seed=5, n_draws=50)
    assert draws.tolist() == drawn_games(20, seed=5, n_draws=50).tolist()
    assert draws.tolist() != drawn_games(20, seed=6, n_draws=50).tolist()


def test_draws_have_replacement():
    """Ten thousand draws of all games with replacement: each game makes up its share, and repeats occur."""
    draws = drawn_games(4, seed=0)
    assert (10_000, 4) == draws.shape
    # 40,000 places, a quarter each; the binomial standard deviation of a share is 0.0022.
    shares = np.bincount(draws.ravel(), minlength=4) / draws.size
    assert [pytest.approx(0.25, abs=4 * 0.0022)] * 4 == shares.tolist()
    # Four draws of four games are all different in 4!/4^4 = 9.4 % (standard deviation 0.3 %).
    all_different = np.mean([len(set(row)) == 4 for row in draws.tolist()])
    assert pytest.approx(24 / 256, abs=4 * 0.003) == all_different


def test_no_games_can_be_drawn_of_none():
    """Without games the draws are empty."""
    assert (3, 0) == drawn_games(0, seed=0, n_draws=3).shape


# --- the bootstrap --------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(rows=both_regimes(15).filter(varied), seed=st.integers(0, 100))
def test_bootstrap_equals_its_replica(rows, seed):
    """The BCa interval equals Efron's formulas in loops, on the same draws, with ties and missing games."""
    draws = drawn_games(15, seed=seed, n_draws=N_FEW_DRAWS)
    low, high = naive.bca_interval(rows, draws.tolist())
    assert near(low, high, "BCa") == parts(interval(table(rows), draws))


def test_bootstrap_leans_to_the_long_tail():
    """Where a few games are far above the others, the interval reaches further up than down, as the replica's does."""
    row = [0.0] * 20 + [0.125] * 16 + [0.875] * 6
    draws = drawn_games(42, seed=0, n_draws=N_FEW_DRAWS)
    found = interval(table([row, [None] * 42]), draws)
    assert near(*naive.bca_interval([row], draws.tolist()), "BCa") == parts(found)
    # The mean is (16 / 8 + 6 * 7 / 8) / 42 = 7.25 / 42.
    assert (found.low + found.high) / 2 > 7.25 / 42


def test_bootstrap_covers_the_truth():
    """Over 300 samples of games, the BCa interval covers their known mean as often as theory says."""
    n_games, n_samples, truth = 20, 300, 0.3
    generator = np.random.default_rng(20)
    draws = drawn_games(n_games, seed=1, n_draws=600)
    samples = generator.normal(truth, 0.25, (n_samples, 1, n_games))
    intervals = [interval(sample, draws) for sample in samples]
    assert {"BCa"} == {each.kind for each in intervals}
    # For normal values the bootstrap's interval is 1.96 standard errors with s computed over n, not n - 1: it covers
    # as often as a t with n - 1 degrees of freedom is below 1.96 sqrt((n - 1) / n). That is 0.929 for n = 20.
    nominal = 1 - 2 * stats.t.sf(1.96 * math.sqrt((n_games - 1) / n_games), n_games - 1)
    error = math.sqrt(nominal * (1 - nominal) / n_samples)
    covered = np.mean([each.low <= truth <= each.high for each in intervals])
    assert pytest.approx(nominal, abs=3 * error) == covered


def test_same_draws_give_the_same_interval():
    """The interval is decided by values and draws: no randomness is left."""
    values = np.random.default_rng(3).random((2, 20))
    draws = drawn_games(20, seed=9, n_draws=500)
    assert interval(values, draws) == interval(values, drawn_games(20, seed=9, n_draws=500))
    assert interval(values, draws) != interval(values, drawn_games(20, seed=10, n_draws=500))


def test_bootstrap_agrees_with_scipys():
    """On skewed values of one regime the interval is that of scipy's BCa, whose draws are others."""
    row = np.random.default_rng(4).exponential(1.0, 30)
    found = interval(np.stack([row]), drawn_games(30, seed=0))
    other = stats.bootstrap((row,), np.mean, n_resamples=10_000, method="BCa", rng=np.random.default_rng(1))
    # The 2.5 % quantile of 10,000 draws has a standard error of 0.027 standard errors of the mean, so a difference of
    # two 0.04; without the acceleration the ends would be 0.2 away.
    tolerance = 4 * 0.04 * float(stats.sem(row))
    limits = other.confidence_interval
    assert pytest.approx(limits.low, abs=tolerance) == found.low
    assert pytest.approx(limits.high, abs=tolerance) == found.high


# --- many methods at once -------------------------------------------------------------------------------------------


def many(n_methods, n_games, *, seed=0):
    """Skewed game values of two regimes, a fifth of them missing; every third method has too few games to draw."""
    generator = np.random.default_rng(seed)
    values = generator.beta(0.5, 1.0, (n_methods, 2, n_games))
    values[generator.random(values.shape) < 0.2] = NAN
    values[::3, :, 9:] = NAN
    return values


def test_every_method_has_the_interval_it_has_alone():
    """In a table of many methods each has, bit for bit, its own interval: BCa or t."""
    values, draws = many(2 * BLOCK + 5, 15), drawn_games(15, seed=2, n_draws=200)
    found = intervals(values, draws)
    assert exactly(found) == [each for rows in values for each in exactly([interval(rows, draws)])]
    assert {"BCa", "t"} == {each.kind for each in found}


def test_order_of_the_games_changes_no_bit_of_a_bootstrap():
    """Games in another order, drawn as before, give the same BCa intervals: sums are exact."""
    values, draws = many(9, 20), drawn_games(20, seed=3, n_draws=200)
    order = np.random.default_rng(1).permutation(20)
    found = intervals(values[..., order], np.argsort(order)[draws])
    expected = intervals(values, draws)
    assert [each for each in exactly(expected) if "BCa" in each] == [each for each in exactly(found) if "BCa" in each]
    assert 6 == sum(each.kind == "BCa" for each in found)


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0.7), (3.0, 0.0), (-1.0, 0.0), (-0.1, -5.0)])
def test_intervals_move_with_their_values(factor, shift):
    """Shifted and rescaled values have shifted and rescaled intervals; a negative factor swaps the ends."""
    values, draws = many(9, 20), drawn_games(20, seed=3, n_draws=500)
    for before, after in zip(intervals(values, draws), intervals(factor * values + shift, draws), strict=True):
        ends = sorted((factor * before.low + shift, factor * before.high + shift))
        assert near(*ends, before.kind) == parts(after)


def test_bootstraps_of_two_regimes_cover_the_truth():
    """Over 600 boards of 42 games, whose regimes are correlated, intervals cover as often as theory says."""
    n_games, n_samples, truth = 42, 600, 0.3
    generator = np.random.default_rng(42)
    games = generator.normal(0, 0.2, (n_samples, 1, n_games))
    values = truth + games + generator.normal(0, 0.2, (n_samples, 2, n_games))
    found = intervals(values, drawn_games(n_games, seed=1, n_draws=1000))
    # As for one regime above: 0.940 for n = 42. Resampling regimes apart would cover less.
    nominal = 1 - 2 * stats.t.sf(1.96 * math.sqrt((n_games - 1) / n_games), n_games - 1)
    error = math.sqrt(nominal * (1 - nominal) / n_samples)
    assert pytest.approx(nominal, abs=3 * error) == np.mean([each.low <= truth <= each.high for each in found])


def test_no_methods_have_no_intervals():
    """An empty table has no intervals."""
    assert [] == intervals(np.empty((0, 2, 20)), drawn_games(20, seed=0, n_draws=10))


# --- the t interval -------------------------------------------------------------------------------------------------


@given(row=st.lists(st.integers(-64, 64).map(lambda number: number / 64), min_size=3, max_size=11))
def test_t_interval_is_the_textbooks(row):
    """Under twelve games the interval of a mean is mean -+ t s / sqrt(n), as scipy computes it."""
    found = interval(table([row, [None] * len(row)]), drawn_games(len(row), seed=0, n_draws=10))
    error = float(stats.sem(row))
    low, high = stats.t.interval(0.95, len(row) - 1, loc=np.mean(row), scale=error) if error else (row[0], row[0])
    assert near(low, high, "t") == parts(found)


def test_t_interval_of_two_regimes():
    """With both regimes in every game, the interval is that of the games' means over their regimes."""
    content, position = [0.9, 0.5, 0.7, 0.1], [0.3, 0.1, 0.0, 0.2]
    means = [(one + other) / 2 for one, other in zip(content, position, strict=True)]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(means), scale=stats.sem(means))
    found = interval(table([content, position]), drawn_games(4, seed=0, n_draws=10))
    assert near(low, high, "t") == parts(found)


def test_t_interval_covers_the_truth():
    """Over 600 samples of eight games, the t interval covers their known mean in 95 %."""
    generator = np.random.default_rng(8)
    draws = drawn_games(8, seed=0, n_draws=10)
    n_samples, truth = 600, -0.1
    intervals = [interval(sample, draws) for sample in generator.normal(truth, 0.4, (n_samples, 1, 8))]
    error = math.sqrt(0.95 * 0.05 / n_samples)
    covered = np.mean([each.low <= truth <= each.high for each in intervals])
    assert pytest.approx(0.95, abs=3 * error) == covered


# --- which one ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "n_games"), [("none", 0), ("none", 1), ("none", 2), ("t", 3), ("t", 11), ("BCa", 12), ("BCa", 42)]
)
def test_kind_by_number_of_games(kind, n_games):
    """Under three games there is no interval, under twelve a t interval, else the bootstrap."""
    values = np.random.default_rng(0).random((2, n_games))
    assert kind == interval(values, drawn_games(n_games, seed=0, n_draws=200)).kind


@pytest.mark.parametrize("value", [1.0, 0.0, 0.5])
def test_equal_values_have_a_t_interval_of_no_width(value):
    """Where all games have the same value no draw differs: a t interval, which has no width then."""
    draws = drawn_games(42, seed=0, n_draws=200)
    assert Interval(value, value, "t") == interval(np.full((2, 42), value), draws)


def test_equal_values_with_missing_games_have_a_t_interval_too():
    """Games that lack a regime do not make equal values differ in the last bit."""
    values = table([[0.1] * 14, [0.3] * 9 + [None] * 5])
    found = interval(values, drawn_games(14, seed=0, n_draws=2000))
    assert near(0.2, 0.2, "t") == parts(found)


def test_no_interval_is_undefined_on_both_sides():
    """Under three games both ends are undefined."""
    found = interval(table([[0.1, 0.9], [0.2, 0.3]]), drawn_games(2, seed=0, n_draws=10))
    assert (True, True, "none") == (math.isnan(found.low), math.isnan(found.high), found.kind)


def test_games_without_a_value_are_ignored():
    """A game that has neither regime changes neither the kind nor a t interval."""
    values, with_gaps = table([[0.1, 0.9, 0.4]]), table([[None, 0.1, None, 0.9, 0.4, None]])
    expected = interval(values, drawn_games(3, seed=0, n_draws=10))
    found = interval(with_gaps, drawn_games(6, seed=0, n_draws=10))
    assert near(expected.low, expected.high, "t") == parts(found)


def test_games_without_a_value_do_not_count_towards_the_bootstrap():
    """Eleven games with a value are too few for the bootstrap, however many have none."""
    values = table([[*np.linspace(0, 1, 11), *[None] * 30]])
    assert "t" == interval(values, drawn_games(41, seed=0, n_draws=200)).kind


def test_draws_of_games_without_a_value_count_for_nothing():
    """A draw that meets no game with a value is left out; the interval stays defined."""
    # Twelve games with a value among 400: a draw misses all of them with probability (388/400)^400 = 5e-6, so one is
    # put in by hand.
    values = table([[*np.linspace(0, 1, 12), *[None] * 388]])
    draws = drawn_games(400, seed=0, n_draws=300)
    draws[0] = 399
    assert interval(values, draws) == interval(values, draws[1:])
