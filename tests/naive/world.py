"""The methods that measure on the machine once more: loops over plain numbers, from the papers' formulas.

They run the machine as often as the formula mentions it. What is drawn is drawn by the same calls as in the methods.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import torch

from oracle.intervention import RamWrite
from oracle.task import Question, Rollout

Numbers = list[float]
Mask = tuple[bool, ...]


def named(question: Question) -> list[int]:
    """The addresses of the causes, each once."""
    addresses = []
    for cause in question.causes:
        if cause.ram_address is not None and cause.ram_address not in addresses:
            addresses.append(cause.ram_address)
    return addresses


def present(question: Question, baseline: int) -> list[int]:
    """Those that do not hold the baseline already."""
    return [address for address in named(question) if int(question.ram[address]) != baseline]


def in_ram(question: Question, addresses: list[int], values: Numbers) -> Numbers:
    """A number per RAM byte."""
    return [values[addresses.index(byte)] if byte in addresses else 0.0 for byte in range(len(question.ram))]


def y_of(rollout: Rollout, addresses: list[int], mask: Mask, baseline: int) -> float:
    """y where the bytes that the mask does not keep hold the baseline."""
    return rollout(
        [RamWrite(address, baseline) for address, kept in zip(addresses, mask, strict=True) if not kept],
    )


def subsets(n_bytes: int) -> Iterator[Mask]:
    """All masks, counted in binary."""
    for number in range(2**n_bytes):
        yield tuple(number >> place & 1 == 1 for place in range(n_bytes))


def bernoulli_masks(n_bytes: int, n_samples: int, generator: torch.Generator) -> list[Mask]:
    """Each byte kept by a fair coin; all masks where there are no more than wanted."""
    if 2**n_bytes <= n_samples:
        return list(subsets(n_bytes))
    coins = torch.rand(n_samples, n_bytes, generator=generator, dtype=torch.float64).tolist()
    return [tuple(coin < 0.5 for coin in row) for row in coins]


def occlusion(question: Question, rollout: Rollout, generator: torch.Generator, baseline: int = 0) -> Numbers:
    """y(do(byte := baseline)) - y(reference)."""
    addresses = named(question)
    changes = [rollout([RamWrite(address, baseline)]) - rollout([]) for address in addresses]
    return in_ram(question, addresses, changes)


def finite_difference(
    question: Question, rollout: Rollout, generator: torch.Generator, steps: tuple[int, ...] = (1, 8)
) -> Numbers:
    """The mean of |y(do(byte := value +- step)) - y(reference)| over steps that stay within a byte."""
    addresses, means = named(question), []
    for address in addresses:
        sizes = []
        for step in steps:
            up, down = int(question.ram[address]) + step, int(question.ram[address]) - step
            if up <= 255:
                sizes.append(abs(rollout([RamWrite(address, up)]) - rollout([])))
            if down >= 0:
                sizes.append(abs(rollout([RamWrite(address, down)]) - rollout([])))
        means.append(math.fsum(sizes) / len(sizes))
    return in_ram(question, addresses, means)


def counterfactual(question: Question, rollout: Rollout, generator: torch.Generator, n_values: int = 32) -> Numbers:
    """The mean of |y(do(byte := v)) - y(reference)| over values v of other frames."""
    addresses, means = named(question), []
    for address in addresses:
        others = []
        for value in range(256):
            was_seen = any(int(frame[address]) == value for frame in question.reference_pool)
            if was_seen and value != int(question.ram[address]):
                others.append(value)
        order = torch.randperm(len(others), generator=generator).tolist()
        chosen = [others[index] for index in order][:n_values]
        sizes = [abs(rollout([RamWrite(address, value)]) - rollout([])) for value in chosen]
        means.append(math.fsum(sizes) / len(sizes) if sizes else 0.0)
    return in_ram(question, addresses, means)


def rise(
    question: Question, rollout: Rollout, generator: torch.Generator, n_samples: int = 2048, baseline: int = 0
) -> Numbers:
    """Mean y where the byte is kept, minus mean y where it is not."""
    addresses = present(question, baseline)
    masks = bernoulli_masks(len(addresses), n_samples, generator)
    values = [y_of(rollout, addresses, mask, baseline) for mask in masks]
    scores = []
    for place in range(len(addresses)):
        kept = [value for mask, value in zip(masks, values, strict=True) if mask[place]]
        gone = [value for mask, value in zip(masks, values, strict=True) if not mask[place]]
        both = bool(kept) and bool(gone)
        scores.append(math.fsum(kept) / len(kept) - math.fsum(gone) / len(gone) if both else 0.0)
    return in_ram(question, addresses, scores)


def lime(
    question: Question,
    rollout: Rollout,
    generator: torch.Generator,
    *,
    n_samples: int = 2048,
    kernel_width: float = 0.25,
    baseline: int = 0,
) -> Numbers:
    """Coefficients of the weighted least-squares line, by its normal equations."""
    addresses = present(question, baseline)
    if not addresses:
        return [0.0] * len(question.ram)
    masks = bernoulli_masks(len(addresses), n_samples, generator)
    if len(masks) < 2 ** len(addresses):
        masks[0] = (True,) * len(addresses)
    weights = []
    for mask in masks:
        # The cosine of a 0/1 vector and one of ones: their product over both lengths.
        cosine = sum(mask) / (math.sqrt(sum(mask)) * math.sqrt(len(mask))) if any(mask) else 0.0
        weights.append(math.exp(-((1 - cosine) ** 2) / kernel_width**2))
    rows = [[1.0, *map(float, mask)] for mask in masks]
    values = [y_of(rollout, addresses, mask, baseline) for mask in masks]
    return in_ram(question, addresses, solve(*normal_equations(rows, values, weights))[1:])


def shapley(question: Question, rollout: Rollout, generator: torch.Generator, baseline: int = 0) -> Numbers:
    """The mean, over all orders in which the bytes join, of what a byte adds: Shapley's own definition."""
    addresses = present(question, baseline)
    values = {mask: y_of(rollout, addresses, mask, baseline) for mask in subsets(len(addresses))}
    totals = [0.0] * len(addresses)
    for order in itertools.permutations(range(len(addresses))):
        joined: set[int] = set()
        for place in order:
            before = tuple(each in joined for each in range(len(addresses)))
            joined.add(place)
            after = tuple(each in joined for each in range(len(addresses)))
            totals[place] += values[after] - values[before]
    return in_ram(question, addresses, [total / math.factorial(len(addresses)) for total in totals])


