"""Sign flips, Holm's correction, ranks and families once more, in loops; sums are exact fractions.

`None` stands for a game that lacks the regime.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

Number = int | float | Fraction
Row = Sequence[Number | None]


def difference(first: Sequence[Row], second: Sequence[Row]) -> list[list[Number | None]]:
    """First minus second, on the games that both have."""
    return [
        [None if one is None or other is None else one - other for one, other in zip(*rows, strict=True)]
        for rows in zip(first, second, strict=True)
    ]


def mean_difference(rows: Sequence[Row], signs: Sequence[int]) -> Fraction:
    """The board value of differences with each game's sign flipped or not, exactly."""
    means = []
    for row in rows:
        present = [sign * Fraction(value) for sign, value in zip(signs, row, strict=True) if value is not None]
        if present:
            means.append(sum(present) / len(present))
    return sum(means) / len(means)


def compared_games(rows: Sequence[Row]) -> list[int]:
    """The games that have a difference in any regime."""
    return [game for game in range(len(rows[0])) if any(row[game] is not None for row in rows)]


def p_of_all_flips(rows: Sequence[Row]) -> float:
    """The share of all 2^n flips that are at least as large as what is there."""
    games = compared_games(rows)
    own = [[row[game] for game in games] for row in rows]
    observed = abs(mean_difference(own, [1] * len(games)))
    flips = list(itertools.product((1, -1), repeat=len(games)))
    return sum(abs(mean_difference(own, signs)) >= observed for signs in flips) / len(flips)


def p_of_drawn_flips(rows: Sequence[Row], flips: Sequence[Sequence[int]]) -> float:
    """The same for these flips, what is there counted as one of them."""
    observed = abs(mean_difference(rows, [1] * len(rows[0])))
    n_as_large = sum(abs(mean_difference(rows, signs)) >= observed for signs in flips)
    return (1 + n_as_large) / (1 + len(flips))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """The largest, over the tests that are no less significant, of p times how many tests are no more significant."""
    tested = [each for each in p if each is not None]
    corrected: list[float | None] = []
    for own in p:
        if own is None:
            corrected.append(None)
            continue
        products = [each * sum(other >= each for other in tested) for each in tested if each <= own]
        corrected.append(min(1.0, max(products)))
    return corrected


def rejected_by_holm(p: Sequence[float], alpha: float) -> set[int]:
    """Step down from the smallest p, while it is below alpha over the number of tests that are left."""
    rejected: set[int] = set()
    while len(rejected) < len(p):
        left = [test for test in range(len(p)) if test not in rejected]
        smallest = min(left, key=lambda test: p[test])
        if p[smallest] >= alpha / len(left):
            break
        rejected.add(smallest)
    return rejected


def rank_interval(is_better: Sequence[Sequence[bool]], contestants: Sequence[int], own: int) -> tuple[int, int]:
    """One more than those above, and as many as there are less those below."""
    above = sum(is_better[other][own] for other in contestants)
    below = sum(is_better[own][other] for other in contestants)
    return 1 + above, len(contestants) - below


def family_rows(methods: Sequence[Sequence[Row]], families: Sequence[str], family: str) -> list[list[float | None]]:
    """Per regime and game the mean of the family's methods that have it."""
    members = [rows for rows, own in zip(methods, families, strict=True) if own == family]
    return [list(_means(columns)) for columns in zip(*members, strict=True)]


def _means(rows: Sequence[Row]) -> Iterator[float | None]:
    for column in zip(*rows, strict=True):
        present = [value for value in column if value is not None]
        yield math.fsum(present) / len(present) if present else None
