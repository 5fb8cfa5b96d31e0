"""The v2 scores once more, from their formulas: plain loops, and exact fractions wherever numbers are added up.

Nothing is vectorised, scaled or rounded before the end; undefined is NaN, as in the fast code.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from tests.naive import scores as naive

Numbers = Sequence[float]
# One curve per kind: deletion, then insertion.
Pair = Sequence[Numbers]


def n_movers(effect: Numbers) -> int:
    """How many causes have an effect."""
    count = 0
    for value in effect:
        count += value > 0
    return count


def sufficiency(claim: Numbers, effect: Numbers) -> float:
    """S: every cause predicted by the slope of the others."""
    if n_movers(effect) < 2:
        return math.nan
    if naive.all_equal(claim):
        return 0.0
    a, d = [Fraction(value) for value in claim], [Fraction(value) for value in effect]
    wrong = total = Fraction(0)
    for i in range(len(a)):
        products = squares = Fraction(0)
        for j in range(len(a)):
            if j != i:
                products += a[j] * d[j]
                squares += a[j] ** 2
        alpha = products / squares if squares else Fraction(0)
        wrong += (d[i] - alpha * a[i]) ** 2
        total += d[i] ** 2
    return float(max(Fraction(-1), 1 - wrong / total))


def log_sufficiency(claim: Numbers, effect: Numbers) -> float:
    """S_log: S of log(1 + x / mean x)."""
    if n_movers(effect) < 2:
        return math.nan
    if naive.all_equal(claim):
        return 0.0
    return sufficiency(_logarithms(claim), _logarithms(effect))


def _logarithms(values: Numbers) -> list[float]:
    average = naive.mean([Fraction(value) for value in values])
    return [math.log1p(Fraction(value) / average) for value in values]


def large(values: Numbers) -> set[int]:
    """The causes from a 20th of the largest value on."""
    return {index for index, value in enumerate(values) if 20 * Fraction(value) >= Fraction(max(values))}


def minimality(claim: Numbers, effect: Numbers) -> float:
    """M: how many causes are in both sets, over how many are in any."""
    if n_movers(effect) == 0:
        return math.nan
    if naive.all_equal(claim):
        return 0.0
    return len(large(claim) & large(effect)) / len(large(claim) | large(effect))


def descending_orders(values: Numbers) -> Iterator[tuple[int, ...]]:
    """Every order in which no value stands before a larger one."""
    for order in itertools.permutations(range(len(values))):
        if all(values[one] >= values[other] for one, other in itertools.pairwise(order)):
            yield order


def precision_at_k(claim: Numbers, effect: Numbers, k: int) -> float:
    """The mean overlap of the first k over all orders of either side that its ties allow."""
    n_pairs = n_common = 0
    for left in descending_orders(claim):
        for right in descending_orders(effect):
            n_pairs += 1
            n_common += len(set(left[:k]) & set(right[:k]))
    return n_common / n_pairs / k


def cross_pearson(claim: Numbers, effect: Numbers, own: Sequence[bool]) -> float:
    """F_cross: F of what is left without the own causes."""
    left = [index for index in range(len(own)) if not own[index]]
    return naive.pearson([claim[index] for index in left], [effect[index] for index in left]) if left else math.nan


def curve_steps(n_causes: int) -> list[int]:
    """0, then powers of two up to 64 while they are fewer than n, then n."""
    steps, step = [0], 1
    while step < n_causes and step <= 64:
        steps.append(step)
        step *= 2
    return [*steps, n_causes] if n_causes else steps


def curve_differences(deletion: Numbers, insertion: Numbers, oracle: Pair, random: Sequence[Pair]) -> tuple:
    """Both differences to random orders; `random` holds a deletion and an insertion curve for each order here."""
    references = (0, -1)
    changes = [change(curves[kind], references[kind]) for curves in (oracle, *random) for kind in (0, 1)]
    largest = max(itertools.chain(*changes))
    if largest == 0:
        return math.nan, math.nan
    found = []
    for kind, curve, sign in ((0, deletion, 1), (1, insertion, -1)):
        by_chance = naive.mean([area(change(order[kind], references[kind])) for order in random])
        found.append(float(sign * (area(change(curve, references[kind])) - by_chance) / largest))
    return tuple(found)


def change(curve: Numbers, reference: int) -> list[Fraction]:
    """|y - y_0| at every step."""
    return [abs(Fraction(y) - Fraction(curve[reference])) for y in curve]


def area(curve: Sequence[Fraction]) -> Fraction:
    """The area under steps of equal width, by trapezoids."""
    total = Fraction(0)
    for left, right in itertools.pairwise(curve):
        total += (left + right) / 2
    return total / (len(curve) - 1)


def gain(method_diffs: Numbers, oracle_diffs: Numbers) -> float:
    """The quotient of both sums over the outputs that have both."""
    won = possible = Fraction(0)
    for one, other in zip(method_diffs, oracle_diffs, strict=True):
        if not math.isnan(one) and not math.isnan(other):
            won += Fraction(one)
            possible += Fraction(other)
    return float(won / possible) if possible > 0 else math.nan


def eligible_bytes(ram_effects: Sequence[Numbers], addresses: Sequence[int], least: int) -> list[bool]:
    """For each byte, whether as many others move it."""
    found = []
    for byte in range(len(ram_effects[0])):
        movers = set()
        for cause, address in enumerate(addresses):
            if address not in (-1, byte) and ram_effects[cause][byte] > 0:
                movers.add(address)
        found.append(len(movers) >= least)
    return found


def hub_claim(
    ram_effects: Sequence[Numbers], eligible: Sequence[bool], addresses: Sequence[int], output_byte: int | None
) -> list[float]:
    """For each cause, its mean share of the largest effect on other bytes."""
    claims = []
    for cause, address in enumerate(addresses):
        shares = []
        for byte, counts in enumerate(eligible):
            if counts and byte not in (output_byte, address):
                strongest = max(row[byte] for row in ram_effects)
                shares.append(ram_effects[cause][byte] / strongest if strongest else 0.0)
        claims.append(sum(shares) / len(shares) if shares else 0.0)
    return claims
