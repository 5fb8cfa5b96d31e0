"""Deletion and insertion on the toy machine: by hand, and against a loop that remembers nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.curves import CurveMeter, measure_curves
from harness.units import Claim, TaskId
from harness.world import build_world
from oracle.effects import measure
from oracle.rollout import ExactRollouts
from tests.naive.oracle import end_of_run
from tests.naive.scores import largest
from tests.toy import BALL_AT_HORIZON, BALL_X, PREFIX, TAIL, ToyMachine, toy_game, toy_protocol

CONTENT, POSITION = 0, 1
QUESTION = measure(toy_protocol(), toy_game(), 0, ToyMachine).question
N_CAUSES = len(QUESTION.causes)
# The order of the table: cells first, then the background, then the action.
IN_ORDER = np.arange(N_CAUSES, 0, -1, dtype=np.float64)
# What is left when everything is removed: the ball starts at 0, and moves by 2 in each of two frames (`late` acts two
# frames late) and by 1 for the action that nothing takes away.
ALL_REMOVED = 5


def fresh_world():
    """A world of its own for each meter."""
    return build_world(ExactRollouts(ToyMachine, QUESTION.trace))


@pytest.fixture(scope="module")
def world():
    """The toy standing at its analysis state."""
    return fresh_world()


def meter_of(world, output):
    """A meter that remembers nothing yet."""
    return CurveMeter(world, QUESTION.outputs[output], QUESTION.causes)


def naive_value(output, removed):
    """y on a machine of its own, straight through, with these causes removed one by one."""
    removals = [QUESTION.causes[index].removal for index in removed if QUESTION.causes[index].removal is not None]
    ram, screen = end_of_run(ToyMachine, PREFIX, TAIL, removals)
    if output == CONTENT:
        return float(ram[BALL_X])
    _, reference_screen = end_of_run(ToyMachine, PREFIX, TAIL, [])
    return float((screen != reference_screen).sum())


def naive_curves(output, claim):
    """Deletion and insertion, every step measured anew."""
    order = largest(claim, len(claim))
    deletion, insertion = [], []
    for n_taken in range(len(order) + 1):
        deletion.append(naive_value(output, order[:n_taken]))
        insertion.append(naive_value(output, [index for index in order if index not in order[:n_taken]]))
    return deletion, insertion


@pytest.mark.parametrize(
    ("output", "reference", "removed"),
    [
        (CONTENT, BALL_AT_HORIZON, ALL_REMOVED),
        # The sprite stands at column 5 instead of 3 and the background differs: all 80 pixels but the 4 both cover.
        (POSITION, 0, 76),
    ],
)
@given(claim=st.lists(st.integers(0, 3), min_size=N_CAUSES, max_size=N_CAUSES))
@settings(max_examples=10, deadline=None)
def test_ends_of_the_curves(output, reference, removed, claim):
    """Both curves have n + 1 steps; D[0] = I[n] is the reference, D[n] = I[0] has everything removed, for any claim."""
    deletion, insertion = meter_of(fresh_world(), output).measure(np.array(claim, dtype=np.float64))
    assert (N_CAUSES + 1, N_CAUSES + 1) == (len(deletion), len(insertion))
    assert (reference, removed) == (deletion[0], deletion[-1])
    assert (removed, reference) == (insertion[0], insertion[-1])


def test_curves_by_hand(world):
    """In the order of the table each cell takes its part away, and gives it back."""
    deletion, insertion = meter_of(world, CONTENT).measure(IN_ORDER)
    # Two causes a cell, of which the first removes it. Without the ball's start 113 - 108; without `drag` 4 more;
    # without `late` 2 less in each of two frames.
    assert [113, 5, 5, 9, 9, 9, 9, 5, 5, 5, 5, 5, 5, 5, 5] == deletion.tolist()
    # A cell is back when its second cause is. First the ball, then `drag` (4 less), then `late` (4 more).
    assert [5, 5, 113, 113, 109, 109, 109, 109, 113, 113, 113, 113, 113, 113, 113] == insertion.tolist()


def test_position_curves_by_hand(world):
    """On position the background, which comes last but one, changes almost every pixel."""
    deletion, insertion = meter_of(world, POSITION).measure(IN_ORDER)
    # The ball at 5 is two columns off (8 pixels), at 9 four and more (16).
    assert [0, 8, 8, 16, 16, 16, 16, 8, 8, 8, 8, 8, 8, 76, 76] == deletion.tolist()
    # Without background all 80 pixels change but those that the sprite covers as before: 4, all 8 of them, or none
    # at 109, four columns left of 113.
    assert [76, 76, 72, 72, 80, 80, 80, 80, 72, 72, 72, 72, 72, 0, 0] == insertion.tolist()


@pytest.mark.parametrize("output", [CONTENT, POSITION])
@given(claim=st.lists(st.integers(0, 5), min_size=N_CAUSES, max_size=N_CAUSES))
@settings(max_examples=10, deadline=None)
def test_every_step_is_a_replay(output, claim):
    """Each step of both curves is y on a fresh machine with exactly those causes removed, for any claim with ties."""
    deletion, insertion = meter_of(fresh_world(), output).measure(np.array(claim, dtype=np.float64))
    assert naive_curves(output, claim) == (deletion.tolist(), insertion.tolist())


@given(
    claims=st.lists(st.lists(st.integers(0, 3), min_size=N_CAUSES, max_size=N_CAUSES), min_size=2, max_size=3),
    output=st.sampled_from([CONTENT, POSITION]),
)
@settings(max_examples=10, deadline=None)
def test_remembering_changes_no_result(claims, output):
    """A meter that has measured other claims before gives the same curves as a new one."""
    used, known_world = meter_of(fresh_world(), output), fresh_world()
    for claim in (np.array(each, dtype=np.float64) for each in claims):
        expected = [curve.tolist() for curve in meter_of(known_world, output).measure(claim)]
        assert expected == [curve.tolist() for curve in used.measure(claim)]


def test_known_steps_cost_nothing(world):
    """The same claim a second time, or one with the same order, runs no rollout; the first ran one per new step."""
    meter = meter_of(world, CONTENT)
    before = world.rollouts.n_rollouts
    meter.measure(IN_ORDER)
    # Deletion: nothing, then one more with each of six cells and the background (seven sets of removals). Insertion
    # ends in nothing, begins with all, and has six sets more: each cell is back with its second cause.
    first = world.rollouts.n_rollouts - before
    assert 1 + 7 + 6 == first
    meter.measure(IN_ORDER)
    meter.measure(3 * IN_ORDER + 1)
    assert first == world.rollouts.n_rollouts - before


def test_curves_belong_to_their_claim(world):
    """The unit of curves names the claim's task and method, and holds both curves, measured in the claim's order."""
    task = TaskId(subject="machine", game="toy", state=0, output="ram[0]", regime="content")
    claim = Claim(task=task, method="blur", status="ok", values=tuple(IN_ORDER.tolist()))
    found = measure_curves(meter_of(world, CONTENT), claim, toy_protocol(), run_seed=0)
    deletion, insertion = meter_of(world, CONTENT).measure(IN_ORDER)
    assert (task, "blur", "ok", "") == (found.task, found.method, found.status, found.reason)
    assert (tuple(deletion.tolist()), tuple(insertion.tolist())) == (found.deletion, found.insertion)
