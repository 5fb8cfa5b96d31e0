"""Which protocol a command means: by name, by file, and with what is overridden."""

import pytest

from games.errors import UnknownName
from harness.errors import WrongUsage
from harness.protocols import chosen_protocol
from oracle.errors import BadProtocol


@pytest.fixture
def file(tmp_path):
    """A file that says these lines."""

    def written(*lines):
        path = tmp_path / "mine.toml"
        path.write_text("\n".join(lines), encoding="utf-8")
        return str(path)

    return written


def test_a_name_is_a_protocol():
    """A name means the protocol, in its one form."""
    assert "ram-v1" == chosen_protocol("ram-v1")
    assert "ram-v2(horizon=30)" == chosen_protocol(" ram-v2( horizon=30, n_values=8)")


def test_a_file_is_a_protocol(file):
    """A file with a base and parameters means the same as the name with them."""
    assert "ram-v2(horizon=30,n_states=2)" == chosen_protocol(file('base = "ram-v2"', "n_states = 2", "horizon = 30"))
    assert "ram-v1" == chosen_protocol(file('base = "ram-v1"'))


def test_overrides_count_more(file):
    """`--set` counts more than a name or a file, `--states` more than both, and of two `--set` the last."""
    assert "ram-v2(horizon=20)" == chosen_protocol("ram-v2(horizon=30)", overrides=["horizon=20"])
    path = file('base = "ram-v2"', "horizon = 30", "n_states = 3")
    assert "ram-v2(horizon=20,n_states=3)" == chosen_protocol(path, overrides=["horizon=9", " horizon = 20"])
    assert "ram-v2(horizon=30,n_states=1)" == chosen_protocol(path, states=1, overrides=["n_states=2"])


def test_overrides_lead_back_to_the_protocol():
    """What is set back to the protocol's own value leaves the name."""
    assert "ram-v2" == chosen_protocol("ram-v2(horizon=30)", overrides=["horizon=15"], states=4)


def test_the_states_of_ram_v1_are_fixed():
    """ram-v1 has one state, and asked for more it says that it is fixed."""
    with pytest.raises(BadProtocol, match="ram-v1: expected its own parameters, got n_states; it is fixed"):
        chosen_protocol("ram-v1", states=2)


@pytest.mark.parametrize("override", ["horizon", "30", ""])
def test_an_override_has_a_value(override):
    """Without an equals sign an override is no override."""
    with pytest.raises(WrongUsage, match=f"--set: expected parameter=value, got {override}; correct it"):
        chosen_protocol("ram-v2", overrides=[override])


def test_an_unknown_override_answers_with_the_nearest(file):
    """A misspelt parameter is answered with its neighbours, from a file too."""
    for selection, overrides in (("ram-v2", ["n_state=2"]), (file('base = "ram-v2"', "n_state = 2"), [])):
        with pytest.raises(UnknownName, match="unknown parameter of ram-v2 'n_state'; did you mean n_states"):
            chosen_protocol(selection, overrides=overrides)


@pytest.mark.parametrize("line", ["horizon = true", "horizon = 2.5", 'horizon = "many"', "horizon = []"])
def test_a_file_holds_whole_numbers(file, line):
    """A value that is no whole number is refused by name."""
    with pytest.raises(BadProtocol, match="ram-v2: horizon: expected a whole number above 0"):
        chosen_protocol(file('base = "ram-v2"', line))


@pytest.mark.parametrize("lines", [(), ("horizon = 30",), ("base = 2",), ('name = "ram-v2"',)])
def test_a_file_names_its_base(file, lines):
    """A file without a base, or with one that is no text, is told what to add."""
    with pytest.raises(WrongUsage, match=r'mine.toml: expected a key base, such as base = "ram-v2", got none; add it'):
        chosen_protocol(file(*lines))


def test_a_file_that_cannot_be_read(file, tmp_path):
    """A missing file and one that is no TOML are wrong usage, with their path."""
    with pytest.raises(WrongUsage, match=r"none.toml: expected a TOML file, got .*No such file"):
        chosen_protocol(str(tmp_path / "none.toml"))
    with pytest.raises(WrongUsage, match=r"mine.toml: expected a TOML file, got "):
        chosen_protocol(file("base = ram-v2"))
