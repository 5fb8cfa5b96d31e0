"""Effects on what a network says, on the toy machine: known on paper."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from oracle.effects import AnswerKey, measure
from oracle.errors import NotDeterministic
from oracle.intervention import ActionWrite
from oracle.network import BrokenNetwork, Network
from oracle.network_effects import changed_pixels, measure_network
from oracle.output import network_output
from oracle.rollout import ExactRollouts, replay_film
from tests.toy import (
    N_COLUMNS,
    N_ROWS,
    PAPER_NETWORK_EFFECTS,
    WATCHED_PIXEL,
    ToyMachine,
    WeightedPixels,
    pixel_network,
    toy_game,
    toy_protocol,
    unsteady_machines,
)

LABELS = [label for label, _ in PAPER_NETWORK_EFFECTS]
EFFECTS = [float(effect) for _, effect in PAPER_NETWORK_EFFECTS]


def measured(network=None, game=None, fresh_machine=ToyMachine):
    """The answer key of the toy for a network."""
    return measure_network(
        toy_protocol(), game or toy_game(), 0, network or pixel_network(), fresh_machine=fresh_machine
    )


@pytest.fixture(scope="module")
def answer_key():
    """The toy's answer key for the network that watches one pixel."""
    return measured()


def test_effects_on_paper(answer_key):
    """Exactly the causes that move a pixel within two frames are kept, with the effects that follow from the table."""
    assert LABELS == [cause.label for cause in answer_key.question.causes]
    assert [EFFECTS] == answer_key.effects.tolist()
    # The background's colour.
    assert [128.0] == answer_key.reference_value.tolist()


def test_the_question_is_about_the_network(answer_key):
    """The question has subject, network and the frames of the reference run, and no sprite geometry."""
    question = answer_key.question
    assert ("network", "pixel", None, "") == (
        question.subject,
        question.network,
        question.geometry,
        answer_key.exclusion,
    )
    # The ball stands at 109 and 111: columns 9, 0, 1, 2 and 1 to 4, two rows each.
    dark = [np.argwhere(frame == 31)[:, 1].tolist() for frame in question.frames]
    assert [[0, 1, 2, 9] * 2, [1, 2, 3, 4] * 2] == dark


def test_the_movement_of_a_cause(answer_key):
    """A cause's movement is the network's input with it minus the input of the reference run."""
    right = answer_key.movement.dense()[LABELS.index("joystick:RIGHT")]
    # 110 and 112: the sprite moves one column to the right in both frames, 97 darker there, 97 lighter where it was.
    assert {(9, 97.0), (3, -97.0)} == {
        (int(column), float(right[0, row, column])) for row, column in np.argwhere(right[0])
    }
    assert {(1, 97.0), (5, -97.0)} == {
        (int(column), float(right[1, row, column])) for row, column in np.argwhere(right[1])
    }
    # Two frames with two columns of two rows.
    assert 8 * 97.0 == answer_key.movement.size[LABELS.index("joystick:RIGHT")]
    assert answer_key.movement.size.tolist() == np.abs(answer_key.movement.dense()).sum(axis=(1, 2, 3)).tolist()


def test_the_machine_has_no_movement():
    """Movement is a network's: the answer key of the machine has none."""
    assert measure(toy_protocol(), toy_game(), 0, ToyMachine).movement is None


def test_names_change_nothing():
    """Permuting the names of the bytes leaves every number as it is: names are labels for people."""
    game = toy_game()
    names = [byte.name for byte in game.named_bytes]
    renamed = [byte.model_copy(update={"name": name}) for byte, name in zip(game.named_bytes, names[::-1], strict=True)]
    assert measured().to_bytes() == measured(game=game.model_copy(update={"named_bytes": tuple(renamed)})).to_bytes()


def test_a_network_without_weights_has_no_effects():
    """A network whose weights are zero says the same whatever happens: all effects are zero."""
    assert [[0.0] * len(LABELS)] == measured(pixel_network(scale=0.0)).effects.tolist()


