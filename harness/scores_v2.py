"""The scores that are new in version 2, as pure functions of a claim and the measured effects.

Words as in `harness.scores`, which keeps what both versions share. A claim that has vanished gets what a claim of
nothing deserves: 0.
"""

import math

import numpy as np
from jaxtyping import Bool, Float

from harness.scores import (
    ROUNDING,
    SCORES,
    TOP_K,
    Causes,
    Curve,
    ScoreInfo,
    area,
    count_movers,
    is_constant,
    log_shares,
    pearson,
)

Chances = Float[np.ndarray, " cause"]
Outputs = Float[np.ndarray, " output"]
# Deletion and insertion, in this order.
CurvePair = Float[np.ndarray, "2 step"]
OrderCurves = Float[np.ndarray, "2 order step"]

MIN_MOVERS = 2
# A share that is this one in other units counts as this one, however it was rounded.
SET_SHARE = 0.05 * (1 - ROUNDING)
WORST_SUFFICIENCY = -1.0
# A prediction so far off is as wrong as any; squared and summed, it still is a number.
FAR_OFF = 1e100

PETSIUK = "Petsiuk, Das, Saenko 2018, arXiv 1806.07421"
SCORES_V2 = {
    info.column: info
    for info in (
        SCORES["F"],
        SCORES["F_log"],
        ScoreInfo(
            "F_cross",
            "faithfulness across",
            "Pearson correlation of claim and effect without the explained byte's own cause",
            "high",
            (-1, 1),
            "v2",
            "Veritari",
        ),
        SCORES["F_partial"],
        SCORES["spearman"],
        ScoreInfo(
            "S",
            "sufficiency",
            "share of the squared effects that the claim predicts, each with a slope fitted to the other causes",
            "high",
            (WORST_SUFFICIENCY, 1),
            "v2",
            "prediction sum of squares, Allen 1974",
        ),
        ScoreInfo(
            "S_log",
            "sufficiency of logarithms",
            "sufficiency of log1p(x / mean x) of claim and effect",
            "high",
            (WORST_SUFFICIENCY, 1),
            "v2",
            "Veritari",
        ),
        ScoreInfo(
            "M",
            "minimality",
            "Jaccard index of the causes claimed and those with an effect, from a 20th of the largest on",
            "high",
            (0, 1),
            "v2",
            "Jaccard 1901",
        ),
        ScoreInfo(
            "precision_at_3",
            "precision at 3",
            "expected overlap of the three largest claims and effects, ties broken at random",
            "high",
            (0, 1),
            "v2",
            "McSherry, Najork 2008, doi 10.1007/978-3-540-78646-7_38",
        ),
        # A method may find a larger change than the oracle and all random orders: no bound on that side.
        ScoreInfo(
            "deletion_diff",
            "deletion above random",
            "area under |y - y_0| while causes are removed, minus that of random orders, over the range",
            "high",
            (-1, math.inf),
            "v2",
            PETSIUK,
        ),
        ScoreInfo(
            "insertion_diff",
            "insertion above random",
            "area of random orders under |y - y_0| while causes are put back, minus that of the claim, over the range",
            "high",
            (-math.inf, 1),
            "v2",
            PETSIUK,
        ),
    )
}


def sufficiency_v2(claim: Causes, effect: Causes) -> float:
    """Share of the squared effects that the claim predicts, in [-1, 1]; NaN with fewer than two movers.

    The effect of cause i is predicted as alpha_i a_i, with the least-squares slope alpha_i (no offset) of all other
    causes: S = 1 - sum (d_i - alpha_i a_i)^2 / sum d_i^2. 1 is a claim proportional to the effects, 0 is as good as
    saying that nothing changes, below 0 is worse, and nothing is below -1. A vanished claim has 0 by definition.

    >>> sufficiency_v2(np.array([1.0, 2.0, 0.0]), np.array([3.0, 6.0, 0.0]))
    1.0
    >>> sufficiency_v2(np.array([0.0, 0.0, 1.0]), np.array([3.0, 6.0, 0.0]))
    0.0
    """
    if count_movers(effect) < MIN_MOVERS:
        return math.nan
    if is_constant(claim):
        return 0.0
    truth = effect / effect.max()
    error = truth - _predicted_by_others(claim, truth)
    return max(WORST_SUFFICIENCY, 1.0 - float(error @ error) / float(truth @ truth))


