"""Sprites once more, pixel by pixel and shift by shift, and their read as a sum over all pairs of template pixels."""

from collections.abc import Sequence

import numpy as np

from oracle.template import Template

Shift = tuple[int, int]
Numbers = list[float]


def _before(one: Shift, other: Shift) -> bool:
    """True if the first of two equally good shifts (dx, dy) is to be taken."""
    lengths = [abs(dx) + abs(dy) for dx, dy in (one, other)]
    return (lengths[0], one[1], one[0]) < (lengths[1], other[1], other[0])


def _best(counts: dict[Shift, int]) -> Shift:
    best = (0, 0)
    for shift, count in counts.items():
        if count > counts[best] or (count == counts[best] and _before(shift, best)):
            best = shift
    return best


def _colour(screen: np.ndarray, row: int, column: int) -> int | None:
    n_rows, n_columns = screen.shape
    return int(screen[row, column]) if 0 <= row < n_rows and 0 <= column < n_columns else None


def _explained(reference: np.ndarray, new: np.ndarray, changed: np.ndarray, limit: int) -> dict[Shift, int]:
    pixels = [(row, column) for row, column in np.ndindex(changed.shape) if changed[row, column]]
    return {
        (dx, dy): sum(_colour(reference, row - dy, column - dx) == new[row, column] for row, column in pixels)
        for dx in range(-limit, limit + 1)
        for dy in range(-limit, limit + 1)
    }


def best_shift(reference: np.ndarray, new: np.ndarray, changed: np.ndarray, limit: int) -> tuple[Shift, float]:
    """The shift that explains most changed pixels, and which share of them."""
    counts = _explained(reference, new, changed, limit)
    best = _best(counts)
    return best, counts[best] / int(changed.sum())


def n_best_shifts(reference: np.ndarray, new: np.ndarray, changed: np.ndarray, limit: int) -> int:
    """How many shifts explain equally many changed pixels, and most."""
    counts = list(_explained(reference, new, changed, limit).values())
    return counts.count(max(counts))


def translation(reference: np.ndarray, plus: np.ndarray, minus: np.ndarray) -> tuple[float, float] | None:
    """Slope (x, y) in pixels per unit; None if the byte translates nothing."""
    shifts = []
    for new in (plus, minus):
        changed = new != reference
        if changed.sum() < 8 or changed.sum() > 1500:
            return None
        shift, share = best_shift(reference, new, changed, 16)
        if share < 0.9 or shift == (0, 0):
            return None
        shifts.append(shift)
    (right, down), (left, up) = shifts
    if max(abs(right + left), abs(down + up)) > 1:
        return None
    return (right + -left) / 2 / 8, (down + -up) / 2 / 8


def displacement(template: Template, screen: np.ndarray) -> tuple[float, bool]:
    """y of one screen, and whether the sprite is lost."""
    counts = {
        (dx, dy): sum(_colour(screen, row + dy, column + dx) == colour for row, column, colour in template.pixels)
        for dx in range(-24, 25)
        for dy in range(-24, 25)
    }
    best = _best(counts)
    # Whole numbers, so that 80 % is exact.
    if 10 * counts[best] < 8 * len(template.pixels):
        return 24.0, True
    return float(min(24, abs(best[0]) + abs(best[1]))), False


def foreground(screen: np.ndarray, top: int, left: int, bottom: int, right: int) -> list[tuple[int, int, int]]:
    """The pixels of a box (ends exclusive) in another colour than the commonest one within 2 pixels round it."""
    ring: dict[int, int] = {}
    for row in range(top - 2, bottom + 2):
        for column in range(left - 2, right + 2):
            inside = top <= row < bottom and left <= column < right
            colour = _colour(screen, row, column)
            if not inside and colour is not None:
                ring[colour] = ring.get(colour, 0) + 1
    background = min(ring, key=lambda colour: (-ring[colour], colour))
    return [
        (row, column, int(screen[row, column]))
        for row in range(top, bottom)
        for column in range(left, right)
        if screen[row, column] != background
    ]


def _shift(template: Template, ram: Sequence[float]) -> tuple[float, float]:
    down = sum(each.slope_y * (ram[each.address] - each.value) for each in template.bytes)
    right = sum(each.slope_x * (ram[each.address] - each.value) for each in template.bytes)
    return down, right


def _tent(distance: float) -> float:
    return max(0.0, 1.0 - abs(distance))


def _tent_slope(distance: float) -> float:
    """The derivative of the tent: 0 at its tip; on its feet it is that of its inner side."""
    return 0.0 if distance == 0 or abs(distance) > 1 else -1.0 if distance > 0 else 1.0


def read_values(template: Template, ram: Sequence[float]) -> Numbers:
    """The occupancy of every template pixel."""
    down, right = _shift(template, ram)
    sums = [
        sum(
            _tent(row - other_row - down) * _tent(column - other_column - right)
            for other_row, other_column, _ in template.pixels
        )
        for row, column, _ in template.pixels
    ]
    return [min(max(value, 0.0), 1.0) for value in sums]


def read_jacobian(template: Template, ram: Sequence[float]) -> list[Numbers]:
    """d occupancy / d byte, by hand: one row per template pixel."""
    down, right = _shift(template, ram)
    rows = []
    for row, column, _ in template.pixels:
        total, by_down, by_right = 0.0, 0.0, 0.0
        for other_row, other_column, _ in template.pixels:
            vertical, horizontal = row - other_row - down, column - other_column - right
            total += _tent(vertical) * _tent(horizontal)
            by_down -= _tent_slope(vertical) * _tent(horizontal)
            by_right -= _tent(vertical) * _tent_slope(horizontal)
        slopes = [0.0] * len(ram)
        for each in template.bytes:
            if 0 <= total <= 1:
                slopes[each.address] += by_down * each.slope_y + by_right * each.slope_x
        rows.append(slopes)
    return rows
