"""Sprites: which bytes move something on the screen, found without any label.

A byte that holds a position, poked by a few units, draws the same picture a few pixels away. So it is told by its
pixels: nearly all that a poke changes is explained by one shift, and the opposite poke by the opposite shift.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int16, UInt8

from oracle.emulator import Screen
from oracle.intervention import N_BYTES, RamWrite
from oracle.rollout import ExactRollouts
from oracle.template import OFF_SCREEN, Template, TranslatingByte, shifts_within

# Large enough to tell a move from a change of shape, small enough to stay on the screen.
POKE = 8
# Pokes show on the screen after this many frames: games draw what they computed in the frame before.
FRAMES_TO_SHOW = 2
CHANGED_PIXELS = (8, 1500)
EXPLAINED_SHARE = 0.9
FARTHEST_SHIFT = 16
# Two shifts are opposite if they add up to at most this, per axis.
SLACK = 1
SMALLEST_TEMPLATE = 4
RING_WIDTH = 2

Shift = tuple[int, int]
Mask = Bool[np.ndarray, "row column"]


@dataclass(frozen=True)
class Box:
    """Rows `top` to `bottom` - 1 and columns `left` to `right` - 1."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def area(self) -> int:
        """Number of pixels; 0 where an end does not lie behind its start."""
        return max(self.bottom - self.top, 0) * max(self.right - self.left, 0)

    def intersection(self, other: "Box") -> "Box":
        """What both cover; of area 0 if nothing."""
        return Box(
            max(self.top, other.top),
            max(self.left, other.left),
            min(self.bottom, other.bottom),
            min(self.right, other.right),
        )

    def overlap(self, other: "Box") -> float:
        """The shared pixels as a share of the smaller box.

        >>> Box(0, 0, 4, 4).overlap(Box(2, 0, 10, 4))
        0.5
        """
        return self.intersection(other).area / min(self.area, other.area)


@dataclass(frozen=True)
class Sprite:
    """Something on the screen that bytes move.

    Attributes:
        bytes: what moves it; the leading one, which changes most pixels, first.
        changed_area: how many pixels change if the leading byte is poked by +8 or by -8.
        box: the box of those pixels.
    """

    bytes: tuple[TranslatingByte, ...]
    changed_area: int
    box: Box


def best_shift(reference: Screen, new: Screen, changed: Mask, *, limit: int) -> tuple[Shift, float]:
    """The shift (dx, dy) of at most `limit` per axis that explains most changed pixels, and the share it explains.

    A shift explains pixel p if new[p] = reference[p - shift]; nothing comes from off the screen. Of equals the smallest
    |dx| + |dy| is taken, then the smallest dy, then the smallest dx. (0, 0) is among them, and explains what has not
    changed. The share is NaN if no pixel is marked: there is nothing to explain.

    >>> reference, new = np.zeros((2, 6, 6), dtype=np.uint8)
    >>> reference[2, 2] = new[3, 4] = 9
    >>> best_shift(reference, new, reference != new, limit=3)
    ((2, 1), 1.0)
    """
    rows, columns = np.nonzero(changed)
    if not len(rows):
        return (0, 0), float("nan")
    padded = np.pad(reference.astype(np.int16), limit, constant_values=OFF_SCREEN)
    shifts = shifts_within(limit)
    counts = _explained(padded, new[rows, columns].astype(np.int16), (rows + limit, columns + limit), shifts)
    # `argmax` takes the first of equals.
    best = int(counts.argmax())
    return (int(shifts[best, 0]), int(shifts[best, 1])), float(counts[best] / len(rows))


def _explained(
    padded: Int16[np.ndarray, "padded_row padded_column"],
    colours: Int16[np.ndarray, " pixel"],
    place: tuple[np.ndarray, np.ndarray],
    shifts: np.ndarray,
) -> np.ndarray:
    """How many of the pixels at `place` in the padded reference each shift explains."""
    width = padded.shape[1]
    flat = place[0] * width + place[1]
    steps = shifts[:, 1] * width + shifts[:, 0]
    # One shift at a time: all at once would not fit into the cache, and is slower.
    pixels = padded.ravel()
    return np.array([np.count_nonzero(pixels.take(flat - step) == colours) for step in steps])


def translation(reference: Screen, plus: Screen, minus: Screen) -> tuple[float, float] | None:
    """The slope (x, y), in pixels per unit, of a byte whose pokes by +8 and by -8 gave `plus` and `minus`.

    None unless it translates a sprite: each poke changes 8 to 1500 pixels, at least 90 % of them are explained by one
    shift other than (0, 0) of at most 16 per axis, and the two shifts are opposite, within 1 pixel per axis. The slope
    is the mean of the +8 shift and the negated -8 shift, over 8.
    """
    forwards, backwards = _clear_shift(reference, plus), _clear_shift(reference, minus)
    if forwards is None or backwards is None:
        return None
    (right, down), (left, up) = forwards, backwards
    if abs(right + left) > SLACK or abs(down + up) > SLACK:
        return None
    return (right - left) / (2 * POKE), (down - up) / (2 * POKE)


