"""What bytes do: on paper, on the toy machine, against runs by hand, and in Pong."""

from dataclasses import replace

import numpy as np
import pytest

from games.catalog import game
from oracle.do_values import cause_of
from oracle.effects import Measured, live_trace, reference_run
from oracle.emulator import Emulator
from oracle.errors import InvalidState
from oracle.intervention import RamWrite
from oracle.protocol import protocol
from oracle.roles import ByteRuns, byte_runs, measure_roles, strongest
from oracle.rollout import ExactRollouts
from tests.naive import roles as naive
from tests.toy import (
    BALL_X,
    BOOT_RAM,
    DRAG,
    IDLE,
    LATE,
    LEFT,
    RIGHT_HALF,
    SPRITE_COLOUR,
    SPRITE_ROWS,
    SPRITE_WIDTH,
    ToyMachine,
    ToyProtocol,
    toy_game,
)

ADDRESSES = range(len(BOOT_RAM))
# Nothing was seen of this byte at state 0.
QUIET = ByteRuns(0, 5, 0.0, 0.0, 10, 0, 0, 0, 0)


class WideMachine(ToyMachine):
    """The toy with a column for every value of `ball_x`: the edge cuts no move short."""

    def _drawn(self):
        screen = np.full((8, 256 + SPRITE_WIDTH), self._background, dtype=np.uint8)
        screen[SPRITE_ROWS, self._ram[BALL_X] : self._ram[BALL_X] + SPRITE_WIDTH] = SPRITE_COLOUR
        return screen


class TallMachine(WideMachine):
    """The same on its side, where the ball goes up as `ball_x` grows."""

    def _drawn(self):
        return super()._drawn().T[::-1].copy()


class DiagonalMachine(WideMachine):
    """The ball goes half as far down as to the right."""

    def _drawn(self):
        wide = super()._drawn()
        screen = np.full((140, wide.shape[1]), self._background, dtype=np.uint8)
        top = self._ram[BALL_X] // 2
        screen[top : top + len(wide)] = wide
        return screen


class CountingMachine(WideMachine):
    """`idle` is what every frame earns, `left` the lives, and `late` too costs lives while it is above 100."""

    def act(self, action):
        return super().act(action) + self._ram[IDLE]

    def lives(self):
        return self._ram[LEFT] - (self._ram[LATE] > 100)


def toy_runs(machine):
    """The runs of all cells of a machine, with three do-values each."""
    rollouts = ExactRollouts(machine, ToyProtocol().trace(toy_game(), 0))
    found = Measured(rollouts, reference_run(rollouts))
    causes = []
    for address in ADDRESSES:
        first, *further = (RamWrite(address, (int(rollouts.ram[address]) + step) % 256) for step in (1, 5, 150))
        causes.append(cause_of(f"ram[{address}]", (first, *further), removal=first, address=address))
    return byte_runs(found, 0, causes)


def test_the_toy_does_what_stands_on_paper():
    """`ball_x` and `drag` move the sprite within two frames, `late` is seen later, the others do nothing alone."""
    # Drag is taken off in both frames, and `late` reaches the ball in the third: 2 of the 4 frames of the horizon.
    expected = {
        BALL_X: ("x", "x, slope +1.00 (state 0)"),
        DRAG: ("x", "x, slope -2.00 (state 0)"),
        IDLE: ("nothing", "nothing differs after 5 runs (state 0)"),
        LATE: ("appearance", "pixels differ after 3 of 5 runs (state 0)"),
        LEFT: ("nothing", "nothing differs after 5 runs (state 0)"),
        RIGHT_HALF: ("nothing", "nothing differs after 5 runs (state 0)"),
    }
    assert expected == {runs.address: (runs.role, runs.evidence) for runs in toy_runs(WideMachine)}


@pytest.mark.parametrize(
    ("machine", "role", "evidence"),
    [
        (TallMachine, "y", "y, slope -1.00 (state 0)"),
        (DiagonalMachine, "xy", "x, slope +1.00; y, slope +0.50 (state 0)"),
    ],
)
def test_direction_and_slope_are_those_of_the_screen(machine, role, evidence):
    """A ball that is drawn on its side or aslant is moved along that axis, or along both."""
    ball = toy_runs(machine)[BALL_X]
    assert (role, evidence) == (ball.role, ball.evidence)


