"""Means, intervals and spreads of board values once more, in loops over plain numbers.

Intervals are from Efron 1987 (equations 2.3, 2.4 and 6.6). `None` stands for a game that lacks the regime, or for a
score that is missing.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, stdev

Row = Sequence[float | None]


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of what is there; None if nothing is."""
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else None


def game_value(states: Sequence[Sequence[Row]]) -> float | None:
    """Mean over the states of the mean over a state's outputs of the mean over an output's seeds."""
    return mean([mean([mean(seeds) for seeds in outputs]) for outputs in states])


def spread(boards: Sequence[float | None]) -> float | None:
    """Standard deviation over n - 1 of those that are there, None for fewer than two."""
    present = [value for value in boards if value is not None]
    return stdev(present) if len(present) > 1 else None


def spread_over_states(regimes: Sequence[Sequence[Sequence[Sequence[Row]]]]) -> float | None:
    """Between the board values of each state alone; `regimes[regime][game][state][output][seed]` of one method."""
    n_states = len(regimes[0][0])
    return spread(
        [board_value([[game_value([game[k]]) for game in games] for games in regimes]) for k in range(n_states)]
    )


def spread_over_seeds(regimes: Sequence[Sequence[Sequence[Sequence[Row]]]]) -> float | None:
    """Between the board values of each seed alone."""
    n_seeds = len(regimes[0][0][0][0])
    boards = []
    for k in range(n_seeds):
        rows = []
        for games in regimes:
            kept = [[[[seeds[k]] for seeds in outputs] for outputs in states] for states in games]
            rows.append([game_value(states) for states in kept])
        boards.append(board_value(rows))
    return spread(boards)


def board_value(rows: Sequence[Row]) -> float | None:
    """Mean over the regimes that have a game of the mean over the games that have the regime."""
    means = []
    for row in rows:
        present = [value for value in row if value is not None]
        if present:
            means.append(math.fsum(present) / len(present))
    return math.fsum(means) / len(means) if means else None


def picked(rows: Sequence[Row], games: Sequence[int]) -> list[list[float | None]]:
    """The same table with these games as its columns, repeated as they come."""
    return [[row[game] for game in games] for row in rows]


def quantile(values: Sequence[float], share: float) -> float:
    """By linear interpolation between the two nearest of the sorted values."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def bca_interval(rows: Sequence[Row], draws: Sequence[Sequence[int]]) -> tuple[float, float]:
    """The 95 % interval from these draws of games."""
    estimate = board_value(rows)
    replicates = []
    for draw in draws:
        value = board_value(picked(rows, draw))
        if value is not None:
            replicates.append(value)
    n_games = len(rows[0])
    present = [game for game in range(n_games) if any(row[game] is not None for row in rows)]
    others = [[other for other in range(n_games) if other != game] for game in present]
    left_out = [board_value(picked(rows, games)) for games in others]
    bias = NormalDist().inv_cdf(_share_below(estimate, replicates))
    acceleration = _acceleration(left_out)
    ends = []
    for tail in (0.025, 0.975):
        shifted = bias + NormalDist().inv_cdf(tail)
        ends.append(quantile(replicates, NormalDist().cdf(bias + shifted / (1 - acceleration * shifted))))
    return ends[0], ends[1]


def _share_below(estimate: float, replicates: Sequence[float]) -> float:
    count = 0.0
    for value in replicates:
        is_tie = abs(value - estimate) < 1e-12
        count += 0.5 if is_tie else 1.0 if value < estimate else 0.0
    return count / len(replicates)


def _acceleration(left_out: Sequence[float]) -> float:
    centre = math.fsum(left_out) / len(left_out)
    squares = math.fsum((centre - value) ** 2 for value in left_out)
    cubes = math.fsum((centre - value) ** 3 for value in left_out)
    return cubes / (6 * squares**1.5)
