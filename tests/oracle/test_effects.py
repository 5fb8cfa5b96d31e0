"""The answer key of the toy machine against the values on paper and against a straight-line measurement."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.archive import pack, unpack
from oracle.effects import AnswerKey, measure, reference_run
from oracle.errors import DamagedFile, DegenerateTask, InvalidState, NotDeterministic
from oracle.intervention import ActionWrite, RamWrite, RegisterWrite
from oracle.output import changed_pixels_output, content_output
from oracle.responses import respond
from oracle.rollout import ExactRollouts
from tests.naive import oracle as naive
from tests.toy import (
    BALL_AT_HORIZON,
    BALL_AT_STATE,
    BALL_X,
    LASTING_POISON,
    PAPER_EFFECTS,
    PREFIX,
    TAIL,
    PoisonedMachine,
    ToyMachine,
    ToyProtocol,
    toy_game,
    toy_protocol,
    unsteady_machines,
)


@pytest.fixture(scope="module")
def answer_key():
    """The toy's answer key."""
    return measure(toy_protocol(), toy_game(), 0, ToyMachine)


def test_labels_stand_in_the_order_of_the_causes(answer_key):
    """The answer key lists the causes in the protocol's order."""
    assert [label for label, _, _ in PAPER_EFFECTS] == [cause.label for cause in answer_key.question.causes]


def test_content_effects_are_those_on_paper(answer_key):
    """Every cause changes the ball's byte by what the toy's formulas say, with its sign."""
    assert [content for _, content, _ in PAPER_EFFECTS] == answer_key.effects[0].tolist()


def test_position_effects_are_those_on_paper(answer_key):
    """Every cause changes as many pixels as the toy's formulas say."""
    assert [position for _, _, position in PAPER_EFFECTS] == answer_key.effects[1].tolist()


def test_reference_values(answer_key):
    """The reference of a content output is the byte at the horizon, that of a position output 0."""
    assert [BALL_AT_HORIZON, 0] == answer_key.reference_value.tolist()


def test_final_ram_of_a_cause(answer_key):
    """The final RAM kept for a cause is the RAM at the horizon after it."""
    # ram[3]:set writes 2 + 17 = 19, which stays; the ball ends 8 further.
    assert [BALL_AT_HORIZON + 8, 1, 7, 19, 0, 0] == answer_key.final_ram[6].tolist()


def test_footprint_of_a_cause(answer_key):
    """The footprint of a cause is where the screen at the horizon differs from the reference run's."""
    # The action RIGHT moves the sprite from columns 3..6 to 4..7 of rows 3 and 4.
    assert [[3, 3], [3, 7], [4, 3], [4, 7]] == np.argwhere(answer_key.footprints[13]).tolist()


def test_reference_pool_is_the_ram_of_every_prefix_frame(answer_key):
    """The reference pool holds the RAM after every frame of the prefix, the last row being f*."""
    # Boot at 104; drag -1 per frame, late +2 from the third frame on, RIGHT in the second and fifth.
    assert [103, 103, 104, 105, 107, 108] == answer_key.question.reference_pool[:, BALL_X].tolist()
    assert [BALL_AT_STATE, 1, 7, 2, 0, 0] == answer_key.question.ram.tolist()


def test_geometry_is_that_on_paper(answer_key):
    """The sampler geometry is the union of the sprite before and after the poke of the byte named as a position."""
    # Poke 108 + 24, four NOOP frames of +1: 136, so columns 6..9 against 3..6: columns 3 4 5 and 7 8 9 differ.
    offsets = tuple((row, column) for row in (0, 1) for column in (0, 1, 2, 4, 5, 6))
    geometry = answer_key.question.geometry
    assert (BALL_X, BALL_AT_STATE, (3, 3), (3, 3), offsets) == (
        geometry.address,
        geometry.value,
        geometry.cell,
        geometry.origin,
        geometry.offsets,
    )


def test_cost_is_counted(answer_key):
    """Rollouts and frames are counted, booting and the recipe's three extra frames included."""
    # One reference, 14 causes, one poke for the geometry; 6 frames of boot, 3 of the first arrival, 3 + 4 per rollout.
    assert (16, 6 + 3 + 16 * (3 + 4)) == (answer_key.n_rollouts, answer_key.n_frames)


