"""Confidence intervals of board values. What varies is the game: games are drawn, never states or causes."""

import math
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

# One value per regime and game; NaN marks a game that lacks the regime.
Games = Float[np.ndarray, "regime game"]


@dataclass(frozen=True)
class Interval:
    """A 95 % interval; `kind` says how it was made: `BCa`, `t`, or `none` under three games."""

    low: float
    high: float
    kind: str


def board_value(values: Float[np.ndarray, "*draws regime game"]) -> Float[np.ndarray, "*draws"]:
    """Mean over the regimes of the mean over the games that have the regime; NaN without any.

    >>> float(board_value(np.array([[1.0, 0.0], [0.5, np.nan]])))
    0.5
    """
    return _nanmean(_nanmean(values))


def _nanmean(values: Float[np.ndarray, "*kept averaged"]) -> Float[np.ndarray, "*kept"]:
    """Mean over the last axis without NaN; NaN where nothing is left (numpy would warn)."""
    present = ~np.isnan(values)
    count = present.sum(axis=-1)
    total = np.where(present, values, 0.0).sum(axis=-1)
    return np.asarray(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0))


def drawn_games(n_games: int, *, seed: int, n_draws: int = N_DRAWS) -> Int[np.ndarray, "draw game"]:
    """Indices of games drawn with replacement; the same seed gives all methods the same draws."""
    return np.random.default_rng(seed).integers(max(n_games, 1), size=(n_draws, n_games))


def interval(values: Games, draws: Int[np.ndarray, "draw game"]) -> Interval:
    """The 95 % interval of `board_value`, over games. A game without a value may be drawn, and then counts for nothing.

    Bias-corrected and accelerated bootstrap (Efron 1987, doi 10.1080/01621459.1987.10478410) with the acceleration from
    leaving out one game; under 12 games, or where no draw differs, a t interval with the jackknife's standard error;
    none under three games.
    """
    present = np.flatnonzero(~np.isnan(values).all(axis=0))
    if len(present) < MIN_GAMES:
        return Interval(math.nan, math.nan, "none")
    estimate = float(board_value(values))
    left_out = np.array([float(board_value(np.delete(values, game, axis=1))) for game in present])
    if len(present) >= MIN_GAMES_FOR_BOOTSTRAP and not _all_equal(values):
        replicates = board_value(values[:, draws].transpose(1, 0, 2))
        return _bca(estimate, replicates[~np.isnan(replicates)], left_out)
    return _t_interval(estimate, left_out)


def _all_equal(values: Games) -> bool:
    """True if no regime has two different values: then every draw is the same but for its last bit."""
    present = [row[~np.isnan(row)] for row in values]
    return all(np.ptp(row) <= LAST_BITS for row in present if len(row))


def _bca(estimate: float, replicates: Float[np.ndarray, " draw"], left_out: Float[np.ndarray, " game"]) -> Interval:
    # Ties count half, so that a discrete statistic is not called biased.
    below = float(np.mean(replicates < estimate) + 0.5 * np.mean(replicates == estimate))
    bias = ndtri(np.clip(below, 1 / len(replicates), 1 - 1 / len(replicates)))
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
