"""Errors that answer with the nearest names."""

import pytest

from games.errors import UnknownName, VeritariError, unknown_name
from oracle import errors as oracle_errors


def test_nearest_names_come_first():
    """At most three near names are offered, the nearest first, then all known ones, sorted."""
    message = str(unknown_name("method", "occlusio", ["rise", "occlusion", "lime", "occlusions"]))
    expected = "unknown method 'occlusio'; did you mean occlusion, occlusions? Known: lime, occlusion, occlusions, rise"
    assert expected == message


def test_without_a_near_name_the_list_stands_alone():
    """If nothing is near, nothing is guessed."""
    assert str(unknown_name("set", "zzz", ["core", "all"])) == "unknown set 'zzz'. Known: all, core"


def test_an_unknown_name_is_one_of_our_errors():
    """The error can be caught as `VeritariError`, like all errors with a message for the user."""
    with pytest.raises(VeritariError, match="unknown set 'zzz'"):
        raise unknown_name("set", "zzz", [])
    assert issubclass(UnknownName, VeritariError)


def test_all_errors_of_the_oracle_are_ours():
    """Every error class of the oracle can be caught as `VeritariError`."""
    classes = [each for each in vars(oracle_errors).values() if isinstance(each, type)]
    assert [each for each in classes if not issubclass(each, VeritariError)] == []
    assert oracle_errors.DamagedFile in classes
