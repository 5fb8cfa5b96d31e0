"""Outputs read y from RAM or from the changed pixels, never from both."""

import numpy as np
import pytest

from games.errors import VeritariError
from oracle.output import Finals, changed_pixels_output, content_output, network_output

SCREENS = np.zeros((2, 4, 5), dtype=np.uint8)
SCREENS[1, 1:3, 2:5] = 7
FINALS = Finals(np.array([[1, 2, 3], [250, 0, 9]], dtype=np.uint8), SCREENS, np.zeros((4, 5), dtype=np.uint8))


@pytest.mark.parametrize(("address", "values"), [(0, [1.0, 250.0]), (2, [3.0, 9.0])])
def test_content_is_the_value_of_its_byte(address, values):
    """A content output is the byte at its address, once per rollout."""
    assert values == content_output(address).values(FINALS).tolist()


def test_position_is_the_number_of_changed_pixels():
    """A position output counts changed pixels, once per rollout."""
    # Nothing, and a block of 2 x 3.
    assert [0.0, 6.0] == changed_pixels_output().values(FINALS).tolist()


def test_differences_of_bytes_do_not_wrap():
    """Values are floats, so that a difference of two bytes can be negative."""
    first, second = content_output(0).values(FINALS)
    assert first - second == -249.0


def test_outputs_are_named_by_what_they_read():
    """Names and regimes tell the outputs of a game apart."""
    content, position = content_output(54), changed_pixels_output()
    assert ("ram[54]", "content") == (content.name, content.regime)
    assert ("changed_pixels", "position", None) == (position.name, position.regime, position.ram_address)


def test_an_output_of_a_network_is_not_the_machine_s():
    """A network's output can't be read from RAM and screen: no number is made up."""
    with pytest.raises(VeritariError, match="output left: expected one of the machine, got a network's; ask the netw"):
        network_output("left", "content", 0).values(FINALS)