def test_several_outputs_are_read_from_their_columns():
    """Each output has the effects of its own column, in the order in which they are explained."""
    weights = torch.zeros(3, 2, N_ROWS, N_COLUMNS)
    weights[(2, *WATCHED_PIXEL)], weights[(1, *WATCHED_PIXEL)] = 1.0, -2.0
    outputs = (network_output("double", "position", 1), network_output("plain", "content", 2))
    found = measured(Network("pixels", WeightedPixels(weights), lambda frames: frames, outputs))
    assert [[-2 * effect for effect in EFFECTS], EFFECTS] == found.effects.tolist()


def test_too_few_movers_are_excluded():
    """Where fewer than four causes move the network's input there is no task, and the reason says how many do."""
    corner = WeightedPixels(torch.ones(1, 2, 1, 1))
    found = measured(replace(pixel_network(), module=corner, preprocess=lambda frames: frames[:, :1, :1]))
    # The first pixel of the screen is never the sprite's.
    assert "gate: 1 causes move a pixel of the network's input, at least 4 are needed" == found.exclusion
    assert ((), 1) == (found.question.outputs, len(found.question.causes))


def test_archive_round_trip(answer_key):
    """An answer key of a network comes back from its archive with the same bytes."""
    back = AnswerKey.from_bytes(answer_key.to_bytes(), "toy")
    assert answer_key.to_bytes() == back.to_bytes()
    np.testing.assert_array_equal(answer_key.movement.dense(), back.movement.dense())
    np.testing.assert_array_equal(answer_key.question.frames, back.question.frames)


def test_a_film_is_that_of_a_fresh_machine():
    """The frames that a rollout shows are those of a run straight through."""
    rollouts = ExactRollouts(ToyMachine, toy_protocol().trace(toy_game(), 0))
    for cause in toy_protocol().causes(toy_game(), rollouts):
        once, fresh = (
            rollouts.film([cause.intervention], 2),
            replay_film(ToyMachine, rollouts.trace, [cause.intervention], 2),
        )
        np.testing.assert_array_equal(once.frames, fresh.frames)
        assert once.last.ram.tolist() == fresh.last.ram.tolist()


def test_footprints_show_what_is_changed_in_any_frame(answer_key):
    """A pixel that only the first frame changes belongs to the footprint as well."""
    rollouts = ExactRollouts(ToyMachine, answer_key.question.trace)
    reference, cause = rollouts.film([], 2), answer_key.question.causes[LABELS.index("joystick:RIGHT")]
    changed = changed_pixels(rollouts.film([cause.intervention], 2), reference)
    # Columns 9 and 3 in the first frame, 1 and 5 in the second.
    assert [1, 3, 5, 9] == sorted(set(np.argwhere(changed)[:, 1].tolist()))
    np.testing.assert_array_equal(changed, answer_key.footprints[LABELS.index("joystick:RIGHT")])


def test_a_machine_that_differs_is_refused():
    """Two reference runs that differ are refused, as for the machine."""
    with pytest.raises(NotDeterministic, match="two reference runs: expected the same"):
        measured(fresh_machine=unsteady_machines())


class Saying(torch.nn.Module):
    """A network that says whatever it is told to."""

    def __init__(self, answer) -> None:
        super().__init__()
        self._answer = answer

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """The answer, whatever is seen."""
        return self._answer(seen)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            lambda seen: torch.full((1, 1), torch.nan),
            "expected finite outputs, got NaN or infinite ones; check its weights",
        ),
        (lambda seen: torch.zeros(1, 0), r"expected outputs \(1, 1 or more\), got shape \(1, 0\); correct it"),
        (lambda seen: torch.zeros(1), r"expected outputs \(1, 1 or more\), got shape \(1,\); correct it"),
        (lambda seen: torch.zeros(2, 1), r"expected outputs \(1, 1 or more\), got shape \(2, 1\); correct it"),
        (lambda seen: [1.0], r"expected outputs \(1, 1 or more\), got list; correct it"),
        (lambda seen: seen @ torch.zeros(3, 3), "network: expected an answer, got RuntimeError: .*; mend it"),
    ],
)
def test_a_broken_network_is_told(answer, words):
    """A network that gives NaN, another shape, or raises is one clear error that names it."""
    with pytest.raises(BrokenNetwork, match=f"^pixel: {words}$"):
        measured(replace(pixel_network(), module=Saying(answer)))


