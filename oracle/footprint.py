"""Footprints: the screen pixels that an intervention changes, and the sampler geometry read off them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from games.catalog import NamedByte
from oracle.emulator import NOOP, Screen
from oracle.intervention import RamWrite
from oracle.rollout import ExactRollouts
from oracle.task import SamplerGeometry

POKE = 24
HALF_WINDOW = (8, 16)
# A byte whose poke changes more than this many times the pixels near its sprite repaints the screen, it moves nothing.
GLOBAL_CHANGE_RATIO = 8
# Two bytes that place a sprite in many games; the published audit falls back on them where no name says "position".
FALLBACK_ADDRESSES = (49, 54)
POSITION_WORDS = ("_x", "_y", ".xy", "._xy", ".x", ".y", "position", "column", "direction")

Mask = Bool[np.ndarray, "row column"]


@dataclass(frozen=True)
class Footprint:
    """The pixels that poking one byte changes within the horizon."""

    address: int
    changed: Mask

    @property
    def n_pixels(self) -> int:
        return int(self.changed.sum())

    @property
    def first_pixel(self) -> tuple[int, int]:
        """The first changed pixel (row, column) in column-major order: smallest column, then smallest row."""
        column, row = np.argwhere(self.changed.T)[0]
        return int(row), int(column)

    def near(self, cell: tuple[int, int]) -> Int[np.ndarray, "pixel 2"]:
        """The changed pixels (row, column) in the window around `cell`, in absolute coordinates."""
        pixels = np.argwhere(self.changed)
        return np.asarray(pixels[(np.abs(pixels - cell) <= HALF_WINDOW).all(axis=1)])


def names_a_position(name: str) -> bool:
    """True if a byte's name says that it holds a position.

    >>> names_a_position("player.xy"), names_a_position("score")
    (True, False)
    """
    return any(word in name.lower() for word in POSITION_WORDS)


def poke_footprint(rollouts: ExactRollouts, reference_screen: Screen, address: int) -> Footprint:
    """The footprint of do(RAM[address] := b + 24) and a tail of NOOPs, against the reference run with its own tail."""
    poked = RamWrite(address, (int(rollouts.ram[address]) + POKE) % 256)
    tail = [NOOP] * len(rollouts.trace.tail)
    return Footprint(address, rollouts.run([poked], tail).screen != reference_screen)


def sampler_geometry(
    rollouts: ExactRollouts, reference_screen: Screen, named_bytes: Sequence[NamedByte]
) -> SamplerGeometry | None:
    """The sprite that is best localised among the bytes named as positions, as the published audit finds it.

    None if nothing moves where the sampler could look.
    """
    positions = [byte.address for byte in named_bytes if names_a_position(byte.name)]
    footprints = [poke_footprint(rollouts, reference_screen, address) for address in positions]
    localised = [each for each in footprints if each.n_pixels and _is_local(each)]
    if localised:
        # `max` keeps the first of equals, which is the first in table order.
        best = max(localised, key=lambda each: len(each.near(each.first_pixel)))
        return _geometry(rollouts, best, best.first_pixel)
    return _fallback_geometry(rollouts, reference_screen)


def _is_local(footprint: Footprint) -> bool:
    near = len(footprint.near(footprint.first_pixel))
    return 0 < footprint.n_pixels <= GLOBAL_CHANGE_RATIO * near


def _fallback_geometry(rollouts: ExactRollouts, reference_screen: Screen) -> SamplerGeometry | None:
    footprints = [poke_footprint(rollouts, reference_screen, address) for address in FALLBACK_ADDRESSES]
    visible = [each for each in footprints if each.n_pixels]
    rows, columns = reference_screen.shape
    cell = visible[0].first_pixel if visible else (rows // 2, columns // 2)
    return _geometry(rollouts, max(footprints, key=lambda each: each.n_pixels), cell)


def _geometry(rollouts: ExactRollouts, footprint: Footprint, cell: tuple[int, int]) -> SamplerGeometry | None:
    pixels = footprint.near(cell)
    if not len(pixels):
        return None
    origin = pixels.min(axis=0)
    offsets = tuple((int(row), int(column)) for row, column in pixels - origin)
    value = int(rollouts.ram[footprint.address])
    return SamplerGeometry(footprint.address, value, cell, (int(origin[0]), int(origin[1])), offsets)