def test_vacuous_causes_are_flagged(answer_key):
    """Exactly the causes that write the value that is there already carry the flag `vacuous`."""
    # Cells 4 and 5 hold 0, so occluding them writes 0 over 0.
    expected = {"ram[4]:occlude": "vacuous", "ram[5]:occlude": "vacuous"}
    flagged = zip(answer_key.question.causes, answer_key.flags, strict=True)
    assert expected == {cause.label: flag for cause, flag in flagged if flag}


def test_a_cause_that_ends_the_game_is_flagged():
    """A cause after which the game is over is flagged, and its effect is that of the frozen machine."""

    class Fragile(ToyMachine):
        def terminal(self):
            return bool(self.ram()[BALL_X] == 0)

    answer_key = measure(toy_protocol(), toy_game(), 0, Fragile)
    # Occluding the ball puts it at 0, where this machine stops: 0 - 113.
    assert ("game_over", -113) == (answer_key.flags[1], answer_key.effects[0, 1])


def test_effects_equal_the_straight_line_measurement(answer_key):
    """Measuring every cause on a machine of its own gives the same effects."""
    interventions = [cause.intervention for cause in answer_key.question.causes]
    expected = naive.effects(ToyMachine, PREFIX, TAIL, interventions, BALL_X)
    assert expected == list(zip(*answer_key.effects.tolist(), strict=True))


INTERVENTIONS = st.one_of(
    st.builds(RamWrite, st.integers(0, 5), st.integers(0, 255)),
    st.builds(RegisterWrite, st.just("TIA"), st.just("COLUBK"), st.integers(0, 255)),
    st.builds(ActionWrite, st.integers(0, 3), st.integers(0, 17)),
)


@given(st.lists(st.lists(INTERVENTIONS, max_size=6), min_size=1, max_size=5))
def test_any_interventions_equal_the_straight_line_run(sequence):
    """Any joint interventions in any sequence, poison included, end as each does on a machine of its own."""
    rollouts = ExactRollouts(PoisonedMachine, toy_protocol().trace(toy_game(), 0))
    for interventions in sequence:
        ram, screen = naive.end_of_run(PoisonedMachine, PREFIX, TAIL, interventions)
        end = rollouts.run(interventions)
        assert (ram.tolist(), screen.tolist()) == (end.ram.tolist(), end.screen.tolist())


@given(st.permutations(range(len(PAPER_EFFECTS))))
def test_permuting_the_causes_permutes_the_effects(order):
    """The effects do not depend on the order in which the causes are run."""
    rollouts = ExactRollouts(ToyMachine, toy_protocol().trace(toy_game(), 0))
    causes = toy_protocol().causes(toy_game(), rollouts)
    responses = respond(rollouts, reference_run(rollouts), [causes[index] for index in order])
    assert [PAPER_EFFECTS[index][1] for index in order] == responses.effects(content_output(BALL_X)).tolist()
    assert [PAPER_EFFECTS[index][2] for index in order] == responses.effects(changed_pixels_output()).tolist()


def test_a_later_state_has_its_own_reference():
    """State k is measured at its own frame: the ball stands k further, and so does the effect of occluding it."""
    answer_key = measure(toy_protocol(), toy_game(), 3, ToyMachine)
    # Three more frames of +1: 116 at the horizon, 111 at f*.
    assert (116, -111) == (answer_key.reference_value[0], answer_key.effects[0, 1])


def test_a_machine_that_differs_from_run_to_run_is_refused():
    """Two reference runs that differ are an error, never an effect."""
    with pytest.raises(NotDeterministic, match=r"two reference runs: expected the same RAM, got 1 differences"):
        measure(toy_protocol(), toy_game(), 0, unsteady_machines())


def test_a_machine_whose_screens_alone_differ_is_refused():
    """Reference runs with equal RAM and different screens are refused too."""

    class Flickering(ToyMachine):
        n_machines = 0

        def __init__(self):
            Flickering.n_machines += 1
            super().__init__()

        def screen(self):
            return super().screen() + np.uint8(Flickering.n_machines)

    # All 80 pixels have another colour on the second machine.
    with pytest.raises(NotDeterministic, match="expected the same screen, got 80 differences"):
        measure(toy_protocol(), toy_game(), 0, Flickering)


def test_a_game_that_ends_in_the_prefix_is_refused():
    """A state after game over is invalid, and the message names its frame."""
    with pytest.raises(InvalidState, match="expected a game that runs at frame 6, got game over; choose another trace"):
        measure(toy_protocol(), toy_game(), 0, lambda: ToyMachine(last_frame=6))