SEEN = np.ones((2, N_ROWS, N_COLUMNS), np.float32)


def forgetful(scale=1.0):
    """A function that gives another number at every call."""
    count = itertools.count()
    return lambda seen: torch.full((len(seen), 1), 1.0 + scale * next(count))


def test_a_network_that_keeps_a_state_is_told():
    """A network whose answer depends on what it was asked before, or beside, can't be measured."""
    keeping, mixing = (
        replace(pixel_network(), module=Saying(answer))
        for answer in (forgetful(scale=1e-6), lambda seen: seen.flatten(1).sum(1, keepdim=True) * len(seen))
    )
    with pytest.raises(BrokenNetwork, match=r"^pixel: expected the same answer to the same frames, got others; make"):
        keeping.require_steady(SEEN, SEEN)
    with pytest.raises(BrokenNetwork, match=r"^pixel: expected the same answer in a larger batch, got another; make"):
        mixing.require_steady(SEEN, SEEN)
    for network in (keeping, mixing):
        with pytest.raises(BrokenNetwork, match="make it steady"):
            measured(network)
    pixel_network().require_steady(SEEN, SEEN)


class Counting(WeightedPixels):
    """A network that counts in a buffer how often it was asked."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__(weights)
        self.register_buffer("count", torch.tensor(0))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """The same as ever."""
        self.count += 1
        return super().forward(seen)


def test_a_network_that_changes_its_buffers_is_told():
    """A network that is another one after it has run can't be recognised by those who explain it."""
    counting = replace(pixel_network(), module=Counting(pixel_network().module.weights.data))
    with pytest.raises(BrokenNetwork, match=r"^pixel: expected its weights to stay, got others after it ran; make"):
        measured(counting)


def test_a_preprocessing_sees_the_same_twice():
    """A preprocessing that draws or keeps something is refused; one that gives the same tensor again is not."""
    with pytest.raises(BrokenNetwork, match=r"^pixel: preprocessing: expected the same twice, got another; make it st"):
        measured(replace(pixel_network(), preprocess=forgetful()))
    kept = torch.empty(2, N_ROWS, N_COLUMNS)
    assert [EFFECTS] == measured(replace(pixel_network(), preprocess=kept.copy_)).effects.tolist()


def test_inputs_have_one_shape():
    """A preprocessing that cuts the picture by what is on it gives inputs that can't be compared."""
    cutting = replace(
        pixel_network(), module=Saying(lambda seen: seen[:, :1]), preprocess=lambda frames: frames[frames < 100]
    )
    with pytest.raises(BrokenNetwork, match=r"preprocessing: expected inputs of one shape, got \(16,\) and \(160,\)"):
        measured(cutting)


def test_a_late_action_is_watched_as_well():
    """An action beyond the frames that the network sees changes none of them, and is no error."""
    rollouts = ExactRollouts(ToyMachine, toy_protocol().trace(toy_game(), 0))
    late = [ActionWrite(offset=3, action=3)]
    np.testing.assert_array_equal(rollouts.film([], 2).frames, rollouts.film(late, 2).frames)
    np.testing.assert_array_equal(rollouts.film([], 2).frames, replay_film(ToyMachine, rollouts.trace, late, 2).frames)


@pytest.mark.parametrize(
    ("preprocess", "words"),
    [
        (lambda frames: frames / 0 - frames / 0, "expected finite numbers, got NaN or infinite; mend it"),
        (lambda frames: frames.int(), r"expected a floating point tensor, got torch.int32 \(2, 8, 10\); mend it"),
        (lambda frames: frames.numpy(), "expected a floating point tensor, got ndarray; mend it"),
        (lambda frames: frames[9], "expected an answer, got IndexError: .*; mend it"),
    ],
)
def test_a_broken_preprocessing_is_told(preprocess, words):
    """So is a preprocessing that gives no finite floating point tensor."""
    with pytest.raises(BrokenNetwork, match=f"^pixel: preprocessing: {words}$"):
        measured(replace(pixel_network(), preprocess=preprocess))


def test_half_precision_works():
    """A network in half precision is given its own type; small whole numbers are exact in it."""
    half = replace(pixel_network(), module=pixel_network().module.half())
    assert [EFFECTS] == measured(half).effects.tolist()
