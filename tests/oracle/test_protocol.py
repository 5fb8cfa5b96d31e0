"""Names of protocols: how parameters are read from them, and what stands in them."""

import pytest

from games.errors import UnknownName
from oracle.errors import BadProtocol
from oracle.protocol import PROTOCOLS, customised, is_custom, protocol
from oracle.ram_v2 import RamV2


@pytest.mark.parametrize(
    "name", ["ram-v2", " ram-v2 ", "ram-v2()", "ram-v2(horizon=15)", "ram-v2(horizon=15,n_states=4)"]
)
def test_its_own_parameters_are_no_other_protocol(name):
    """Parameters that are as they were leave the protocol itself."""
    assert protocol(name) is PROTOCOLS["ram-v2"]


@pytest.mark.parametrize(
    "name",
    [
        "ram-v2(horizon=30,n_states=2)",
        " ram-v2( n_states = 2 , horizon=30 )",
        "ram-v2(n_values=8,n_states=2,horizon=030,)",
    ],
)
def test_a_name_has_one_form(name):
    """However it is written, the name holds what differs, sorted, without spaces."""
    found = protocol(name)
    assert "ram-v2(horizon=30,n_states=2)" == found.name
    assert (30, 2, 8) == (found.horizon, found.n_states, found.n_values)
    assert found == protocol(found.name)


def test_values_reach_the_protocol():
    """Every number of ram-v2 can have another value, and no other changes."""
    for name, value in RamV2().adjustable().items():
        # n_donors may not pass n_values.
        changed = value - 1 if name == "n_donors" else value + 1
        found = customised("ram-v2", {name: changed})
        assert RamV2().parameters() | {name: changed, "name": f"ram-v2({name}={changed})"} == found.parameters()
    assert 11 == len(RamV2().adjustable())


def test_custom_protocols_are_told():
    """A name with parameters is a custom protocol's."""
    assert [False, False, True] == [
        is_custom(protocol(each).name) for each in ("ram-v1", "ram-v2()", "ram-v2(prefix=9)")
    ]


def test_an_unknown_parameter_answers_with_the_nearest():
    """A misspelt parameter is answered with its neighbours."""
    with pytest.raises(UnknownName, match=r"unknown parameter of ram-v2 'horizn'; did you mean horizon"):
        protocol("ram-v2(horizn=30)")


@pytest.mark.parametrize("name", ["ram-v7(horizon=30)", "ram_v2(horizon=30)"])
def test_an_unknown_base_answers_with_the_nearest(name):
    """A misspelt protocol with parameters is answered with protocols."""
    with pytest.raises(UnknownName, match=r"unknown protocol 'ram.v.'; did you mean .*ram-v2"):
        protocol(name)


@pytest.mark.parametrize("name", ["", "ram-v2(", "ram-v2)horizon=30(", "ram-v2(horizon=30)x", "(horizon=30)"])
def test_what_is_no_name(name):
    """Parentheses that do not fit, or nothing before them, are no name."""
    with pytest.raises(UnknownName, match="unknown protocol"):
        protocol(name)


def test_ram_v1_is_fixed():
    """ram-v1 has no other parameters, not even a known one of ram-v2."""
    expected = "ram-v1: expected its own parameters, got horizon; it is fixed, choose another protocol"
    with pytest.raises(BadProtocol, match=expected):
        protocol("ram-v1(horizon=30)")


@pytest.mark.parametrize("value", ["0", "-3", "many", "2.5", "", "1e3", True, 2.0, None])
def test_a_value_is_a_whole_number(value):
    """Anything but a whole number above 0 is refused, with the parameter's name and what came."""
    with pytest.raises(BadProtocol, match=f"ram-v2: horizon: expected a whole number above 0, got {value}; correct it"):
        customised("ram-v2", {"horizon": value})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_donors": 9}, "expected at most n_values=8 donors, got 9"),
        ({"n_values": 3}, "expected at most n_values=3 donors, got 4"),
        ({"n_values": 256}, "expected at most 255 values per byte, got 256"),
        ({"prefix": 1}, "expected a prefix of 2 frames and a horizon of 2 at least"),
        ({"horizon": 1}, "expected a prefix of 2 frames and a horizon of 2 at least"),
    ],
)
def test_values_that_do_not_fit_together(values, message):
    """Numbers that no state could be measured with are refused by name."""
    [(name, value)] = values.items()
    with pytest.raises(BadProtocol, match=rf"ram-v2\({name}={value}\): {message}"):
        customised("ram-v2", values)


def test_the_largest_that_fit():
    """All other values of a byte, all of them donors, are allowed."""
    assert 255 == customised("ram-v2", {"n_values": 255, "n_donors": 255}).n_donors