@pytest.mark.parametrize("last_frame", [7, 10])
def test_a_game_that_ends_in_the_reference_tail_is_refused(last_frame):
    """A reference tail that reaches game over, even with its last frame, is refused."""
    with pytest.raises(InvalidState, match="expected a game that runs to frame 10, got game over"):
        measure(toy_protocol(), toy_game(), 0, lambda: ToyMachine(last_frame=last_frame))


def test_a_game_that_ends_after_the_horizon_is_measured():
    """A game over one frame after the horizon spoils nothing."""
    answer_key = measure(toy_protocol(), toy_game(), 0, lambda: ToyMachine(last_frame=11))
    assert [content for _, content, _ in PAPER_EFFECTS] == answer_key.effects[0].tolist()


@dataclass(frozen=True)
class RejectingProtocol(ToyProtocol):
    """A protocol whose gate rejects every state."""

    def outputs(self, game, rollouts, responses):
        raise DegenerateTask("gate: nothing moves")


def test_a_rejected_state_keeps_its_reason_and_its_responses():
    """A state that the protocol rejects has no output and no geometry, but its reason, causes and final RAM."""
    answer_key = measure(RejectingProtocol(), toy_game(), 0, ToyMachine)
    question = answer_key.question
    assert ("gate: nothing moves", (), None) == (answer_key.exclusion, question.outputs, question.geometry)
    assert ((0, 14), (0,), (14, 6)) == (
        answer_key.effects.shape,
        answer_key.reference_value.shape,
        answer_key.final_ram.shape,
    )


def test_the_hash_tells_reference_runs_apart(answer_key):
    """Equal reference runs have equal hashes; a run from another start has another."""
    again = measure(toy_protocol(), toy_game(), 0, ToyMachine)
    other = measure(toy_protocol(), toy_game(), 0, lambda: ToyMachine(boot_ball_x=105))
    assert answer_key.reference_hash == again.reference_hash
    assert answer_key.reference_hash != other.reference_hash


def test_poisoning_leaves_no_trace_in_the_effects():
    """A cause that poisons the machine changes no effect of any other cause."""

    @dataclass(frozen=True)
    class PoisoningProtocol(ToyProtocol):
        def causes(self, game, rollouts):
            honest = super().causes(game, rollouts)
            return (replace(honest[4], intervention=RamWrite(2, LASTING_POISON)), *honest)

    answer_key = measure(PoisoningProtocol(), toy_game(), 0, PoisonedMachine)
    # The poison itself pushes the ball one step in each of its own four frames.
    assert [4, *(content for _, content, _ in PAPER_EFFECTS)] == answer_key.effects[0].tolist()


def test_archive_round_trip_keeps_everything(answer_key):
    """An answer key read back from its archive has equal values and arrays."""
    back = AnswerKey.from_bytes(answer_key.to_bytes(), "toy")
    arrays = {"effects", "reference_value", "final_ram", "footprints", "reference_ram", "reference_screen"}
    assert answer_key.model_dump(exclude=arrays) == back.model_dump(exclude=arrays)
    for name in sorted(arrays):
        original, restored = getattr(answer_key, name), getattr(back, name)
        assert original.dtype == restored.dtype
        np.testing.assert_array_equal(original, restored)
    for name, original in answer_key.question.arrays().items():
        np.testing.assert_array_equal(original, back.question.arrays()[name])


def test_archive_round_trip_is_byte_identical(answer_key):
    """Packing what was unpacked gives the same bytes, and so does measuring again."""
    content = answer_key.to_bytes()
    assert content == AnswerKey.from_bytes(content, "toy").to_bytes()
    assert content == measure(toy_protocol(), toy_game(), 0, ToyMachine).to_bytes()


def test_a_rejected_state_survives_the_archive():
    """An answer key without outputs, its geometry None, comes back byte for byte."""
    content = measure(RejectingProtocol(), toy_game(), 0, ToyMachine).to_bytes()
    assert content == AnswerKey.from_bytes(content, "toy").to_bytes()


@pytest.mark.parametrize("lost", ["reference_hash", "question", "effects", "footprints", "reference_pool"])
def test_an_archive_with_a_part_missing_is_damaged(answer_key, lost):
    """An archive of ours that lacks one part of an answer key is a damaged file, named."""
    values, arrays = unpack(answer_key.to_bytes(), "toy")
    values.pop(lost, None)
    arrays.pop(lost, None)
    with pytest.raises(DamagedFile, match="somewhere/entry"):
        AnswerKey.from_bytes(pack(values, arrays), "somewhere/entry")
