"""Protocol ram-v2 once more, from its text: straight loops, and a machine of its own for every rollout."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tests.naive.oracle import MachineMaker, end_of_run

Columns = Sequence[Sequence[float]]


# --- do-values -------------------------------------------------------------------------------------------------------


def others_of(column: Sequence[int]) -> list[int]:
    """The values in a column of the pool that are not its last, sorted."""
    return [value for value in range(256) if value in column and value != column[-1]]


def systematic_samples(known: Sequence[int], count: int) -> set[tuple[int, ...]]:
    """All samples of so many: every (len / count)-th, from any start within the first step."""
    if count == 0:
        return {()}
    step = Fraction(len(known), count)
    # A place changes only where the start passes a fraction of this denominator; between two lies every other start.
    starts = [Fraction(2 * each + 1, 2 * count) for each in range(count * len(known))]
    return {
        tuple(known[math.floor(start + index * step)] for index in range(count)) for start in starts if start < step
    }


def strata(present: int, n_strata: int) -> list[list[int]]:
    """The values after the present one, wrapping at 256, in so many runs; the first ones have one more if need be."""
    values = [(present + step) % 256 for step in range(1, 256)]
    runs = []
    for index in range(n_strata):
        size = 255 // n_strata + (index < 255 % n_strata)
        runs.append(values[:size])
        values = values[size:]
    return runs


# --- effects ---------------------------------------------------------------------------------------------------------


def effects_of_causes(differences: Sequence[float], owners: Sequence[int]) -> list[float]:
    """The difference of a cause with one do-value; the mean size of those of a cause with several."""
    effects = []
    for cause in sorted(set(owners)):
        own = [difference for difference, owner in zip(differences, owners, strict=True) if owner == cause]
        effects.append(own[0] if len(own) == 1 else sum(abs(each) for each in own) / len(own))
    return effects


def byte_effects(fresh_machine: MachineMaker, trace, causes) -> list[list[float]]:
    """The mean size of the effect of every cause on every byte."""
    reference, _ = end_of_run(fresh_machine, trace.prefix, trace.tail, [])
    rows = []
    for cause in causes:
        ends = [end_of_run(fresh_machine, trace.prefix, trace.tail, [do])[0] for do in cause.interventions]
        rows.append(
            [
                sum(abs(int(end[address]) - int(reference[address])) for end in ends) / len(ends)
                for address in range(len(reference))
            ]
        )
    return rows


# --- states ----------------------------------------------------------------------------------------------------------


def prefix_frames(state: int, candidate: int) -> int:
    """Frames before f* of one candidate."""
    if candidate < 16:
        return 180 + 120 * state + 90 * candidate
    return 90 + 30 * (candidate - 16)


def held_actions(state: int, candidate: int, n_frames: int) -> list[int]:
    """One action after the other, each with the number of frames that it is held."""
    generator = np.random.default_rng([2, state, candidate])
    actions: list[int] = []
    while len(actions) < n_frames:
        action, n_held = generator.integers(0, 18), generator.integers(1, 13)
        actions += [int(action)] * int(n_held)
    return actions[:n_frames]


# --- outputs ---------------------------------------------------------------------------------------------------------


def moved_by(effects: Columns, address: int) -> list[int]:
    """The other bytes that move a byte; row k of 128 is byte k, what follows is no byte."""
    return [other for other in range(128) if other != address and effects[other][address] > 0]


def correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson's; 0 where a column is constant."""
    mean_one, mean_other = sum(one) / len(one), sum(other) / len(other)
    products = sum((a - mean_one) * (b - mean_other) for a, b in zip(one, other, strict=True))
    squares = sum((a - mean_one) ** 2 for a in one) * sum((b - mean_other) ** 2 for b in other)
    return products / math.sqrt(squares) if squares else 0.0


def contents(effects: Columns, order: Sequence[int], *, most: int = 3, least: int = 3) -> list[int]:
    """The content bytes, from all bytes in the order in which they are drawn."""
    taken: list[int] = []
    for address in order:
        if len(moved_by(effects, address)) < least:
            continue
        alike = False
        for other in taken:
            rows = [row for index, row in enumerate(effects) if index not in (address, other)]
            alike = alike or correlation([row[address] for row in rows], [row[other] for row in rows]) > 0.9
        if not alike and len(taken) < most:
            taken.append(address)
    return taken


# --- curves and movement ---------------------------------------------------------------------------------------------


def curves(values, removals, order: Sequence[int], steps: Sequence[int]) -> tuple[list, list]:
    """Deletion and insertion: `values` gives y of some interventions, `removals` what removes each cause."""
    deletion, insertion = [], []
    for step in steps:
        removed, kept_out = [], []
        for place, index in enumerate(order):
            if removals[index] is not None:
                (removed if place < step else kept_out).append(removals[index])
        deletion.append(values(removed))
        insertion.append(values(kept_out))
    return deletion, insertion


def projection(pixels: Sequence[float], shifts: Columns, owners: Sequence[int], *, signed: bool) -> list[float]:
    """The claim of each cause: |sum of A dx|, or the sum of |A| |dx|, the mean over its do-values."""
    sums: dict[int, list[float]] = {}
    for shift, owner in zip(shifts, owners, strict=True):
        total = 0.0
        for weight, step in zip(pixels, shift, strict=True):
            total += weight * step if signed else abs(weight) * abs(step)
        sums.setdefault(owner, []).append(abs(total))
    return [sum(each) / len(each) for _, each in sorted(sums.items())]
