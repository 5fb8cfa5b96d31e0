"""The effect at every frame: against straight-through replays, and against answer keys at their horizon."""

import numpy as np
import pytest

from games.catalog import game
from oracle.effects import Measured, measure, reference_run
from oracle.emulator import NOOP, Emulator
from oracle.horizons import horizon_curve
from oracle.intervention import RamWrite
from oracle.output import changed_pixels_output, content_output
from oracle.protocol import protocol
from oracle.rollout import ExactRollouts, replay
from oracle.state import Trace
from tests.toy import BALL_X, LATE, PREFIX, TAIL, ToyMachine, toy_game, toy_protocol

OUTPUTS = (content_output(BALL_X), changed_pixels_output())


def standing(fresh_machine, trace):
    """The machine at f*, with its reference run."""
    rollouts = ExactRollouts(fresh_machine, trace)
    return Measured(rollouts, reference_run(rollouts))


def test_every_frame_is_a_straight_through_replay():
    """The curve at frame t is the mean size of the difference between two runs that end there."""
    trace = toy_protocol().trace(toy_game(), 0)
    values = (0, 5, 77)
    curve = horizon_curve(standing(ToyMachine, trace), OUTPUTS, [RamWrite(LATE, value) for value in values], 20)
    for frame in range(1, 21):
        ending = Trace((*PREFIX, *[*TAIL, *[NOOP] * 20][:frame]), len(PREFIX))
        reference = replay(ToyMachine, ending, [])
        ends = [replay(ToyMachine, ending, [RamWrite(LATE, value)]) for value in values]
        moved = [abs(int(end.ram[BALL_X]) - int(reference.ram[BALL_X])) for end in ends]
        pixels = [int((end.screen != reference.screen).sum()) for end in ends]
        assert [np.mean(moved), np.mean(pixels)] == curve.effects[:, frame - 1].tolist()
    # `late` is 2 and acts after two frames: (|0 - 2| + |5 - 2| + |6 - 2|) / 3, since it saturates at 6.
    assert [0, 0, 3] == curve.effects[0, :3].tolist()


def test_curve_ends_with_the_reference_run():
    """Where the reference run reaches game over, in frame 9 after f*, there is nothing to compare with any more."""
    trace = toy_protocol().trace(toy_game(), 0)
    found = standing(lambda: ToyMachine(last_frame=len(PREFIX) + 9), trace)
    assert 8 == horizon_curve(found, OUTPUTS, [RamWrite(LATE, 0)], 20).n_frames


def test_curve_is_at_least_as_long_as_the_horizon():
    """A horizon beyond the frames that are asked for is on the curve."""
    trace = toy_protocol().trace(toy_game(), 0)
    assert len(TAIL) == horizon_curve(standing(ToyMachine, trace), OUTPUTS, [RamWrite(LATE, 0)], 2).n_frames


@pytest.mark.ale
@pytest.mark.parametrize("name", ["ram-v1", "ram-v2(n_donors=1,n_orders=1,n_values=2)"])
def test_curve_at_the_horizon_is_the_answer_key(name):
    """On Pong, at the horizon of the protocol, the curve of a byte's cause is the size of its measured effect."""
    pong = game("pong")
    answer_key = measure(protocol(name), pong, 0)
    question = answer_key.question
    found = standing(lambda: Emulator(pong), question.trace)
    for column, cause in enumerate(question.causes):
        if cause.ram_address in (49, 54):
            curve = horizon_curve(found, question.outputs, cause.interventions)
            at_horizon = curve.effects[:, len(question.trace.tail) - 1]
            np.testing.assert_allclose(np.abs(answer_key.effects[:, column]), at_horizon, rtol=1e-12)
            assert 60 == curve.n_frames