def _clear_shift(reference: Screen, new: Screen) -> Shift | None:
    changed = reference != new
    fewest, most = CHANGED_PIXELS
    if not fewest <= changed.sum() <= most:
        return None
    shift, share = best_shift(reference, new, changed, limit=FARTHEST_SHIFT)
    return shift if share >= EXPLAINED_SHARE and shift != (0, 0) else None


def find_sprites(rollouts: ExactRollouts) -> tuple[Sprite, ...]:
    """All sprites of a state, the one with the largest changed area first.

    Every byte is poked by +8 and by -8 (mod 256) at f*, and two frames of the tail are played. Bytes are gone through
    by changed area, of equals the lower address first; a byte whose box overlaps more than half (of the smaller) with
    the box of a sprite's leading byte belongs to the first such sprite, any other leads a sprite of its own.
    """
    tail = rollouts.trace.tail[:FRAMES_TO_SHOW]
    reference = rollouts.run([], tail).screen
    found = [_alone(rollouts, tail, reference, address) for address in range(N_BYTES)]
    leading: list[Sprite] = []
    for each in sorted((one for one in found if one), key=lambda one: -one.changed_area):
        _join(leading, each)
    return tuple(leading)


def _join(sprites: list[Sprite], newcomer: Sprite) -> None:
    for index, sprite in enumerate(sprites):
        if sprite.box.overlap(newcomer.box) > 1 / 2:
            sprites[index] = Sprite((*sprite.bytes, *newcomer.bytes), sprite.changed_area, sprite.box)
            return
    sprites.append(newcomer)


def _alone(rollouts: ExactRollouts, tail: tuple[int, ...], reference: Screen, address: int) -> Sprite | None:
    """The sprite that one byte moves, if it does."""
    plus, minus = _poked(rollouts, address, tail)
    slope = translation(reference, plus, minus)
    if slope is None:
        return None
    changed = (plus != reference) | (minus != reference)
    mover = TranslatingByte(address, *slope, int(rollouts.ram[address]))
    return Sprite((mover,), int(changed.sum()), bounding_box(changed))


def opposite_pokes(rollouts: ExactRollouts, address: int) -> tuple[RamWrite, RamWrite]:
    """The byte set to its value at f* plus 8 and minus 8, modulo 256."""
    value = int(rollouts.ram[address])
    return RamWrite(address, (value + POKE) % 256), RamWrite(address, (value - POKE) % 256)


def _poked(rollouts: ExactRollouts, address: int, tail: tuple[int, ...]) -> tuple[Screen, Screen]:
    """The screens after the byte was poked by +8 and by -8."""
    plus, minus = (rollouts.run([poke], tail).screen for poke in opposite_pokes(rollouts, address))
    return plus, minus


def template_at_horizon(rollouts: ExactRollouts, sprite: Sprite, reference_screen: Screen) -> Template | None:
    """What a sprite looks like at the horizon; `reference_screen` is the reference run's, there.

    Its leading byte must translate it there too: the test of `translation`, all of it, after the whole tail. The
    sprite lies where the box of the pixels that +8 changes meets the box of those that -8 changes; its pixels are those
    whose colour is not the background's, and the background is the commonest colour of the 2-pixel ring around (of
    equals the lowest palette index). None if the test fails or fewer than 4 pixels are left: take the next sprite.
    """
    plus, minus = _poked(rollouts, sprite.bytes[0].address, rollouts.trace.tail)
    if translation(reference_screen, plus, minus) is None:
        return None
    place = bounding_box(plus != reference_screen).intersection(bounding_box(minus != reference_screen))
    pixels = _foreground(reference_screen, place)
    return Template(pixels, sprite.bytes) if len(pixels) >= SMALLEST_TEMPLATE else None


def bounding_box(mask: Mask) -> Box:
    """The smallest box that holds all of a mask that is not empty."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return Box(int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1)


def _foreground(screen: Screen, box: Box) -> tuple[tuple[int, int, int], ...]:
    """Row, column and colour of the pixels in the box that are not in the commonest colour of the ring around it."""
    around = _ring(screen, box)
    if not box.area or not len(around):
        return ()
    background = np.bincount(around).argmax()
    inside = screen[box.top : box.bottom, box.left : box.right]
    places = np.argwhere(inside != background)
    return tuple((box.top + int(row), box.left + int(column), int(inside[row, column])) for row, column in places)


def _ring(screen: Screen, box: Box) -> UInt8[np.ndarray, " pixel"]:
    """The colours of the pixels within 2 rows and columns of the box, itself left out, as far as there is a screen."""
    near = np.zeros(screen.shape, dtype=np.bool_)
    near[
        max(box.top - RING_WIDTH, 0) : box.bottom + RING_WIDTH, max(box.left - RING_WIDTH, 0) : box.right + RING_WIDTH
    ] = True
    near[box.top : box.bottom, box.left : box.right] = False
    return np.asarray(screen[near])
