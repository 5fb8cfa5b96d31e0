"""Interventions refuse values that no machine can take."""

import pytest

from games.errors import VeritariError
from oracle.intervention import ActionWrite, RamWrite


@pytest.mark.parametrize("value", [-1, 256])
def test_a_ram_value_is_a_byte(value):
    """Writing anything but a byte into RAM is refused before the machine sees it."""
    with pytest.raises(VeritariError, match=f"RAM value: expected 0..255, got {value}"):
        RamWrite(3, value)


@pytest.mark.parametrize("action", [-1, 18])
def test_an_action_is_one_of_eighteen(action):
    """An action id outside 0..17 is refused."""
    with pytest.raises(VeritariError, match=f"ALE action: expected 0..17, got {action}"):
        ActionWrite(0, action)


def test_the_limits_are_allowed():
    """The smallest and largest byte and action are taken as they are."""
    assert (0, 255) == (RamWrite(0, 0).value, RamWrite(127, 255).value)
    assert (0, 17) == (ActionWrite(0, 0).action, ActionWrite(0, 17).action)


@pytest.mark.parametrize("address", [-1, 128])
def test_an_address_lies_in_ram(address):
    """An address outside the 128 bytes of RAM is refused with our own error, not by the emulator's."""
    with pytest.raises(VeritariError, match=f"RAM address: expected 0..127, got {address}"):
        RamWrite(address, 0)


def test_an_offset_counts_from_the_first_tail_frame():
    """A negative offset is refused: it would silently change an action counted from the end."""
    with pytest.raises(VeritariError, match="tail frame: expected an offset >= 0, got -1"):
        ActionWrite(-1, 0)
