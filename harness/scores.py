"""The scores, as pure functions of a claim and the measured effects.

Throughout, `claim` is a >= 0 per cause (how much the method says the cause matters), `effect` is d = |effect| per
cause. A constant claim, zero or not, has *vanished*: the method claims nothing. Undefined is NaN.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

Causes = Float[np.ndarray, " cause"]
Curve = Float[np.ndarray, " step"]

TOP_K = 3
NAMED_SHARE = 1e-6
ABSOLUTE_TOLERANCE = 0.5
RELATIVE_TOLERANCE = 0.10
MIN_CAUSES_FOR_SUFFICIENCY = 4
# Residuals below this share of what they are residuals of are zero, up to rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class ScoreInfo:
    """How a score is read: its direction, range, version and source.

    `unanswered` is what a task gets that a method failed at or timed out on: nothing is won by not answering.
    """

    column: str
    title: str
    definition: str
    best: Literal["high", "low"]
    range: tuple[float, float]
    version: str
    source: str
    unanswered: float = 0.0


AUDIT = "arXiv 2606.22447"
SCORES = {
    info.column: info
    for info in (
        ScoreInfo("F", "faithfulness", "Pearson correlation of claim and effect", "high", (-1, 1), "v1, v2", AUDIT),
        ScoreInfo(
            "F_log",
            "faithfulness of logarithms",
            "Pearson correlation of log1p(x / mean x) of claim and effect",
            "high",
            (-1, 1),
            "v1, v2",
            "Veritari",
        ),
        ScoreInfo(
            "F_partial",
            "faithfulness beyond size",
            "Pearson correlation of claim and effect after regressing both on the summed |movement| of the input",
            "high",
            (-1, 1),
            "v1, v2",
            "partial correlation, Yule 1907",
        ),
        ScoreInfo(
            "spearman",
            "rank correlation",
            "Spearman correlation, average ranks",
            "high",
            (-1, 1),
            "v1, v2",
            "Spearman 1904",
        ),
        ScoreInfo(
            "S",
            "sufficiency",
            "share of held-out causes whose effect a line through the calibration causes predicts",
            "high",
            (0, 1),
            "v1",
            AUDIT,
        ),
        ScoreInfo(
            "M", "minimality", "number of movers over number of named causes, at most 1", "high", (0, 1), "v1", AUDIT
        ),
        ScoreInfo(
            "precision_at_3",
            "precision at 3",
            "overlap of the three largest claims and effects",
            "high",
            (0, 1),
            "v1",
            AUDIT,
        ),
        ScoreInfo(
            "deletion_auc",
            "deletion AUC",
            "area under y while causes are removed, most important first",
            "low",
            (0, 1),
            "v1",
            "Petsiuk, Das, Saenko 2018, arXiv 1806.07421",
            unanswered=1.0,
        ),
        ScoreInfo(
            "insertion_auc",
            "insertion AUC",
            "area under y while causes are put back, most important first",
            "high",
            (0, 1),
            "v1",
            "Petsiuk, Das, Saenko 2018, arXiv 1806.07421",
        ),
    )
}


def is_constant(values: Causes) -> bool:
    """True if nothing distinguishes the causes: a vanished claim, or a degenerate task.

    >>> is_constant(np.array([2.0, 2.0])), is_constant(np.array([2.0, 0.0]))
    (True, False)
    """
    return bool(values.size == 0 or (values == values[0]).all())


def pearson(claim: Causes, effect: Causes) -> float:
    """Pearson correlation: 1 is a claim proportional to the effects up to an offset, 0 is chance.

    A vanished claim has 0 by definition; NaN if the effect is constant.

    >>> round(pearson(np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0])), 12)
    1.0
    """
    if is_constant(effect):
        return math.nan
    if is_constant(claim):
        return 0.0
    # Scaled first: sums of squares of very large or very small numbers would overflow or vanish.
    left, right = (_centred(values) for values in (claim, effect))
    norm = math.sqrt(float(left @ left)) * math.sqrt(float(right @ right))
    return float(np.clip(float(left @ right) / norm, -1.0, 1.0)) if norm > 0 else 0.0


def _centred(values: Causes) -> Causes:
    scaled = values / np.abs(values).max()
    return np.asarray(scaled - scaled.mean())


def log_pearson(claim: Causes, effect: Causes) -> float:
    """Pearson of log1p(x / mean x): as `pearson`, without one heavy cause deciding it."""
    if is_constant(effect):
        return math.nan
    return 0.0 if is_constant(claim) else pearson(log_shares(claim), log_shares(effect))


def log_shares(values: Causes) -> Causes:
    """log1p(x / mean x) of values >= 0 that are not all 0."""
    # Scaled first, so that the mean can't overflow.
    scaled = values / values.max()
    return np.asarray(np.log1p(scaled / scaled.mean()))


def partial_pearson(claim: Causes, effect: Causes, size: Causes) -> float:
    """Pearson of what is left of claim and effect after a least-squares line through `size` is taken off each.

    What a cause moves already tells much of its effect; this is what a claim knows beyond that. A claim that follows
    from the size alone has 0 by definition, as a vanished one; NaN if the effect follows from the size alone.

    >>> round(partial_pearson(np.array([1.0, 0, 3, 2]), np.array([2.0, 1, 5, 6]), np.array([1.0, 2, 3, 4])), 6)
    0.872872
    """
    if is_constant(effect) or len(effect) <= 2:
        return math.nan
    claim_rest, effect_rest = (_beyond(values, size) for values in (claim, effect))
    if is_constant(effect_rest):
        return math.nan
    return 0.0 if is_constant(claim_rest) else pearson(claim_rest, effect_rest)


def _beyond(values: Causes, size: Causes) -> Causes:
    """Residuals of the least-squares line of `values` over `size`; all 0 where they are rounding errors."""
    if is_constant(values):
        return np.zeros_like(values)
    centred = _centred(values)
    if is_constant(size):
        return centred
    along = _centred(size)
    rest = centred - along * (float(along @ centred) / float(along @ along))
    is_rounding = math.sqrt(float(rest @ rest)) <= ROUNDING * math.sqrt(float(centred @ centred))
    return np.zeros_like(rest) if is_rounding else np.asarray(rest)


def spearman(claim: Causes, effect: Causes) -> float:
    """Pearson correlation of average ranks: it sees the order, not the sizes."""
    return pearson(_ranks(claim), _ranks(effect)) if not is_constant(effect) else math.nan


def _ranks(values: Causes) -> Causes:
    """Ranks from 1; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])


