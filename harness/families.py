"""Families of methods against each other: is it the kind of method that matters, and in which regime?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from harness.statistics import Games, Interval, board_value, interval, mean_of_present

Values = Float[np.ndarray, "method regime game"]


@dataclass(frozen=True)
class Estimate:
    """A mean difference over games with its 95 % interval, and the games it is made of."""

    value: float
    interval: Interval
    n_games: int


@dataclass(frozen=True)
class FamilyContrast:
    """The mean difference of two families, first minus second: of each regime alone, and together (as in F)."""

    by_regime: tuple[Estimate, ...]
    together: Estimate


def family_contrast(
    values: Values, families: Sequence[str], pair: tuple[str, str], draws: Int[np.ndarray, "draw game"]
) -> FamilyContrast:
    """The mean over a family's methods in each game, less that of the other family: paired over games, BCa interval.

    A game counts where both families have a method with a value. Which methods stand for a family is taken as given:
    the interval is about other games, not about other methods.

    Args:
        values: game values, more is better.
        families: the family of each method; those in neither family of the pair count for nothing.
        pair: the families, first minus second.
        draws: games, see `drawn_games`.

    Raises:
        ValueError: a family of the pair has no method.
    """
    first, second = (family_values(values, families, family) for family in pair)
    paired = first - second
    regimes = tuple(_estimate(paired[[regime]], draws) for regime in range(len(paired)))
    return FamilyContrast(regimes, _estimate(paired, draws))


def family_values(values: Values, families: Sequence[str], family: str) -> Games:
    """Game values of a family: the mean over its methods that have the game in the regime, NaN where none has."""
    members = [place for place, each in enumerate(families) if each == family]
    if not members:
        known = ", ".join(sorted(set(families)))
        raise ValueError(f"expected a family of the table ({known}), got '{family}'")
    return mean_of_present(np.moveaxis(values[members], 0, -1))


def _estimate(paired: Games, draws: Int[np.ndarray, "draw game"]) -> Estimate:
    n_games = int((~np.isnan(paired)).any(axis=0).sum())
    return Estimate(float(board_value(paired)), interval(paired, draws), n_games)