def sampled_shapley(
    question: Question, rollout: Rollout, generator: torch.Generator, n_samples: int, baseline: int = 0
) -> Numbers:
    """Least squares on drawn coalitions, all of equal weight, with a Lagrange multiplier for the sum."""
    addresses = present(question, baseline)
    n_bytes = len(addresses)
    masks = kernel_masks(n_bytes, n_samples // 2, generator)
    of_none = y_of(rollout, addresses, (False,) * n_bytes, baseline)
    total = y_of(rollout, addresses, (True,) * n_bytes, baseline) - of_none
    rows = [list(map(float, mask)) for mask in masks]
    gains = [y_of(rollout, addresses, mask, baseline) - of_none for mask in masks]
    matrix, right = normal_equations(rows, gains, [1.0] * len(rows))
    bordered = [[*row, 1.0] for row in matrix] + [[1.0] * n_bytes + [0.0]]
    return in_ram(question, addresses, solve(bordered, [*right, total])[:n_bytes])


def kernel_masks(n_bytes: int, n_pairs: int, generator: torch.Generator) -> list[Mask]:
    """Of every pair a coalition and its complement: a size with weight 1 / (size (n - size)), members at random."""
    # The kernel times the number of coalitions of that size, times the same constant as in the method: draws are equal.
    shares = [(n_bytes - 1) / (size * (n_bytes - size)) for size in range(1, n_bytes)]
    places = torch.multinomial(
        torch.tensor(shares, dtype=torch.float64), n_pairs, replacement=True, generator=generator
    )
    keys = torch.rand(n_pairs, n_bytes, generator=generator, dtype=torch.float64).tolist()
    masks = []
    for place, row in zip(places.tolist(), keys, strict=True):
        members = sorted(range(n_bytes), key=row.__getitem__)[: place + 1]
        mask = tuple(each in members for each in range(n_bytes))
        masks += [mask, tuple(not kept for kept in mask)]
    return masks


def extremal_perturbation(
    question: Question, rollout: Rollout, generator: torch.Generator, max_area: int = 8, baseline: int = 0
) -> Numbers:
    """Over areas 1, 2, ...: the greedy mask of at most so many bytes; the share of them that a byte is in."""
    addresses = present(question, baseline)
    n_areas = min(max_area, len(addresses))
    mask: list[int] = []
    counts = dict.fromkeys(addresses, 0)

    def size(occluded: list[int]) -> float:
        return abs(rollout([RamWrite(address, baseline) for address in sorted(occluded)]) - rollout([]))

    for _ in range(n_areas):
        candidates = [address for address in addresses if address not in mask]
        best = max(size([*mask, address]) for address in candidates)
        if best > size(mask):
            equals = [address for address in candidates if size([*mask, address]) == best]
            mask.append(equals[int(torch.randint(len(equals), (), generator=generator))])
        for address in mask:
            counts[address] += 1
    return in_ram(question, addresses, [counts[address] / n_areas for address in addresses])


def normal_equations(rows: list[Numbers], values: Numbers, weights: Numbers) -> tuple[list[Numbers], Numbers]:
    """X' W X and X' W y, without rounding."""
    columns = range(len(rows[0]))
    triples = [
        ([Fraction(number) for number in row], Fraction(value), Fraction(weight))
        for row, value, weight in zip(rows, values, weights, strict=True)
    ]
    matrix = [[sum(weight * row[i] * row[j] for row, _, weight in triples) for j in columns] for i in columns]
    return matrix, [sum(weight * row[i] * value for row, value, weight in triples) for i in columns]


def solve(matrix: list[Numbers], right: Numbers) -> Numbers:
    """Gauss elimination on fractions: exact, and a division by zero where the equations leave something open."""
    rows = [[Fraction(number) for number in (*row, value)] for row, value in zip(matrix, right, strict=True)]
    n = len(rows)
    for column in range(n):
        pivot = next((each for each in range(column, n) if rows[each][column]), column)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for other in range(n):
            if other != column:
                factor = rows[other][column] / rows[column][column]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[column], strict=True)]
    return [float(rows[each][n] / rows[each][each]) for each in range(n)]


# One row per built-in method that measures on the machine, by its registered name.
REPLICAS: dict[str, Callable[[Question, Rollout, torch.Generator], Numbers]] = {
    "occlusion": occlusion,
    "finite_difference": finite_difference,
    "counterfactual": counterfactual,
    "rise": rise,
    "lime": lime,
    "kernel_shap": shapley,
    "extremal_perturbation": extremal_perturbation,
}
