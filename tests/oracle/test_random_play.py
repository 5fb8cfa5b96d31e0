"""Seeded random play on the toy machine."""

import numpy as np
import pytest

from oracle import random_play as play_module
from oracle.errors import InvalidState
from oracle.random_play import FIRE, INTRO_FRAMES, LONGEST_HOLD, N_BOOTS, random_play
from tests.toy import BALL_X, ToyMachine


def play(n_frames=80, seed=0, machine=ToyMachine):
    """Random play on the toy."""
    return random_play(machine, n_frames, generator=np.random.default_rng(seed))


def test_frames_come_from_several_boots():
    """The frames are spread evenly over four boots, of which each marks its first frame."""
    found = play()
    assert (80, 80, 80) == (len(found.pictures), len(found.ram), len(found.starts))
    assert [0, 20, 40, 60] == np.flatnonzero(found.starts).tolist()
    assert N_BOOTS == found.n_boots


def test_the_same_seed_plays_the_same_game():
    """Frames and RAM are decided by the generator."""
    np.testing.assert_array_equal(play().ram, play().ram)
    np.testing.assert_array_equal(play().pictures, play().pictures)
    assert (play().ram != play(seed=1).ram).any()


class ListeningMachine(ToyMachine):
    """A machine that keeps what was pressed."""

    pressed: list[int]

    def __init__(self):
        super().__init__()
        ListeningMachine.pressed = []

    def act(self, action):
        ListeningMachine.pressed.append(action)
        return super().act(action)


def test_actions_are_held_and_fire_is_frequent():
    """Actions are held for 6.5 frames in the mean, 12 at most, and fire comes more often than one in 18."""
    play(4 * 4000, machine=ListeningMachine)
    pressed = np.array(ListeningMachine.pressed)
    changes = np.flatnonzero(np.diff(pressed)) + 1
    chosen = pressed[np.concatenate([[0], changes])]
    # A mean hold of 6.5 frames; two equal draws in a row look like one.
    assert len(pressed) / 6.5 == pytest.approx(len(chosen), rel=0.15)
    assert set(range(18)) == set(chosen.tolist())
    # 15 % and a share of the 18 draws among the others: 0.15 + 0.85 / 18.
    assert pytest.approx(0.15 + 0.85 / 18, abs=0.04) == (chosen == FIRE).mean()
    assert np.diff(changes).min() >= 1
    assert np.diff(changes).max() <= 4 * LONGEST_HOLD


def test_the_warm_up_is_not_shown():
    """The first frame that is kept is the one after the warm-up."""
    pressed = play_module._actions(INTRO_FRAMES + 20, np.random.default_rng(0))
    machine = ToyMachine()
    for action in pressed[: INTRO_FRAMES + 1]:
        machine.act(action)
    assert machine.ram()[BALL_X] == play().ram[0][BALL_X]


def test_a_game_that_ends_is_started_again():
    """After game over a fresh machine is switched on, until there are enough frames."""
    found = play(machine=lambda: ToyMachine(last_frame=INTRO_FRAMES + 7))
    # The frame that ends the game is not kept: six remain of each boot.
    assert (14, 80) == (found.n_boots, len(found.ram))
    assert list(range(0, 80, 6)) == np.flatnonzero(found.starts).tolist()


def test_a_game_that_never_lasts_is_refused(monkeypatch):
    """Where every game ends before the warm-up is over, there is nothing to learn from."""
    monkeypatch.setattr(play_module, "MOST_BOOTS", 3)
    with pytest.raises(InvalidState, match="random play: expected 80 frames in 3 games, got 0"):
        play(machine=lambda: ToyMachine(last_frame=9))


def test_frames_unlike_the_first_are_counted():
    """A frame counts whose picture differs from the first one; the sprite returns to its column now and then."""
    found = play()
    columns = found.ram[:, BALL_X] % 10
    assert int((columns != columns[0]).sum()) == found.n_frames_unlike_first
