"""Exact rollouts on machines with hidden state: independent of everything that was run before."""

import numpy as np
import pytest

from oracle.errors import NotDeterministic
from oracle.intervention import ActionWrite, RamWrite, RegisterWrite
from oracle.rollout import ExactRollouts, intervene, replay
from oracle.state import Trace
from tests.naive.oracle import PlainRollouts, UncheckedRollouts
from tests.toy import (
    BALL_AT_HORIZON,
    BALL_AT_STATE,
    BALL_X,
    BRIEF_POISON,
    DRAG,
    IDLE,
    LASTING_POISON,
    LATE,
    LEFT,
    PREFIX,
    RIGHT,
    RIGHT_HALF,
    SCREEN_POISON,
    STATE_POISON,
    TAIL,
    PoisonedMachine,
    ToyMachine,
    unsteady_machines,
)

TRACE = Trace((*PREFIX, *TAIL), len(PREFIX))


@pytest.fixture
def rollouts():
    """Rollouts from the state of the toy."""
    return ExactRollouts(ToyMachine, TRACE)


def ball_after(rollouts, *interventions, tail=None):
    """Where the ball ends."""
    return int(rollouts.run(interventions, tail).ram[BALL_X])


def test_no_intervention_is_the_reference_run(rollouts):
    """Without intervention the ball ends where the formulas put it."""
    assert BALL_AT_HORIZON == ball_after(rollouts)


def test_the_pair_acts_only_together(rollouts):
    """One half of the pair changes nothing; both push the ball by their product in every frame."""
    assert BALL_AT_HORIZON == ball_after(rollouts, RamWrite(LEFT, 3))
    assert BALL_AT_HORIZON == ball_after(rollouts, RamWrite(RIGHT_HALF, 5))
    # 3 * 5 in each of four frames.
    assert BALL_AT_HORIZON + 60 == ball_after(rollouts, RamWrite(LEFT, 3), RamWrite(RIGHT_HALF, 5))


@pytest.mark.parametrize(("n_frames", "moved"), [(1, 0), (2, 0), (3, 3), (4, 6)])
def test_the_late_cause_acts_after_two_frames(rollouts, n_frames, moved):
    """Nothing is seen of the late cause for two frames; then it acts in every frame."""
    # From 2 to 5: three more steps per frame, from the third frame on.
    tail = TAIL[:n_frames]
    assert moved == ball_after(rollouts, RamWrite(LATE, 5), tail=tail) - ball_after(rollouts, tail=tail)


@pytest.mark.parametrize("value", [6, 7, 255])
def test_the_late_cause_saturates(rollouts, value):
    """From its limit of 6 on, every value of the saturating cause has the same effect."""
    # 6 - 2 in each of two frames.
    assert BALL_AT_HORIZON + 8 == ball_after(rollouts, RamWrite(LATE, value))


def test_linear_causes_add_up(rollouts):
    """The effects of the two linear causes, of opposite sign, add up."""
    # +10 once, and -2 in each of four frames.
    assert BALL_AT_HORIZON + 10 - 8 == ball_after(rollouts, RamWrite(BALL_X, BALL_AT_STATE + 10), RamWrite(DRAG, 3))


def test_the_tail_can_be_replaced(rollouts):
    """A rollout plays the tail it is given; its length is the horizon."""
    # Six frames of +1 and six times RIGHT.
    assert BALL_AT_STATE + 12 == ball_after(rollouts, tail=[RIGHT] * 6)


def test_an_action_is_replaced_where_the_offset_says(rollouts):
    """do(action) replaces one action of the tail: the effect of taking RIGHT away is minus one step."""
    assert BALL_AT_HORIZON - 1 == ball_after(rollouts, ActionWrite(1, 0))
    assert BALL_AT_HORIZON + 1 == ball_after(rollouts, ActionWrite(3, RIGHT))


def test_reward_is_the_sum_over_the_tail(rollouts):
    """The reward of a rollout is what its tail earns, without the frames that lead to the state."""
    # The tail holds one RIGHT; the prefix holds two, which must not count.
    assert (1.0, 2.0) == (rollouts.run([]).reward, rollouts.run([ActionWrite(0, RIGHT)]).reward)


def test_a_register_is_read_at_the_state(rollouts):
    """Reading a register gives its value at f*, whatever was run before."""
    rollouts.run([RegisterWrite("TIA", "COLUBK", 0x0E)])
    assert rollouts.register("TIA", "COLUBK") == 0x80


def test_ram_is_a_copy(rollouts):
    """Writing into the RAM that was handed out changes nothing."""
    rollouts.ram[:] = 0
    assert BALL_AT_STATE == rollouts.ram[BALL_X]


def test_registers_are_written_before_ram():
    """A register write, which restores an edited state, never undoes a RAM write of the same rollout."""

    class Restoring(ToyMachine):
        def write_register(self, device, register, value):
            self.restore(self.booted)
            super().write_register(device, register, value)

    machine = Restoring()
    machine.booted = machine.checkpoint()
    intervene(machine, [RamWrite(IDLE, 99), RegisterWrite("TIA", "COLUBK", 0x0E)], [])
    assert (99, 0x0E) == (machine.ram()[IDLE], machine.read_register("TIA", "COLUBK"))