def test_what_earns_and_what_costs_lives_is_told():
    """A byte that ALE reads as the score has the role score, one that it reads as lives the role lives."""
    found = toy_runs(CountingMachine)
    # 2 + 150 is the only value of `late` above 100 but for 2 - 8 = 250; lives come before pixels.
    expected = {
        IDLE: ("score", "reward differs after 5 of 5 runs (state 0)"),
        LEFT: ("lives", "lives differ after 5 of 5 runs (state 0)"),
        LATE: ("lives", "lives differ after 2 of 5 runs (state 0)"),
        BALL_X: ("x", "x, slope +1.00 (state 0)"),
    }
    assert expected == {each: (found[each].role, found[each].evidence) for each in expected}


def test_an_internal_byte_is_told_from_an_idle_one():
    """A byte that moves the ball where no screen shows it changes other bytes only."""

    class DarkMachine(WideMachine):
        def _drawn(self):
            return np.zeros((8, 10), dtype=np.uint8)

    expected = ["nothing", "internal", "nothing", "internal", "nothing", "nothing"]
    assert expected == [runs.role for runs in toy_runs(DarkMachine)]


@pytest.mark.parametrize(
    ("seen", "role"),
    [
        ({}, "nothing"),
        ({"n_internal": 1}, "internal"),
        ({"n_internal": 9, "n_appearance": 1}, "appearance"),
        ({"n_appearance": 9, "n_score": 1}, "score"),
        ({"n_score": 9, "n_lives": 1}, "lives"),
        ({"n_lives": 9, "n_score": 9, "slope_x": 0.25}, "x"),
        ({"slope_y": -0.125}, "y"),
        ({"slope_x": -1.0, "slope_y": 0.5}, "xy"),
        # One pixel in one of the two pokes is the slack of the test: 1 / 16 per unit.
        ({"slope_x": 1.0, "slope_y": 0.0625}, "x"),
        ({"slope_x": 0.0625, "slope_y": -0.0625, "n_appearance": 2}, "appearance"),
    ],
)
def test_the_strongest_of_several_roles_is_the_role(seen, role):
    """One run is enough for a stronger role, however many show a weaker one."""
    assert role == replace(QUIET, **seen).role


def test_the_strongest_state_counts():
    """The strongest role of any state is taken, of equally strong ones the first, and y is as strong as x."""
    scores, moves = replace(QUIET, state=1, n_score=3), replace(QUIET, state=2, slope_y=1.0)
    assert ("y", "y, slope +1.00 (state 2)") == strongest([QUIET, scores, moves])
    assert ("y", "y, slope +1.00 (state 2)") == strongest([moves, replace(moves, state=3, slope_y=0.0, slope_x=1.0)])
    assert ("score", "reward differs after 3 of 10 runs (state 1)") == strongest([QUIET, scores])


def test_nothing_was_seen_at_all_states():
    """The evidence of `nothing` are the runs of all states, not of the first."""
    expected = ("nothing", "nothing differs after 20 runs (states 0, 1)")
    assert expected == strongest([QUIET, replace(QUIET, state=1)])


def test_a_state_that_is_not_there_is_said():
    """A game that is over before its state has no roles, and the reason is told."""
    with pytest.raises(InvalidState, match="expected a game that runs at frame 6, got game over"):
        measure_roles(ToyProtocol(), toy_game(), 0, ADDRESSES, lambda: WideMachine(last_frame=3))


@pytest.mark.ale
def test_score_and_lives_are_those_of_runs_by_hand():
    """After as many runs as from the cartridge on, with nothing but the emulator, do reward and lives differ."""
    played, chosen = game("breakout"), protocol("ram-v2")
    trace = live_trace(chosen, played, 0)
    rollouts = ExactRollouts(lambda: Emulator(played), trace)
    causes = chosen.causes(played, rollouts)
    expected = []
    for address in (57, 76, 101):
        values = [each.value for each in causes[address].interventions]
        expected.append(naive.counts(played, trace, address, int(rollouts.ram[address]), values))
    found = measure_roles(chosen, played, 0, (57, 76, 101))
    assert expected == [(runs.n_score, runs.n_lives) for runs in found]
    # The lives, the score, and the ball: there is something to tell apart.
    assert [(False, True), (True, False), (False, True)] == [(score > 0, lives > 0) for score, lives in expected]


@pytest.mark.ale
def test_pong_does_what_is_known():
    """The ball's bytes move it by one pixel per unit, right and down; both scores are read by ALE."""
    found = measure_roles(protocol("ram-v2"), game("pong"), 0, (13, 14, 49, 54))
    assert ["score", "score", "x", "y"] == [runs.role for runs in found]
    assert [(0, 0), (0, 0), (1, 0), (0, 1)] == [(runs.slope_x, runs.slope_y) for runs in found]
