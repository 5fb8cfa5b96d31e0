"""Curves of the oracle and of random orders on the toy machine, against runs straight through."""

import numpy as np
import pytest

from oracle.effects import _values, measure, reference_run
from oracle.removals import Removals, reference_curves
from oracle.rollout import ExactRollouts
from tests.naive import ram_v2 as naive
from tests.naive.oracle import end_of_run
from tests.toy import BALL_X, PREFIX, TAIL, ToyMachine, toy_game, toy_protocol

KEY = measure(toy_protocol(), toy_game(), 0, ToyMachine)
CAUSES, OUTPUTS = KEY.question.causes, KEY.question.outputs
STEPS = (0, 1, 2, 4, 8, 14)
EFFECTS = np.abs(KEY.effects)
N_ORDERS = 4


def toy_removals():
    """Removals on a toy of their own, and the rollouts that they cost."""
    rollouts = ExactRollouts(ToyMachine, toy_protocol().trace(toy_game(), 0))
    return Removals(_values(rollouts, reference_run(rollouts), OUTPUTS), CAUSES), rollouts


def naive_values(interventions):
    """The ball, and the number of changed pixels, on a machine of its own."""
    ram, screen = end_of_run(ToyMachine, PREFIX, TAIL, interventions)
    _, reference = end_of_run(ToyMachine, PREFIX, TAIL, [])
    return [float(ram[BALL_X]), float((screen != reference).sum())]


def naive_curves(order):
    """Deletion and insertion of both outputs in one order: curve, step, output."""
    return naive.curves(naive_values, [cause.removal for cause in CAUSES], order, STEPS)


@pytest.fixture(scope="module")
def found():
    """The reference curves of the toy."""
    removals, _ = toy_removals()
    generator = np.random.default_rng(8)
    return reference_curves(removals, EFFECTS, STEPS, n_orders=N_ORDERS, generator=generator)


def test_shapes_of_the_reference_curves(found):
    """The oracle has two curves per output, the random orders as many each."""
    assert {"oracle": (2, 2, 6), "random": (2, 2, N_ORDERS, 6)} == {name: each.shape for name, each in found.items()}


def test_random_orders_are_replays_and_the_same_for_all_outputs(found):
    """The random curves of both outputs are those of the generator's first permutations, measured from scratch."""
    generator = np.random.default_rng(8)
    for index in range(N_ORDERS):
        expected = np.array(naive_curves(generator.permutation(14).tolist()))
        assert expected[..., 0].tolist() == found["random"][0, :, index].tolist()
        assert expected[..., 1].tolist() == found["random"][1, :, index].tolist()


@pytest.mark.parametrize("row", [0, 1])
def test_the_oracle_removes_the_largest_effects_first(found, row):
    """The oracle's curves are replays in an order in which no effect stands before a larger one."""
    # Of which equal effects come first the generator decides: any number of permutations later, one of them fits.
    generator = np.random.default_rng(8)
    for _ in range(N_ORDERS + row):
        generator.permutation(14)
    shuffled = generator.permutation(14).tolist()
    order = sorted(shuffled, key=lambda index: -EFFECTS[row, index])
    assert sorted(EFFECTS[row].tolist(), reverse=True) == [EFFECTS[row, index] for index in order]
    expected = np.array(naive_curves(order))[..., row]
    assert expected.tolist() == found["oracle"][row].tolist()


def test_both_curves_by_hand():
    """Deletion ends, and insertion begins, with all removed; both have the reference at the other end."""
    removals, _ = toy_removals()
    curves = removals.curves(list(range(14)), (0, 1, 3, 14))
    # The ball goes first (113 to 5), then `drag` (9); `late` and the rest leave 5. Put back: the ball's second cause
    # is the second, so after one all is still gone; after three it is back, `drag` (4 more) and `late` (4 less) not.
    assert [[113, 5, 9, 5], [5, 5, 113, 113]] == curves[..., 0].tolist()


def test_a_known_set_is_not_run_again():
    """Another order of the same causes, at steps with the same sets, costs no rollout."""
    removals, rollouts = toy_removals()
    removals.curves([0, 2, 4, *range(6, 14), 1, 3, 5], (0, 3, 14))
    before = rollouts.n_rollouts
    removals.curves([4, 0, 2, *range(6, 14), 5, 3, 1], (0, 3, 14))
    assert before == rollouts.n_rollouts
    # Without `drag` alone is new.
    removals.without([2])
    assert before + 1 == rollouts.n_rollouts
