"""Families of methods against each other: against loops, by hand, and what must not matter."""

import math

import numpy as np
import pytest

from harness.families import family_contrast, family_values
from harness.statistics import Interval, drawn_games, interval
from tests.naive import comparison as naive
from tests.naive.statistics import bca_interval, board_value

NAN = math.nan
N_GAMES = 20
DRAWS = drawn_games(N_GAMES, seed=0, n_draws=300)
FAMILIES = ["gradient", "cam", "gradient", "control", "cam", "gradient"]


def table():
    """Six methods; whole 64ths, a fifth missing, one game that no gradient has and one that no CAM places."""
    generator = np.random.default_rng(3)
    values = generator.integers(-64, 64, (6, 2, N_GAMES)) / 64
    values[generator.random(values.shape) < 0.2] = NAN
    values[[0, 2, 5], :, 4] = values[[1, 4], 1, 7] = NAN
    return values


def as_rows(values):
    """An array as nested lists of plain numbers, None for NaN."""
    return [[[None if math.isnan(value) else value for value in row] for row in rows] for rows in values.tolist()]


def parts(estimate):
    """An estimate as a tuple."""
    return estimate.value, estimate.interval.low, estimate.interval.high


def test_contrast_equals_its_replica():
    """The difference of two families is that of loops: per regime and together, with Efron's interval."""
    values = table()
    found = family_contrast(values, FAMILIES, ("gradient", "cam"), DRAWS)
    first, second = (naive.family_rows(as_rows(values), FAMILIES, family) for family in ("gradient", "cam"))
    rows = naive.difference(first, second)
    for estimate, kept in zip((*found.by_regime, found.together), (rows[:1], rows[1:], rows), strict=True):
        assert pytest.approx((board_value(kept), *bca_interval(kept, DRAWS.tolist()))) == parts(estimate)
        assert (len(naive.compared_games(kept)), "BCa") == (estimate.n_games, estimate.interval.kind)


def test_contrast_by_hand():
    """Methods are averaged within a game, then games: not games within a method."""
    # Three games; the second gradient has the first game only. Content: 0.5, 0.2, 0.4 less 0.1 each; position: 0.
    content = [[0.2, 0.2, 0.4], [0.8, NAN, NAN], [0.1, 0.1, 0.1]]
    values = np.stack([np.array(content), np.zeros((3, 3))], axis=1)
    found = family_contrast(values, ["gradient", "gradient", "cam"], ("gradient", "cam"), drawn_games(3, seed=0))
    # (0.4 + 0.1 + 0.3) / 3, 0, and half of the first.
    assert [0.8 / 3, 0.0, 0.4 / 3] == pytest.approx([each.value for each in (*found.by_regime, found.together)])
    assert [3, "t"] == [found.together.n_games, found.together.interval.kind]


def test_a_family_of_one_is_its_method():
    """The values of a family with a single method are that method's."""
    values = table()
    np.testing.assert_array_equal(values[3], family_values(values, FAMILIES, "control"))
    found = family_contrast(values, FAMILIES, ("control", "cam"), DRAWS)
    expected = values[3] - family_values(values, FAMILIES, "cam")
    assert interval(expected, DRAWS) == found.together.interval


def test_contrast_is_antisymmetric():
    """The families in the other order have the negative difference and the mirrored interval."""
    one, other = (
        family_contrast(table(), FAMILIES, pair, DRAWS) for pair in (("gradient", "cam"), ("cam", "gradient"))
    )
    value, low, high = parts(other.together)
    assert pytest.approx((-value, -high, -low), abs=1e-12) == parts(one.together)


def test_other_families_and_the_order_of_methods_are_nothing():
    """Methods of a third family count for nothing, and so does the order of methods."""
    values, order = table(), [4, 5, 1, 2, 0]
    expected = family_contrast(values, FAMILIES, ("gradient", "cam"), DRAWS)
    found = family_contrast(values[order], [FAMILIES[place] for place in order], ("gradient", "cam"), DRAWS)
    assert expected == found


def test_a_game_that_lifts_all_methods_is_nothing():
    """What every method gains in a game changes no contrast: games are paired."""
    gained = np.random.default_rng(0).integers(-8, 8, (1, 2, N_GAMES)) * 1.0
    one, other = (
        family_contrast(values, FAMILIES, ("gradient", "cam"), DRAWS) for values in (table(), table() + gained)
    )
    assert pytest.approx(parts(one.together), abs=1e-9) == parts(other.together)


def test_a_family_with_itself_differs_by_nothing():
    """The difference is 0, with an interval of no width."""
    found = family_contrast(table(), FAMILIES, ("cam", "cam"), DRAWS)
    assert (0.0, Interval(0.0, 0.0, "t")) == (found.together.value, found.together.interval)


def test_unknown_family():
    """A family without a method is an error, which says which there are."""
    with pytest.raises(ValueError, match=r"expected a family of the table \(cam, control, gradient\), got 'surrogate'"):
        family_contrast(table(), FAMILIES, ("cam", "surrogate"), DRAWS)
