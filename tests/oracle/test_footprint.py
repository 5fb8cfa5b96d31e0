"""Footprints and the sampler geometry against a pixel-by-pixel implementation, on machines that paint given masks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.catalog import NamedByte
from oracle.emulator import Machine
from oracle.footprint import Footprint, names_a_position, poke_footprint, sampler_geometry
from oracle.intervention import RamWrite
from oracle.rollout import ExactRollouts
from oracle.state import Trace
from oracle.task import SamplerGeometry
from tests.naive import oracle as naive
from tests.toy import BALL_X, PREFIX, TAIL, ToyMachine

N_ROWS, N_COLUMNS = 30, 50
TRACE = Trace((0,) * 5, 3)
VALUES = [(7 * address + 3) % 256 for address in range(128)]


class PaintingMachine(Machine):
    """A console with 128 constant bytes: its screen inverts the mask of every byte that has been given another value.

    Only a byte poked by +24 is painted, so that a footprint of any other poke is empty.
    """

    def __init__(self, masks):
        self._masks = masks
        self._ram = list(VALUES)
        self.act(0)

    def act(self, action):
        self._screen = np.zeros((N_ROWS, N_COLUMNS), dtype=np.uint8)
        for address, mask in self._masks.items():
            if self._ram[address] == (VALUES[address] + 24) % 256:
                self._screen ^= mask
        return 0.0

    def ram(self):
        return np.array(self._ram, dtype=np.uint8)

    def screen(self):
        return self._screen.copy()

    def write_ram(self, address, value):
        self._ram[address] = value

    def checkpoint(self):
        return tuple(self._ram)

    def restore(self, checkpoint):
        self._ram = list(checkpoint)

    def serialized(self):
        return bytes(self._ram)

    def lives(self):
        return 0

    def terminal(self):
        return False


def named(*addresses):
    """Bytes at these addresses, each named as a position."""
    return [NamedByte(address=address, name="ball_x", source="OCAtari") for address in addresses]


def found_geometry(masks, named_bytes):
    """The geometry that the oracle finds on a machine that paints these masks."""
    rollouts = ExactRollouts(lambda: PaintingMachine(masks), TRACE)
    return sampler_geometry(rollouts, np.zeros((N_ROWS, N_COLUMNS), dtype=np.uint8), named_bytes)


def mask_of(*pixels):
    """The mask of these pixels (row, column)."""
    mask = np.zeros((N_ROWS, N_COLUMNS), dtype=np.bool_)
    for row, column in pixels:
        mask[row, column] = True
    return mask


BLOCKS = st.tuples(st.integers(0, 29), st.integers(0, 49), st.integers(1, 12), st.integers(1, 20))


@st.composite
def masks(draw):
    """An empty, sprite-like or scattered set of changed pixels: up to three blocks."""
    mask = mask_of()
    for row, column, height, width in draw(st.lists(BLOCKS, max_size=3)):
        mask[row : row + height, column : column + width] = True
    return mask


@given(st.lists(masks(), max_size=4), masks(), masks())
def test_geometry_equals_the_naive_one(position_masks, mask_49, mask_54):
    """For any footprints the geometry is the one that loops over pixels find, the fallback included."""
    changed = {10 + index: mask for index, mask in enumerate(position_masks)} | {49: mask_49, 54: mask_54}
    positions = list(range(10, 10 + len(position_masks)))
    expected = naive.geometry(VALUES, positions, changed)
    assert expected == found_geometry(changed, named(*positions))


def test_the_cell_is_the_first_pixel_by_columns():
    """The cell is the changed pixel of the smallest column, then of the smallest row, not the topmost one."""
    assert found_geometry({10: mask_of((5, 9), (12, 7), (20, 7))}, named(10)).cell == (12, 7)


def test_the_window_reaches_8_rows_and_16_columns():
    """Pixels 8 rows or 16 columns from the cell belong to the sprite, those one further don't."""
    near, far = [(10, 20), (18, 20), (2, 20), (10, 36)], [(19, 20), (1, 20), (10, 37)]
    geometry = found_geometry({10: mask_of(*near, *far)}, named(10))
    # (1, 20) is the first in column-major order, so it is the cell: rows up to 9, columns up to 36.
    assert ((1, 20), (1, 20), ((0, 0), (1, 0))) == (geometry.cell, geometry.origin, geometry.offsets)
    changed = mask_of((10, 20), (18, 20), (19, 20), (10, 36), (10, 37), (2, 21), (1, 21))
    geometry = found_geometry({10: changed}, named(10))
    assert ((10, 20), (2, 20)) == (geometry.cell, geometry.origin)
    # Rows 2..18 and columns 20..36 relative to (2, 20).
    assert ((0, 1), (8, 0), (8, 16), (16, 0)) == geometry.offsets


