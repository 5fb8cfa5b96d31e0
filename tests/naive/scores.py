"""The v1 scores once more, from their formulas: plain Python, and exact fractions wherever numbers are added up.

So nothing overflows, vanishes or is rounded before the end; undefined is NaN, as in the fast code.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

Numbers = Sequence[float]


def all_equal(values: Numbers) -> bool:
    """True if no two values differ."""
    return all(value == values[0] for value in values)


def mean(values: Sequence[Fraction]) -> Fraction:
    """The sum over the number."""
    return sum(values, Fraction(0)) / len(values)


def pearson(claim: Numbers, effect: Numbers) -> float:
    """F: covariance over the root of both variances; 0 for a vanished claim, NaN for a degenerate task."""
    if all_equal(effect):
        return math.nan
    if all_equal(claim):
        return 0.0
    left, right = [Fraction(value) for value in claim], [Fraction(value) for value in effect]
    left_mean, right_mean = mean(left), mean(right)
    covariance = left_variance = right_variance = Fraction(0)
    for one, other in zip(left, right, strict=True):
        covariance += (one - left_mean) * (other - right_mean)
        left_variance += (one - left_mean) ** 2
        right_variance += (other - right_mean) ** 2
    size = math.sqrt(covariance**2 / (left_variance * right_variance))
    return size if covariance > 0 else -size


def log_pearson(claim: Numbers, effect: Numbers) -> float:
    """F_log: F of log(1 + x / mean x)."""
    if all_equal(effect):
        return math.nan
    if all_equal(claim):
        return 0.0
    return pearson(_logarithms(claim), _logarithms(effect))


def partial_pearson(claim: Numbers, effect: Numbers, size: Numbers) -> float:
    """F_partial: F of what is left of both after the line over the size; 0 if nothing is left of the claim."""
    if all_equal(effect) or len(effect) <= 2:
        return math.nan
    claim_rest, effect_rest = _residuals(claim, size), _residuals(effect, size)
    if all_equal(effect_rest):
        return math.nan
    return 0.0 if all_equal(claim_rest) else pearson(claim_rest, effect_rest)


def _residuals(values: Numbers, size: Numbers) -> list[Fraction]:
    """What is left of the values after the least-squares line over the size, which is flat if that is constant."""
    exact, sizes = [Fraction(value) for value in values], [Fraction(value) for value in size]
    values_mean, size_mean = mean(exact), mean(sizes)
    variance = sum((each - size_mean) ** 2 for each in sizes)
    covariance = sum((one - size_mean) * (other - values_mean) for one, other in zip(sizes, exact, strict=True))
    slope = covariance / variance if variance else Fraction(0)
    return [value - values_mean - slope * (each - size_mean) for value, each in zip(exact, sizes, strict=True)]


def _logarithms(values: Numbers) -> list[float]:
    average = mean([Fraction(value) for value in values])
    return [math.log1p(Fraction(value) / average) for value in values]


def average_ranks(values: Numbers) -> list[float]:
    """1 + how many are smaller + half of how many others are equal."""
    ranks = []
    for value in values:
        n_smaller = n_equal = 0
        for other in values:
            n_smaller += other < value
            n_equal += other == value
        ranks.append(1 + n_smaller + (n_equal - 1) / 2)
    return ranks


def spearman(claim: Numbers, effect: Numbers) -> float:
    """F of the ranks."""
    return pearson(average_ranks(claim), average_ranks(effect))


def largest(values: Numbers, count: int) -> list[int]:
    """The indices of the `count` largest values: the largest left is taken again and again, the first of equals."""
    chosen: list[int] = []
    while len(chosen) < min(count, len(values)):
        best = -1
        for index, value in enumerate(values):
            if index not in chosen and (best < 0 or value > values[best]):
                best = index
        chosen.append(best)
    return chosen


def precision_at_3(claim: Numbers, effect: Numbers) -> float:
    """How many of the three largest claims are among the three largest effects, as a share of three."""
    n_common = 0
    for index in largest(claim, 3):
        n_common += index in largest(effect, 3)
    return n_common / 3


def held_out_errors(claim: Numbers, effect: Numbers, seed: int) -> tuple[list[Fraction], Fraction]:
    """|alpha a + beta - d| of every held-out cause, and the tolerance."""
    n_causes = len(claim)
    order = [(position + seed) % n_causes for position in range(n_causes)]
    a = [Fraction(claim[order[position]]) for position in range(0, n_causes, 2)]
    d = [Fraction(effect[order[position]]) for position in range(0, n_causes, 2)]
    variance = mean([(each - mean(a)) ** 2 for each in a])
    covariance = mean([(one - mean(a)) * (other - mean(d)) for one, other in zip(a, d, strict=True)])
    alpha = covariance / variance if variance else Fraction(0)
    beta = mean(d) - alpha * mean(a)
    errors, highest, lowest = [], Fraction(0), Fraction(0)
    for position in range(1, n_causes, 2):
        truth = Fraction(effect[order[position]])
        errors.append(abs(alpha * Fraction(claim[order[position]]) + beta - truth))
        highest, lowest = max(highest, truth), min(lowest, truth)
    return errors, max(Fraction(1, 2), (highest - lowest) / 10)


def sufficiency(claim: Numbers, effect: Numbers, seed: int) -> float:
    """S: share of held-out causes within the tolerance."""
    if len(claim) < 4:
        return math.nan
    errors, tolerance = held_out_errors(claim, effect, seed)
    n_within = 0
    for error in errors:
        n_within += error <= tolerance
    return n_within / len(errors)


def sufficiency_is_clear(claim: Numbers, effect: Numbers, seed: int) -> bool:
    """False where an error lies so near the tolerance that rounding decides on which side."""
    if len(claim) < 4:
        return True
    errors, tolerance = held_out_errors(claim, effect, seed)
    return all(abs(error - tolerance) > 1e-6 * tolerance for error in errors)


def minimality(claim: Numbers, effect: Numbers) -> float:
    """M: how many causes have an effect, over how many the claim names, at most 1."""
    n_movers = n_named = 0
    for value in effect:
        n_movers += value > 0
    for value in claim:
        n_named += value > 1e-6 * max(claim)
    if all_equal(claim) or n_movers == 0:
        return math.nan
    return min(1.0, n_movers / n_named)


def areas(deletion: Numbers, insertion: Numbers) -> tuple[float, float]:
    """Both areas by trapezoids of equal width, y scaled by the range over both curves."""
    low, high = min(*deletion, *insertion), max(*deletion, *insertion)
    if low == high:
        return math.nan, math.nan
    return _area(deletion, low, high), _area(insertion, low, high)


def _area(curve: Numbers, low: float, high: float) -> float:
    total = Fraction(0)
    for left, right in itertools.pairwise(curve):
        total += ((Fraction(left) + Fraction(right)) / 2 - Fraction(low)) / (Fraction(high) - Fraction(low))
    return float(total / (len(curve) - 1))
