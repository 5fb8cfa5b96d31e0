"""What a run stores: names of files, and units that come back as they were."""

import hashlib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.units import Claim, Curves, OracleOutcome, TaskId, slug

# Some file systems take no more than 255 bytes for a name; `.json` and the task come with it.
LONGEST_SLUG = 69
SAFE = re.compile(r"[a-z0-9_]+(-[0-9a-f]{8})?")

TASK = TaskId(subject="machine", game="pong", state=0, output="ram[54]", regime="content")


@given(texts=st.lists(st.text(min_size=1), min_size=2, max_size=6, unique=True))
@example(texts=["ram[5]", "ram(5)", "ram_5_", "RAM[5]", "Ram_5_", "ram_5__"])
@example(texts=["a" * 60, "a" * 61, "a" * 62])
@example(texts=["blur", "blur-5566a56f", "Blur", "blur ", "blur\n"])
def test_different_texts_have_different_slugs(texts):
    """No two texts share a file name."""
    assert len(texts) == len({slug(text) for text in texts})


@given(text=st.text(min_size=1))
@example(text="../../etc/passwd")
@example(text="CON")
@example(text=".")
@example(text="a\nb")
@example(text="é" * 300)
def test_slugs_are_safe_file_names(text):
    """A slug is short and made of lower-case letters, digits and `_`, with a hash after the only `-`."""
    found = slug(text)
    assert SAFE.fullmatch(found).group() == found
    assert min(len(found), LONGEST_SLUG) == len(found)


@given(text=st.from_regex(r"[a-z0-9_]{1,60}", fullmatch=True))
def test_plain_names_are_their_own_slug(text):
    """A snake-case name stays as it is, so that people find its folder."""
    assert text == slug(text)


def test_long_names_are_cut_and_marked():
    """Of a long name the first sixty characters stay, and a hash tells it from others with the same beginning."""
    digest = hashlib.sha256(b"a" * 61).hexdigest()
    assert f"{'a' * 60}-{digest[:8]}" == slug("a" * 61)


def test_file_names_of_units():
    """Each unit lies below the folder of its kind and method, under the name of its task."""
    digest = slug("ram[54]")
    assert "oracle/machine-pong-2.json" == OracleOutcome(subject="machine", game="pong", state=2, status="ok").filename
    assert f"claims/blur/machine-pong-0-{digest}.json" == Claim(task=TASK, method="blur", status="ok").filename
    assert f"curves/blur/machine-pong-0-{digest}.json" == Curves(task=TASK, method="blur", status="ok").filename


def test_units_of_different_tasks_have_different_files():
    """Subject, game, state, output and method each change the file name."""
    changes = ({"subject": "network"}, {"game": "qbert"}, {"state": 1}, {"output": "ram[5]"})
    tasks = [TASK, *(TASK.model_copy(update=each) for each in changes)]
    claims = [Claim(task=task, method=method, status="ok") for task in tasks for method in ("blur", "Blur")]
    assert 10 == len({claim.filename for claim in claims})


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_claims_come_back_as_they_were(values):
    """A claim written and read again has the same numbers to the last bit."""
    claim = Claim(task=TASK, method="blur", status="ok", values=tuple(values), n_rollouts=3, n_gradients=64)
    assert claim == Claim.model_validate_json(claim.model_dump_json())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"status": "fine"}, "Input should be 'ok', 'not_applicable', 'degenerate', 'failed', 'timeout' or 'excluded'"),
        ({"score": 1.0}, "Extra inputs are not permitted"),
        ({"values": ["much"]}, "Input should be a valid number"),
        ({"task": {**TASK.model_dump(), "regime": "colour"}}, "Input should be 'content' or 'position'"),
    ],
)
def test_units_that_are_not_ours_are_refused(change, complaint):
    """A unit with an unknown status or regime, a wrong value, or something more in it is not read."""
    content = Claim(task=TASK, method="blur", status="ok").model_dump() | change
    with pytest.raises(ValidationError, match=complaint):
        Claim.model_validate(content)


def test_units_can_not_be_changed():
    """A unit is what it was when it was made."""
    with pytest.raises(ValidationError, match="Instance is frozen"):
        TASK.state = 1
