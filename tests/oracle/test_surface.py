"""Surfaces of the toy machine against straight-through replays, and against the answer keys of protocols."""

import numpy as np
import pytest

from games.catalog import game
from games.errors import VeritariError
from oracle.effects import Measured, measure, reference_run
from oracle.emulator import Emulator
from oracle.intervention import RamWrite
from oracle.output import changed_pixels_output, content_output
from oracle.protocol import protocol
from oracle.responses import finals_of
from oracle.rollout import ExactRollouts, replay
from oracle.surface import joined, measure_surface, whole
from tests.toy import BALL_X, BOOT_RAM, LATE, ToyMachine, toy_game, toy_protocol

OUTPUTS = (content_output(BALL_X), content_output(LATE), changed_pixels_output())
CELLS = range(len(BOOT_RAM))


def standing(fresh_machine, trace):
    """The machine at f*, with its reference run."""
    rollouts = ExactRollouts(fresh_machine, trace)
    return Measured(rollouts, reference_run(rollouts))


@pytest.fixture(scope="module")
def toy():
    """The toy at its state."""
    return standing(ToyMachine, toy_protocol().trace(toy_game(), 0))


@pytest.fixture(scope="module")
def surface(toy):
    """All six cells."""
    return measure_surface(toy, OUTPUTS, CELLS)


def test_every_entry_is_a_straight_through_replay(toy, surface):
    """Each of 6 x 256 entries of every array is what a fresh machine does that plays the same run from its boot."""
    reference = replay(ToyMachine, toy.rollouts.trace, [])
    for address in CELLS:
        for value in range(256):
            end = replay(ToyMachine, toy.rollouts.trace, [RamWrite(address, value)])
            n_pixels = int((end.screen != reference.screen).sum())
            expected = [int(end.ram[cell]) - int(reference.ram[cell]) for cell in (BALL_X, LATE)]
            assert [*expected, n_pixels] == surface.differences[:, address, value].tolist()
            assert int((end.ram != reference.ram).sum()) == surface.changed_bytes[address, value]
            assert n_pixels == surface.changed_pixels[address, value]


def test_present_values_change_nothing_and_are_not_run(toy, surface):
    """The entry at the value that a byte has is 0 everywhere, and costs no rollout: there are 255 per byte."""
    present = [surface.differences[:, address, toy.rollouts.ram[address]].tolist() for address in CELLS]
    assert [[0, 0, 0]] * 6 == present
    assert 6 * 255 == surface.n_rollouts


@pytest.mark.parametrize("present", [0, 255])
def test_values_at_the_edge(present):
    """A byte whose present value is 0 or 255 has the 255 others measured: a ball that is moved stays moved."""
    # From boot to f* the ball goes 4 columns to the right.
    found = standing(lambda: ToyMachine((present - 4) % 256), toy_protocol().trace(toy_game(), 0))
    assert present == found.rollouts.ram[BALL_X]
    [row] = measure_surface(found, OUTPUTS[:1], [BALL_X]).differences[0].tolist()
    at_horizon = (present + 5) % 256
    assert [(value + 5) % 256 - at_horizon for value in range(256)] == row


def test_blocks_join_to_the_whole(toy, surface):
    """A surface that is measured in two blocks is the same as in one."""
    parts = [measure_surface(toy, OUTPUTS, addresses) for addresses in ((0, 1), (2, 3, 4, 5))]
    whole_again = joined(parts)
    for name in ("differences", "changed_bytes", "changed_pixels"):
        np.testing.assert_array_equal(getattr(surface, name), getattr(whole_again, name))
    assert surface.n_rollouts == whole_again.n_rollouts


def test_effects_of_the_toy_are_entries():
    """Every effect of a byte under a protocol with one do-value per cause is an entry of the surface, with its sign."""
    answer_key = measure(toy_protocol(), toy_game(), 0, ToyMachine)
    question = answer_key.question
    surface = measure_surface(standing(ToyMachine, question.trace), question.outputs, CELLS)
    for column, cause in enumerate(question.causes):
        if isinstance(cause.intervention, RamWrite):
            entry = surface.differences[:, cause.intervention.address, cause.intervention.value]
            assert answer_key.effects[:, column].tolist() == entry.tolist()


@pytest.mark.ale
@pytest.mark.parametrize("name", ["ram-v1", "ram-v2(n_donors=1,n_orders=1,n_values=2)"])
def test_effects_of_pong_are_entries(name):
    """Of Pong, effects of two bytes are entries of the surface, or means of their sizes where do-values are many."""
    pong = game("pong")
    answer_key = measure(protocol(name), pong, 0)
    question = answer_key.question
    addresses = (49, 54)
    found = standing(lambda: Emulator(pong), question.trace)
    surface = measure_surface(found, question.outputs, addresses)
    for column, cause in enumerate(question.causes):
        if cause.ram_address in addresses:
            row = addresses.index(cause.ram_address)
            entries = surface.differences[:, row, [do.value for do in cause.interventions]].astype(float)
            expected = np.abs(entries).mean(axis=1) if cause.further else entries[:, 0]
            np.testing.assert_allclose(answer_key.effects[:, column], expected, rtol=1e-12)
    # The reference run is no special case of an output that is read from screens.
    assert [0] * len(question.outputs) == [
        int((output.values(finals_of([found.reference], found.reference)) - reference)[0])
        for output, reference in zip(question.outputs, answer_key.reference_value, strict=True)
    ]


def test_fractions_are_refused():
    """An output that is no whole number is an error, not rounded."""
    with pytest.raises(VeritariError, match=r"expected whole numbers, got 0\.5"):
        whole(np.array([1.0, 0.5]))
