"""Which methods can be told apart: paired differences, Holm's correction, and the ranks that are left possible.

Everything here takes a score of which more is better; give the negative of another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from harness.sign_flip import Signs, sign_flip_p
from harness.statistics import Interval, board_value, intervals

ALPHA = 0.05

Pairs = Int[np.ndarray, "pair 2"]
# Row and column are methods.
Relation = Bool[np.ndarray, "method method"]


@dataclass(frozen=True)
class Comparison:
    """A family of pairs of methods, compared on the games that both have.

    Attributes:
        pairs: the two methods of each pair, as places in the table of values.
        n_games: the games both methods have in at least one regime.
        differences: mean difference, first method minus second.
        intervals: the 95 % interval of each mean difference.
        p: two-sided p of the sign-flip test; NaN under six games.
        corrected: p after Holm's correction over the family.
        is_better: row significantly better than column.
        is_compared: the pair stands in the family, in either order.
    """

    pairs: Pairs
    n_games: Int[np.ndarray, " pair"]
    differences: Float[np.ndarray, " pair"]
    intervals: list[Interval]
    p: Float[np.ndarray, " pair"]
    corrected: Float[np.ndarray, " pair"]
    is_better: Relation
    is_compared: Relation

    @property
    def told_apart(self) -> Relation:
        """Symmetric, but no partition: A and B may differ, and C from neither."""
        return np.asarray(self.is_better | self.is_better.T)

    def not_told_apart(self) -> list[list[int]]:
        """For each method those of its family that it cannot be told from, in the order of the table."""
        return [np.flatnonzero(row).tolist() for row in self.is_compared & ~self.told_apart]


def compare(
    values: Float[np.ndarray, "method regime game"], pairs: Pairs, draws: Int[np.ndarray, "draw game"], signs: Signs
) -> Comparison:
    """Compare these pairs, which are one family of tests: one protocol, subject, score and regime.

    Give one regime alone, or both for their mean. The intervals are BCa over games (see `intervals`), with the same
    draws and the same signs for all pairs.
    """
    paired = values[pairs[:, 0]] - values[pairs[:, 1]]
    differences, p = board_value(paired), sign_flip_p(paired, signs)
    corrected = holm(p)
    return Comparison(
        pairs=pairs,
        n_games=(~np.isnan(paired)).any(axis=1).sum(axis=1),
        differences=differences,
        intervals=intervals(paired, draws),
        p=p,
        corrected=corrected,
        is_better=significantly_better(differences, corrected, pairs, n_methods=len(values)),
        is_compared=_relation(pairs, n_methods=len(values)),
    )


def family_of_pairs(contestants: Sequence[int], floors: Sequence[int]) -> Pairs:
    """All pairs of contestants, and each contestant against each floor, but no floor against another.

    >>> family_of_pairs([0, 1, 3], [2]).tolist()
    [[0, 1], [0, 3], [1, 3], [0, 2], [1, 2], [3, 2]]
    """
    among = [(one, other) for place, one in enumerate(contestants) for other in contestants[place + 1 :]]
    below = [(one, floor) for floor in floors for one in contestants]
    return np.array([*among, *below], dtype=np.int64).reshape(-1, 2)


def holm(p: Float[np.ndarray, " test"]) -> Float[np.ndarray, " test"]:
    """p values after Holm's step-down correction (1979, Scand. J. Statist. 6, 65-70): in [p, 1].

    All tests with a corrected p below alpha may be rejected together, and the chance that any of them is rejected
    wrongly stays below alpha, however they depend on each other. NaN is no test: it stays, and counts for nothing.

    >>> holm(np.array([0.01, np.nan, 0.04, 0.03])).tolist()
    [0.03, nan, 0.06, 0.06]
    """
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    n_left = np.arange(len(order), 0, -1)
    corrected = np.full(p.shape, np.nan)
    corrected[order] = np.minimum(np.maximum.accumulate(n_left * p[order]), 1.0)
    return corrected


def significantly_better(
    differences: Float[np.ndarray, " pair"], corrected: Float[np.ndarray, " pair"], pairs: Pairs, *, n_methods: int
) -> Relation:
    """True where the row's method is better than the column's, and the two are told apart: corrected p < 0.05."""
    is_better = np.zeros((n_methods, n_methods), dtype=bool)
    first, second = pairs[corrected < ALPHA].T
    is_ahead = differences[corrected < ALPHA] > 0
    is_better[np.where(is_ahead, first, second), np.where(is_ahead, second, first)] = True
    return is_better


def _relation(pairs: Pairs, *, n_methods: int) -> Relation:
    related = np.zeros((n_methods, n_methods), dtype=bool)
    related[pairs[:, 0], pairs[:, 1]] = True
    return related | related.T


def rank_intervals(is_better: Relation, contestants: Sequence[int]) -> Int[np.ndarray, "contestant 2"]:
    """Best and worst possible rank of each contestant among them, 1 to N, in the order given.

    The best is 1 + the contestants significantly better, the worst N - those significantly worse.
    """
    among = is_better[np.ix_(contestants, contestants)]
    return np.stack([1 + among.sum(axis=0), len(among) - among.sum(axis=1)], axis=1)