def test_intervene_leaves_the_tail_alone():
    """The tail that is handed in is not changed in place."""
    tail = [0, 0]
    assert [0, RIGHT] == intervene(ToyMachine(), [ActionWrite(1, RIGHT)], tail)
    assert [0, 0] == tail


# Poison, rebuilds it must cost, and what it does to the ball in its own rollout.
# State: `late` is 3, 4, 5, 6 in the four frames, of which the last two of the ball's frames see 3 and 4 instead of 2.
POISONS = [(BRIEF_POISON, 0, 0), (SCREEN_POISON, 1, 0), (STATE_POISON, 1, 3), (LASTING_POISON, 1, 4)]


@pytest.mark.parametrize(("poison", "n_rebuilds", "own_effect"), POISONS)
def test_a_poisoned_machine_is_detected_and_rebuilt(poison, n_rebuilds, own_effect):
    """The rollout after poison equals the one before it; only poison that one frame can't flush costs a rebuild."""
    rollouts = ExactRollouts(PoisonedMachine, TRACE)
    before = rollouts.run([RamWrite(DRAG, 2)])
    assert BALL_AT_HORIZON + own_effect == ball_after(rollouts, RamWrite(IDLE, poison))
    after = rollouts.run([RamWrite(DRAG, 2)])
    np.testing.assert_array_equal(before.ram, after.ram)
    np.testing.assert_array_equal(before.screen, after.screen)
    assert n_rebuilds == rollouts.n_rebuilds


def test_rebuilding_is_counted_in_frames():
    """A rebuild costs the prefix and one more arrival, and the count says so."""
    rollouts = ExactRollouts(PoisonedMachine, TRACE)
    rollouts.run([RamWrite(IDLE, LASTING_POISON)])
    before = rollouts.n_frames
    rollouts.run([])
    # Arrive in vain 3, boot 6, arrive 3, tail 4.
    assert 3 + 6 + 3 + 4 == rollouts.n_frames - before


@pytest.mark.parametrize("poison", [poison for poison, _, _ in POISONS])
def test_an_exact_rollout_equals_its_replay(poison):
    """A poisoning poke itself ends as it does on a fresh machine, and so does the poke after it."""
    rollouts = ExactRollouts(PoisonedMachine, TRACE)
    for interventions in ([RamWrite(IDLE, poison)], [RamWrite(LATE, 9)]):
        exact, slow = rollouts.run(interventions), replay(PoisonedMachine, TRACE, interventions)
        np.testing.assert_array_equal(slow.ram, exact.ram)
        np.testing.assert_array_equal(slow.screen, exact.screen)
        assert (slow.reward, slow.lives, slow.terminal) == (exact.reward, exact.lives, exact.terminal)


@pytest.mark.parametrize("poison", [BRIEF_POISON, LASTING_POISON])
def test_plain_restore_and_run_is_wrong_after_poison(poison):
    """Restoring a checkpoint and running on, without the recipe, gives another end after either kind of poison."""
    plain = PlainRollouts(PoisonedMachine, PREFIX, TAIL)
    plain.run([RamWrite(IDLE, poison)])
    ram, _ = plain.run([])
    # Brief: three steps in the first frame. Lasting: one in each of four.
    assert BALL_AT_HORIZON + {BRIEF_POISON: 3, LASTING_POISON: 4}[poison] == ram[BALL_X]


@pytest.mark.parametrize(("poison", "n_steps"), [(BRIEF_POISON, 0), (LASTING_POISON, 6)])
def test_the_recipe_without_its_check_is_wrong_after_lasting_poison(poison, n_steps):
    """The flushing frame alone cures brief poison and not the lasting one: the check is needed."""
    unchecked = UncheckedRollouts(PoisonedMachine, PREFIX, TAIL)
    unchecked.run([RamWrite(IDLE, poison)])
    ram, _ = unchecked.run([])
    # Lasting: one step in each of the two frames to f* and the four of the tail.
    assert BALL_AT_HORIZON + n_steps == ram[BALL_X]


def test_a_rebuilt_machine_that_arrives_elsewhere_is_refused():
    """If a rebuilt machine does not reproduce the state, no effect is given."""
    rollouts = ExactRollouts(unsteady_machines(PoisonedMachine), TRACE)
    rollouts.run([RamWrite(IDLE, LASTING_POISON)])
    with pytest.raises(NotDeterministic, match="the state at frame 6: expected the same bytes on a rebuilt interface"):
        rollouts.run([])


def test_replay_plays_straight_through():
    """The slow way makes one machine, plays every action once and reads the end."""
    end = replay(ToyMachine, TRACE, [RamWrite(DRAG, 0)])
    # One step less of drag in each of four frames; one RIGHT in the tail.
    assert (BALL_AT_HORIZON + 4, 1.0, 1, False) == (end.ram[BALL_X], end.reward, end.lives, end.terminal)
