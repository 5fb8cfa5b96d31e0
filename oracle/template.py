"""Templates: the pixels of a sprite, and how far from its place a screen shows it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

# A sprite is looked for this many pixels to each side; further away it counts as this far.
FARTHEST = 24
# A sprite of which fewer pixels are found than this share is lost.
FOUND_SHARE = 0.8
# No palette index: what lies off the screen matches nothing.
OFF_SCREEN = -1
# Screens whose matches are counted together: their counts have to fit into the processor's cache.
SCREENS_AT_ONCE = 32

Screens = UInt8[np.ndarray, "rollout row column"]


@dataclass(frozen=True)
class TranslatingByte:
    """A RAM byte that moves a sprite.

    Attributes:
        address: the byte.
        slope_x, slope_y: columns to the right and rows downwards per unit of the byte.
        value: its value at f*.
    """

    address: int
    slope_x: float
    slope_y: float
    value: int


@dataclass(frozen=True)
class Template:
    """A sprite as the reference run draws it at the horizon. Plain values: it travels as JSON.

    Attributes:
        pixels: row, column and palette index of each of its pixels, in reading order.
        bytes: what moves it.
    """

    pixels: tuple[tuple[int, int, int], ...]
    bytes: tuple[TranslatingByte, ...]


def shifts_within(limit: int) -> Int[np.ndarray, "shift 2"]:
    """All shifts (dx, dy) of at most `limit` per axis, in the order in which the first of equals is taken.

    That is the smallest |dx| + |dy|, then the smallest dy (upwards first), then the smallest dx (leftwards first).

    >>> shifts_within(1)[:5].tolist()
    [[0, 0], [0, -1], [-1, 0], [1, 0], [0, 1]]
    """
    dy, dx = np.mgrid[-limit : limit + 1, -limit : limit + 1].reshape(2, -1)
    order = np.lexsort((dx, dy, np.abs(dx) + np.abs(dy)))
    return np.stack([dx, dy], axis=1)[order]


def displacement(
    template: Template, screens: Screens
) -> tuple[Float[np.ndarray, " rollout"], Bool[np.ndarray, " rollout"]]:
    """How many pixels away from its place each screen shows the sprite, and whether it is lost there.

    y = min(24, |dx| + |dy|) of the shift within +-24 per axis under which most template pixels have their colour; a
    pixel that the shift puts off the screen has none. Of equals the first in the order of `shifts_within`. If fewer
    than 80 % are found the sprite is lost, and y = 24. 0 is "where the reference run has it".

    >>> dot = Template(((2, 1, 7),), ())
    >>> screens = np.zeros((3, 5, 9), dtype=np.uint8)
    >>> screens[0, 2, 1] = screens[1, 4, 8] = 7
    >>> [each.tolist() for each in displacement(dot, screens)]
    [[0.0, 9.0, 24.0], [False, False, True]]
    """
    rows, columns, colours = np.array(template.pixels).T
    found = np.zeros(len(screens)), np.zeros(len(screens), dtype=np.bool_)
    # Where every pixel is in place no other shift can match more, and none is shorter.
    moved = np.flatnonzero((screens[:, rows, columns] != colours).any(axis=1))
    if not len(moved):
        return found
    around = _surroundings(template, screens[moved])
    # The same surroundings get the same number, in the order in which they first occur, and are searched once.
    numbers: dict[bytes, int] = {}
    number = np.array([numbers.setdefault(each.tobytes(), len(numbers)) for each in around])
    first = np.unique(number, return_index=True)[1]
    distance, share = _nearest_best(template, around[first])
    lost = share < FOUND_SHARE
    distance[lost] = FARTHEST
    found[0][moved], found[1][moved] = distance[number], lost[number]
    return found


def window_of(template: Template) -> tuple[slice, slice]:
    """The rows and columns where the sprite is looked for: its box and 24 pixels to each side."""
    rows, columns, _ = np.array(template.pixels).T
    return (
        slice(max(int(rows.min()) - FARTHEST, 0), int(rows.max()) + FARTHEST + 1),
        slice(max(int(columns.min()) - FARTHEST, 0), int(columns.max()) + FARTHEST + 1),
    )


def _surroundings(template: Template, screens: Screens) -> Int[np.ndarray, "rollout near_row near_column"]:
    """What can be found of the sprite: its box and 24 pixels to each side, `OFF_SCREEN` where there is no screen."""
    rows, columns, _ = np.array(template.pixels).T
    n_rows, n_columns = screens.shape[1:]
    top, left = rows.min() - FARTHEST, columns.min() - FARTHEST
    bottom, right = rows.max() + FARTHEST + 1, columns.max() + FARTHEST + 1
    seen = screens[:, max(top, 0) : bottom, max(left, 0) : right].astype(np.int16)
    margins = ((max(-top, 0), max(bottom - n_rows, 0)), (max(-left, 0), max(right - n_columns, 0)))
    return np.pad(seen, ((0, 0), *margins), constant_values=OFF_SCREEN)


def _nearest_best(
    template: Template, around: Int[np.ndarray, "rollout near_row near_column"]
) -> tuple[Float[np.ndarray, " rollout"], Float[np.ndarray, " rollout"]]:
    """Distance in pixels, at most 24, and share of matching pixels of each surroundings' best shift."""
    shifts = shifts_within(FARTHEST)
    batches = [around[start : start + SCREENS_AT_ONCE] for start in range(0, len(around), SCREENS_AT_ONCE)]
    counts = np.concatenate([_matches(template, batch) for batch in batches])
    counts = counts[:, shifts[:, 1] + FARTHEST, shifts[:, 0] + FARTHEST]
    # `argmax` takes the first of equals.
    best = counts.argmax(axis=1)
    distance = np.minimum(np.abs(shifts).sum(axis=1), FARTHEST)[best].astype(np.float64)
    return distance, counts.max(axis=1) / len(template.pixels)


def _matches(
    template: Template, around: Int[np.ndarray, "rollout near_row near_column"]
) -> Int[np.ndarray, "rollout dy dx"]:
    """How many pixels of the template have their colour, for every shift from -24 to 24."""
    width = 2 * FARTHEST + 1
    counts = np.zeros((len(around), width, width), dtype=np.int16)
    top, left = min(row for row, _, _ in template.pixels), min(column for _, column, _ in template.pixels)
    for row, column, colour in template.pixels:
        counts += around[:, row - top :, column - left :][:, :width, :width] == colour
    return counts