def descending_order(values: Causes) -> Int[np.ndarray, " cause"]:
    """Indices from the largest value to the smallest; equal values keep their order."""
    return np.argsort(-values, kind="stable")


def precision_at_k(claim: Causes, effect: Causes, *, k: int = TOP_K) -> float:
    """Share of the k largest claims that are among the k largest effects; ties go to the lower index (v1).

    >>> precision_at_k(np.array([3.0, 2.0, 1.0, 0.0]), np.array([0.0, 9.0, 8.0, 7.0]))
    0.6666666666666666
    """
    overlap = set(descending_order(claim)[:k].tolist()) & set(descending_order(effect)[:k].tolist())
    return len(overlap) / k


def sufficiency_v1(
    claim: Causes, effect: Causes, *, seed: int, absolute_tolerance: float = ABSOLUTE_TOLERANCE
) -> float:
    """Share of held-out causes whose effect is predicted by a line fitted to the others, in [0, 1]; NaN under 4 causes.

    With seed 0 the calibration causes are the 1st, 3rd, ... and the held-out ones the 2nd, 4th, ...; the seed rotates
    them. A prediction may be off by a tenth of the spread of the held-out effects, or by `absolute_tolerance`, which is
    half a unit of whole numbers. A constant predictor can score high: read it beside F.
    """
    n_causes = len(claim)
    if n_causes < MIN_CAUSES_FOR_SUFFICIENCY:
        return math.nan
    # The unit of a claim is its own affair; scaled, its squares neither overflow nor vanish.
    claim = claim / max(float(claim.max()), np.finfo(np.float64).tiny)
    rotated = (np.arange(n_causes) + seed) % n_causes
    calibration, held_out = rotated[0::2], rotated[1::2]
    slope, intercept = _line(claim[calibration], effect[calibration])
    truth = effect[held_out]
    spread = max(0.0, float(truth.max())) - min(0.0, float(truth.min()))
    tolerance = max(absolute_tolerance, RELATIVE_TOLERANCE * spread)
    return float(np.mean(np.abs(slope * claim[held_out] + intercept - truth) <= tolerance))


def _line(claim: Causes, effect: Causes) -> tuple[float, float]:
    """Least-squares slope and intercept of effect over claim; slope 0 where the claim is constant."""
    if is_constant(claim):
        return 0.0, float(effect.mean())
    centred = claim - claim.mean()
    slope = float(centred @ (effect - effect.mean())) / float(centred @ centred)
    return slope, float(effect.mean()) - slope * float(claim.mean())


def count_movers(effect: Causes) -> int:
    """Causes that have an effect at all."""
    return int((effect > 0).sum())


def count_named(claim: Causes) -> int:
    """Causes that a claim names: those above a millionth of its largest value (v1)."""
    return int((claim > NAMED_SHARE * claim.max()).sum())


def minimality_v1(claim: Causes, effect: Causes) -> float:
    """Number of movers over number of named causes, at most 1; NaN if there is no mover or nothing is named.

    >>> minimality_v1(np.array([1.0, 1.0, 1.0, 0.0]), np.array([5.0, 0.0, 0.0, 0.0]))
    0.3333333333333333
    """
    movers, named = count_movers(effect), count_named(claim)
    if is_constant(claim) or movers == 0 or named == 0:
        return math.nan
    return min(1.0, movers / named)


def curve_aucs(deletion: Curve, insertion: Curve) -> tuple[float, float]:
    """Areas under both curves on the unit interval, y scaled by the range over both; NaN if y never changes (v1).

    >>> curve_aucs(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    (0.5, 0.5)
    """
    both = np.concatenate([deletion, insertion])
    low, high = float(both.min()), float(both.max())
    if high == low:
        return math.nan, math.nan
    return area((deletion - low) / (high - low)), area((insertion - low) / (high - low))


def area(curve: Curve) -> float:
    """Area under a curve of equally spaced steps on the unit interval, by trapezoids."""
    return float(np.trapezoid(curve, np.linspace(0.0, 1.0, len(curve))))
