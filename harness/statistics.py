"""Means, confidence intervals and spread of board values. What varies is the game: games are drawn, never states.

Scores of one regime are an array `(method, game, state, output, seed)`, NaN for whatever is missing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr, ndtri, stdtrit

N_DRAWS = 10_000
LEVEL = 0.95
MIN_GAMES_FOR_BOOTSTRAP = 12
MIN_GAMES = 3
# Values that differ by no more than this differ by rounding.
LAST_BITS = 1e-12
# Game values are drawn as multiples of 2^-42 of a power of two above the largest: an error of at most 3e-13 of it.
GRID_BITS = 42
# Methods bootstrapped at once, which bounds the memory: 10,000 draws of two regimes take 5 MB an array.
BLOCK = 32

# One value per regime and game; NaN marks a game that lacks the regime.
Games = Float[np.ndarray, "regime game"]
# Scores of one regime, which has outputs of its own.
Scores = Float[np.ndarray, "method game state _ seed"]


@dataclass(frozen=True)
class Interval:
    """A 95 % interval; `kind` says how it was made: `BCa`, `t`, or `none` under three games."""

    low: float
    high: float
    kind: str


def game_values(scores: Scores) -> Float[np.ndarray, "method game"]:
    """Mean over seeds, then outputs, then states, each over what is there; NaN where nothing is.

    Means of means: a state with one output left weighs as much as one with four.

    >>> float(game_values(np.array([[[[[1.0], [0.0]], [[1.0], [np.nan]]]]]))[0, 0])
    0.75
    """
    return mean_of_present(mean_of_present(mean_of_present(scores)))


def board_value(values: Float[np.ndarray, "*draws regime game"]) -> Float[np.ndarray, "*draws"]:
    """Mean over the regimes of the mean over the games that have the regime; NaN without any.

    >>> float(board_value(np.array([[1.0, 0.0], [0.5, np.nan]])))
    0.5
    """
    return mean_of_present(mean_of_present(values))


def spread_over_states(scores: Sequence[Scores]) -> Float[np.ndarray, " method"]:
    """Standard deviation (over n - 1) of a method's board values by state: >= 0, NaN under two states with a value.

    One array per regime. The board value by state k takes the k-th state of every game alone, and leaves out games
    that lack it: the spread is what choosing one state per game would do to the board.
    """
    return _spread([_board_values([scored[:, :, [state]] for scored in scores]) for state in range(scores[0].shape[2])])


def spread_over_seeds(scores: Sequence[Scores]) -> Float[np.ndarray, " method"]:
    """Standard deviation (over n - 1) of a method's board values by seed: >= 0, NaN under two seeds with a value.

    One array per regime. The board value by seed k takes the k-th seed on all games, states and outputs alone: the
    spread is what the method's own draws do to the board. A method that was asked with one seed has NaN in the others.
    """
    return _spread([_board_values([scored[..., [seed]] for scored in scores]) for seed in range(scores[0].shape[4])])


def _board_values(scores: Sequence[Scores]) -> Float[np.ndarray, " method"]:
    return board_value(np.stack([game_values(scored) for scored in scores], axis=1))


def _spread(parts: Sequence[Float[np.ndarray, " method"]]) -> Float[np.ndarray, " method"]:
    values = np.stack(parts, axis=-1)
    count = (~np.isnan(values)).sum(axis=-1)
    squares = np.nansum((values - mean_of_present(values)[:, None]) ** 2, axis=-1)
    variance = np.divide(squares, count - 1, out=np.full(squares.shape, np.nan), where=count > 1)
    return np.asarray(np.sqrt(variance))


def mean_of_present(values: Float[np.ndarray, "*kept averaged"]) -> Float[np.ndarray, "*kept"]:
    """Mean over the last axis without NaN; NaN where nothing is left (numpy would warn)."""
    present = ~np.isnan(values)
    count = present.sum(axis=-1)
    total = np.where(present, values, 0.0).sum(axis=-1)
    return np.asarray(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0))


def drawn_games(n_games: int, *, seed: int, n_draws: int = N_DRAWS) -> Int[np.ndarray, "draw game"]:
    """Indices of games drawn with replacement; the same seed gives all methods the same draws."""
    return np.random.default_rng(seed).integers(max(n_games, 1), size=(n_draws, n_games))


def interval(values: Games, draws: Int[np.ndarray, "draw game"]) -> Interval:
    """The interval of one method, see `intervals`."""
    return intervals(values[None], draws)[0]


def intervals(values: Float[np.ndarray, "method regime game"], draws: Int[np.ndarray, "draw game"]) -> list[Interval]:
    """The 95 % interval of every method's `board_value`, over games, from the same draws for all methods and regimes.

    A game without a value may be drawn, and then counts for nothing, in the regimes that lack it. Which other methods
    stand in the table changes no bit of a method's interval.

    Bias-corrected and accelerated bootstrap (Efron 1987, doi 10.1080/01621459.1987.10478410) with the acceleration from
    leaving out one game; under 12 games, or where no draw differs, a t interval with the jackknife's standard error;
    none under three games.
    """
    n_games = values.shape[-1]
    times_drawn = _times_drawn(draws, n_games)
    found = []
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        gridded = _on_a_grid(block)
        found += [_interval_of(*each) for each in zip(block, gridded, _replicates(gridded, times_drawn), strict=True)]
    return found


def _interval_of(values: Games, gridded: Games, replicates: Float[np.ndarray, " draw"]) -> Interval:
    n_present = int((~np.isnan(values)).any(axis=0).sum())
    if n_present < MIN_GAMES:
        return Interval(math.nan, math.nan, "none")
    if n_present >= MIN_GAMES_FOR_BOOTSTRAP and not _all_equal(values):
        return _bca(float(board_value(gridded)), replicates[~np.isnan(replicates)], _left_out(gridded))
    return _t_interval(float(board_value(values)), _left_out(values))


def _times_drawn(draws: Int[np.ndarray, "draw game"], n_games: int) -> Float[np.ndarray, "draw game"]:
    """How often each draw has each game."""
    n_draws = len(draws)
    places = draws + n_games * np.arange(n_draws)[:, None]
    return np.bincount(places.ravel(), minlength=n_draws * n_games).reshape(n_draws, n_games).astype(np.float64)


def _on_a_grid(values: Float[np.ndarray, "*kept game"]) -> Float[np.ndarray, "*kept game"]:
    """Rounded to numbers whose sums over any draw of up to 2,048 games are exact.

    A matrix product adds in an order that depends on processor, threads and the number of rows: otherwise two equal
    methods could differ in their last bits, and a draw that ties with the estimate would not.
    """
    largest = np.fmax.reduce(np.abs(values), axis=-1, keepdims=True, initial=0.0)
    unit = np.ldexp(1.0, np.frexp(largest)[1] - GRID_BITS)
    return np.asarray(np.rint(values / unit) * unit)


def _replicates(
    values: Float[np.ndarray, "method regime game"], times_drawn: Float[np.ndarray, "draw game"]
) -> Float[np.ndarray, "method draw"]:
    """The board value of every draw; NaN for a draw without any value."""
    # As one matrix: numpy multiplies a stack of small ones several times slower.
    n_methods, n_regimes, n_games = values.shape
    rows = values.reshape(n_methods * n_regimes, n_games)
    present = ~np.isnan(rows)
    totals = np.where(present, rows, 0.0) @ times_drawn.T
    counts = present.astype(np.float64) @ times_drawn.T
    means = np.divide(totals, counts, out=np.full(totals.shape, np.nan), where=counts > 0)
    return mean_of_present(np.moveaxis(means.reshape(n_methods, n_regimes, len(times_drawn)), 1, -1))


def _left_out(values: Games) -> Float[np.ndarray, " left_out"]:
    """The board value without each of the games that have one."""
    n_games = values.shape[1]
    present = np.flatnonzero(~np.isnan(values).all(axis=0))
    others = np.arange(n_games - 1)
    others = others + (others >= present[:, None])
    return board_value(np.take(values, others, axis=1).transpose(1, 0, 2))


def _all_equal(values: Games) -> bool:
    """True if no regime has two different values: then every draw is the same but for its last bit."""
    present = [row[~np.isnan(row)] for row in values]
    return all(np.ptp(row) <= LAST_BITS for row in present if len(row))


def _bca(estimate: float, replicates: Float[np.ndarray, " draw"], left_out: Float[np.ndarray, " game"]) -> Interval:
    # Ties count half, so that a discrete statistic is not called biased; also those that rounding has split.
    n_below, n_up_to = (np.mean(replicates < estimate + margin) for margin in (-LAST_BITS, LAST_BITS))
    below = float(n_below + n_up_to) / 2
    bias = ndtri(np.clip(below, 1 / len(replicates), 1 - 1 / len(replicates)))
    # Sorted, so that the order of the games changes no bit.
    left_out = np.sort(left_out)
    deviations = left_out.mean() - left_out
    scale = float((deviations**2).sum()) ** 1.5
    acceleration = float((deviations**3).sum()) / (6 * scale) if scale > 0 else 0.0
    tails = ndtri([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    shifted = bias + tails
    adjusted = ndtr(bias + shifted / (1 - acceleration * shifted))
    low, high = np.quantile(replicates, adjusted)
    return Interval(float(low), float(high), "BCa")


def _t_interval(estimate: float, left_out: Float[np.ndarray, " game"]) -> Interval:
    """Of a mean, this is the textbook interval: there the jackknife's standard error is s / sqrt(n)."""
    n_games = len(left_out)
    error = math.sqrt((n_games - 1) / n_games * float(((left_out - left_out.mean()) ** 2).sum()))
    half = float(stdtrit(n_games - 1, (1 + LEVEL) / 2)) * error
    return Interval(estimate - half, estimate + half, "t")