@pytest.mark.parametrize(("n_far", "address"), [(7, 10), (8, 11)])
def test_a_byte_that_repaints_the_screen_is_left_out(n_far, address):
    """A byte counts as moving a sprite if at most 8 times the pixels near it change."""
    # Two near pixels and 2 * n_far further away: 16 of 2 are kept, 18 of 2 are not.
    far = [(row, 40 + column) for row in range(n_far) for column in range(2)]
    wide = mask_of((20, 0), (21, 0), *far)
    assert address == found_geometry({10: wide, 11: mask_of((3, 3))}, named(10, 11)).address


def test_the_largest_sprite_wins_and_the_first_of_equals():
    """The byte with the most changed pixels near its cell is taken; of equals the first of the table."""
    small, large = mask_of((3, 3)), mask_of((3, 3), (4, 3))
    assert found_geometry({10: small, 11: large, 12: large}, named(10, 11, 12)).address == 11
    assert found_geometry({10: small, 11: large, 12: large}, named(12, 10, 11)).address == 12


def test_only_bytes_named_as_positions_are_poked():
    """A byte whose name says nothing of a position is left out, however well it moves a sprite."""
    score = NamedByte(address=10, name="score", source="AtariARI")
    changed = {10: mask_of((3, 3), (4, 3)), 11: mask_of((8, 8))}
    assert found_geometry(changed, [score, *named(11)]).address == 11


def test_the_fallback_takes_its_cell_and_its_byte_apart():
    """Without a position the cell comes from byte 49, and the byte that changes more pixels of 49 and 54 is taken."""
    geometry = found_geometry({49: mask_of((5, 5)), 54: mask_of((6, 6), (6, 7))}, [])
    # Cell (5, 5) of byte 49; byte 54 holds 7 * 54 + 3 = 381 = 125 mod 256.
    assert SamplerGeometry(54, 125, (5, 5), (6, 6), ((0, 0), (0, 1))) == geometry


def test_the_fallback_without_any_pixel_has_no_geometry():
    """If neither byte changes a pixel there is nothing to render."""
    assert found_geometry({}, []) is None


def test_the_fallback_with_an_empty_window_has_no_geometry():
    """If the byte that changes more does so far from the cell there is nothing to render."""
    # The cell is (0, 0) of byte 49; all pixels of byte 54 lie more than 16 columns away.
    assert found_geometry({49: mask_of((0, 0)), 54: mask_of((0, 40), (0, 41))}, []) is None


def test_a_footprint_is_against_the_reference_screen_and_a_still_tail():
    """The poke is b + 24 and its tail all NOOP, compared with the reference screen that had the trace's own tail."""
    rollouts = ExactRollouts(ToyMachine, Trace((*PREFIX, *TAIL), len(PREFIX)))
    # 108 + 24 and four frames of +1: column 6; the reference, with its RIGHT, stands at column 3: 3 columns change.
    assert poke_footprint(rollouts, rollouts.run([]).screen, BALL_X).n_pixels == 12
    still = rollouts.run([RamWrite(BALL_X, 132)], [0, 0, 0, 0]).screen
    assert poke_footprint(rollouts, still, BALL_X).n_pixels == 0


def test_the_poke_wraps_at_256():
    """A byte above 231 is poked to b + 24 - 256, not refused."""
    rollouts = ExactRollouts(lambda: ToyMachine(boot_ball_x=240), Trace((*PREFIX, *TAIL), len(PREFIX)))
    # 244 at f*, poked to 12; four frames of +1 end at 16, column 6. Reference 249, column 9: 3 columns apart.
    assert poke_footprint(rollouts, rollouts.run([]).screen, BALL_X).n_pixels == 12


@pytest.mark.parametrize(
    ("name", "says_so"),
    [
        ("ball_x", True),
        ("player.xy", True),
        ("Player_Column", True),
        ("ship_DIRECTION", True),
        ("position_of_ship", True),
        ("enemy.y", True),
        ("score", False),
        ("xylophone", False),
        ("lives", False),
        ("x", False),
    ],
)
def test_names_of_positions(name, says_so):
    """A name says that its byte is a position if it contains one of the listed words, whatever its case."""
    assert says_so is names_a_position(name)


def test_first_pixel_of_a_footprint():
    """The first pixel is given as (row, column)."""
    assert Footprint(0, mask_of((2, 40), (29, 4))).first_pixel == (29, 4)