def _predicted_by_others(claim: Causes, effect: Causes) -> Causes:
    """alpha_i a_i of every cause i; 0 where no other cause is claimed."""
    # Summed anew for each cause: a difference of sums would lose the digits of all causes beside a dominating one. In
    # units of its own largest claim, so that no square vanishes or overflows.
    others = np.where(np.eye(len(claim), dtype=np.bool_), 0.0, claim)
    largest = others.max(axis=1)
    unit = np.where(largest > 0, largest, 1.0)
    others /= unit[:, np.newaxis]
    slope = others @ effect / np.maximum((others**2).sum(axis=1), 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        predicted = slope * (claim / unit)
    return np.where((slope == 0) | (largest == 0), 0.0, np.minimum(predicted, FAR_OFF))


def log_sufficiency(claim: Causes, effect: Causes) -> float:
    """`sufficiency_v2` of log1p(x / mean x): the same range and NaN, without one heavy cause deciding it."""
    if count_movers(effect) < MIN_MOVERS:
        return math.nan
    return 0.0 if is_constant(claim) else sufficiency_v2(log_shares(claim), log_shares(effect))


def minimality_v2(claim: Causes, effect: Causes) -> float:
    """Jaccard index of the causes named and the true ones, in [0, 1]; NaN if there is no mover.

    Both sets hold what reaches a 20th of the largest value. The m true causes with k others beside them have
    m / (m + k). A vanished claim has 0 by definition.

    >>> minimality_v2(np.array([1.0, 1.0, 1.0, 0.0]), np.array([9.0, 1.0, 0.0, 0.1]))
    0.6666666666666666
    """
    if count_movers(effect) == 0:
        return math.nan
    if is_constant(claim):
        return 0.0
    named, true = (values / values.max() >= SET_SHARE for values in (claim, effect))
    return int((named & true).sum()) / int((named | true).sum())


def precision_at_k_v2(claim: Causes, effect: Causes, *, k: int = TOP_K) -> float:
    """Expected share of the k largest claims that are among the k largest effects, in [0, 1], never NaN.

    Ties are broken uniformly at random, on both sides independently. Where all claims are alike it is chance, k / n.

    >>> precision_at_k_v2(np.array([2.0, 1.0, 1.0]), np.array([5.0, 3.0, 0.0]), k=2)
    0.75
    """
    return float(_chances_among_largest(claim, k) @ _chances_among_largest(effect, k)) / k


def _chances_among_largest(values: Causes, k: int) -> Chances:
    """Of each cause, the probability to be among the k largest: its equals share the places that larger ones leave."""
    n_larger = (values > values[:, np.newaxis]).sum(axis=1)
    n_equal = (values == values[:, np.newaxis]).sum(axis=1)
    return np.asarray(np.clip((k - n_larger) / n_equal, 0.0, 1.0))


def cross_pearson(claim: Causes, effect: Causes, own: Bool[np.ndarray, " cause"]) -> float:
    """`pearson` over the causes that are not the explained byte's `own`; NaN where the effects of those are constant.

    A claim that names the own byte alone has vanished here: 0.

    >>> round(cross_pearson(np.array([0.0, 1.0, 2.0]), np.array([9.0, 2.0, 4.0]), np.array([True, False, False])), 12)
    1.0
    """
    return pearson(claim[~own], effect[~own])


def curve_range(oracle: CurvePair, random: OrderCurves) -> float:
    """The largest |y - y_0| that the oracle's or a random order reaches; 0 if nothing ever changes."""
    return float(max(_changes(oracle).max(), _changes(random).max()))


def curve_differences(deletion: Curve, insertion: Curve, oracle: CurvePair, random: OrderCurves) -> tuple[float, float]:
    """How much better than random orders deletion and insertion are, over the range; NaN if the range is 0.

    All curves are y at the steps of `oracle.removals`; first deletion, then insertion. With y_0 the reference, where
    deletion starts and insertion ends, and AUC the area under |y - y_0| over equally spaced steps: s (AUC - mean AUC of
    the random orders) / `curve_range`, s = +1 for deletion, which is good if y leaves y_0 fast, and s = -1 for
    insertion, which is good if y comes back fast. 0 is chance; how high it can go, the oracle's curves tell.

    >>> random = np.array([[[0.0, 1.0, 2.0]], [[2.0, 1.0, 0.0]]])
    >>> curve_differences(np.array([0.0, 2.0, 2.0]), np.array([2.0, 2.0, 0.0]), random[:, 0], random)
    (0.25, -0.25)
    """
    extent = curve_range(oracle, random)
    if extent == 0:
        return math.nan, math.nan
    # An area is linear: the mean of areas is the area of the mean.
    beyond = (_changes(np.stack([deletion, insertion])) - _changes(random).mean(axis=1)) / extent
    return area(beyond[0]), -area(beyond[1])


def _changes(curves: Float[np.ndarray, "2 *order step"]) -> Float[np.ndarray, "2 *order step"]:
    """|y - y_0|: deletion starts at the reference y_0, insertion ends there."""
    return np.asarray(np.abs(np.stack([curves[0] - curves[0, ..., :1], curves[1] - curves[1, ..., -1:]])))


def gain(method_diffs: Outputs, oracle_diffs: Outputs) -> float:
    """Sum of a method's differences to random over the oracle's, over all outputs of one regime on the board.

    1 is the oracle's order, 0 is chance. Outputs that are NaN in either are left out of both. NaN unless the oracle's
    sum is positive.

    >>> gain(np.array([0.1, math.nan, 0.2]), np.array([0.4, 0.5, 0.2]))
    0.5
    """
    known = ~(np.isnan(method_diffs) | np.isnan(oracle_diffs))
    ceiling = float(oracle_diffs[known].sum())
    return float(method_diffs[known].sum()) / ceiling if ceiling > 0 else math.nan
