"""Deletion and insertion under v2: steps, orders, differences to random, and gain."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import scores_v2
from oracle.removals import doubling_steps, order_of
from tests.naive import scores_v2 as naive

SHIFTS = st.sampled_from([0.0, -100.0, 7.5])


def vector(values):
    """The values as the scores take them."""
    return np.array(values, dtype=np.float64)


def same(expected, actual):
    """Equal to nine decimals, or undefined both."""
    return pytest.approx(expected, abs=1e-9, nan_ok=True) == actual


@st.composite
def curve_sets(draw, largest=3):
    """A method's, the oracle's and some random curves of one length, none of which need have the same reference."""
    n_steps, n_orders = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    curve = st.lists(st.integers(0, largest).map(float), min_size=n_steps, max_size=n_steps)
    pair = st.tuples(curve, curve)
    return draw(pair), draw(pair), draw(st.lists(pair, min_size=n_orders, max_size=n_orders))


def differences(found, oracle, random):
    """The fast differences of curves listed as the naive code takes them."""
    return scores_v2.curve_differences(*map(vector, found), vector(oracle), vector(random).transpose(1, 0, 2))


@given(st.integers(0, 300))
def test_steps_are_their_replica(n_causes):
    """Steps double up to 64, and the last has all causes."""
    assert tuple(naive.curve_steps(n_causes)) == doubling_steps(n_causes)


@pytest.mark.parametrize(
    ("n_causes", "steps"),
    [
        (1, [0, 1]),
        (3, [0, 1, 2, 3]),
        (64, [0, 1, 2, 4, 8, 16, 32, 64]),
        (129, [0, 1, 2, 4, 8, 16, 32, 64, 129]),
    ],
)
def test_all_causes_are_a_step_once(n_causes, steps):
    """The last step is n, also where n is a power of two."""
    assert tuple(steps) == doubling_steps(n_causes)


@given(st.lists(st.integers(0, 3).map(float), min_size=1, max_size=9), st.integers(0, 99))
def test_orders_descend(claim, seed):
    """An order names every cause once, larger claims first, and is the generator's alone."""
    order, again = (order_of(vector(claim), generator=np.random.default_rng(seed)).tolist() for _ in range(2))
    assert list(range(len(claim))) == sorted(order)
    assert sorted(claim, reverse=True) == [claim[index] for index in order]
    assert order == again


def test_ties_come_in_every_order_alike():
    """Of 2400 orders, each of the six that the ties allow is drawn 400 times, up to chance."""
    generator = np.random.default_rng(3)
    claim = vector([1, 5, 1, 1, 0])
    drawn = Counter(tuple(order_of(claim, generator=generator).tolist()) for _ in range(2400))
    assert set(naive.descending_orders(claim.tolist())) == set(drawn)
    # Standard deviation of a count: sqrt(2400 * 1/6 * 5/6) = 18.3.
    assert dict.fromkeys(drawn, pytest.approx(400, abs=4 * 18.3)) == drawn


@given(curves=st.one_of(curve_sets(), curve_sets(largest=255)), shift=SHIFTS, scale=st.sampled_from([1.0, 1e-9, 1e9]))
def test_differences_are_their_replica_in_any_unit(curves, shift, scale):
    """Both differences are those of the naive loop, whatever unit and zero y has."""
    found, oracle, random = curves
    moved = [scale * (vector(each) + shift) for each in curves]
    expected = naive.curve_differences(*found, oracle, random)
    actual = differences(*moved)
    assert same(expected[0], actual[0])
    assert same(expected[1], actual[1])


def test_differences_by_hand():
    """Deletion gains by leaving the reference early, insertion by coming back early."""
    # |y - 10| is 0, 8, 8 for the method: area 6; 0, 0, 8 and 0, 4, 8 for the random orders: 2 and 4. The range is 10.
    deletion, random_deletion = [10, 2, 18], [[10, 10, 2], [10, 6, 2]]
    # 10, 0, 0 for the method: 2.5; 10, 10, 0 twice for the random orders: 7.5.
    insertion, random_insertion = [0, 10, 10], [[0, 20, 10], [20, 0, 10]]
    oracle = [[10, 3, 2], [4, 10, 10]]
    found = scores_v2.curve_differences(
        *map(vector, (deletion, insertion, oracle, [random_deletion, random_insertion]))
    )
    assert (pytest.approx((6 - 3) / 10), pytest.approx((7.5 - 2.5) / 10)) == found


def test_a_random_order_gains_nothing():
    """The curves of the only random order have difference 0; the mean over several random orders is 0."""
    generator = np.random.default_rng(5)
    random = generator.integers(0, 9, (2, 6, 5)).astype(np.float64)
    each = [scores_v2.curve_differences(*random[:, index], random[:, 0], random) for index in range(6)]
    assert [pytest.approx(0, abs=1e-12)] * 2 == np.mean(each, axis=0).tolist()
    assert (0.0, 0.0) == scores_v2.curve_differences(*random[:, 2], random[:, 0], random[:, 2:3])


def test_the_method_does_not_set_the_range():
    """The range is the oracle's and the random orders' alone, so one method's curves change no other's score."""
    still = np.full((2, 1, 3), 4.0)
    oracle = vector([[4, 4, 6], [6, 4, 4]])
    # |y - 4| is 0, 10, 10 with area 7.5 over a range of 2.
    found = scores_v2.curve_differences(vector([4, 14, 14]), vector([6, 4, 4]), oracle, still)
    assert (3.75, pytest.approx(-0.25)) == found
    # Nothing changes but for the method itself.
    unknown = scores_v2.curve_differences(vector([4, 14, 14]), vector([6, 4, 4]), still[:, 0], still)
    assert [True, True] == [math.isnan(value) for value in unknown]


@given(st.lists(st.tuples(*[st.sampled_from([math.nan, -0.5, 0.0, 0.25, 1.0])] * 2), max_size=6))
def test_gain_is_its_replica(pairs):
    """Gain is the quotient of the sums over what both have, undefined unless the oracle's is positive."""
    method, oracle = ([pair[side] for pair in pairs] for side in (0, 1))
    assert same(naive.gain(method, oracle), scores_v2.gain(vector(method), vector(oracle)))


def test_gain_is_a_quotient_of_sums():
    """An output on which the oracle loses to random counts in the sums, and has no quotient of its own."""
    # (0.1 + 0.3) / (-0.1 + 0.9), not the mean of -1 and 1/3.
    assert same(0.5, scores_v2.gain(vector([0.1, 0.3]), vector([-0.1, 0.9])))
    assert same(math.nan, scores_v2.gain(vector([0.1]), vector([-0.1])))
    oracle = vector([0.2, math.nan, -0.1])
    assert same(1.0, scores_v2.gain(oracle, oracle))
