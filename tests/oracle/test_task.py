"""A question as plain values: what travels to a method and comes back from its archive."""

import numpy as np
import pytest

from oracle.archive import pack, unpack
from oracle.effects import measure
from oracle.errors import DamagedFile
from oracle.task import Question
from tests.toy import ToyMachine, toy_game, toy_protocol


@pytest.fixture(scope="module")
def question():
    """The toy's question."""
    return measure(toy_protocol(), toy_game(), 0, ToyMachine).question


def test_a_question_comes_back_from_its_archive(question):
    """A question read back from its archive has equal values, interventions of the same kind, and the same pool."""
    back = Question.from_bytes(question.to_bytes(), "toy")
    assert question.model_dump() == back.model_dump()
    assert [cause.intervention for cause in question.causes] == [cause.intervention for cause in back.causes]
    assert question.reference_pool.dtype == back.reference_pool.dtype
    np.testing.assert_array_equal(question.reference_pool, back.reference_pool)


def test_the_round_trip_is_byte_identical(question):
    """Packing a question that was unpacked gives the same bytes."""
    assert question.to_bytes() == Question.from_bytes(question.to_bytes(), "toy").to_bytes()


def test_a_question_holds_no_effect(question):
    """Nothing of the answer key is in the archive of a question."""
    values, arrays = unpack(question.to_bytes(), "toy")
    parts = {
        "protocol",
        "subject",
        "game",
        "state",
        "trace",
        "causes",
        "outputs",
        "geometry",
        "network",
        "network_sha256",
    }
    assert (parts, {"reference_pool", "frames"}) == (set(values), set(arrays))


@pytest.mark.parametrize("lost", ["causes", "reference_pool"])
def test_a_question_with_a_part_missing_is_damaged(question, lost):
    """An archive that lacks one part of a question is a damaged file, named."""
    values, arrays = unpack(question.to_bytes(), "toy")
    values.pop(lost, None)
    arrays.pop(lost, None)
    with pytest.raises(DamagedFile, match="somewhere/question"):
        Question.from_bytes(pack(values, arrays), "somewhere/question")
