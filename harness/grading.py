"""From claim, effects and curves to scores: one grader per score version."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from harness import scores
from harness.units import UNANSWERED, Claim, Curves

Effects = Float[np.ndarray, " cause"]
Scores = dict[str, Any]

UNDEFINED: Scores = dict.fromkeys(scores.SCORES, math.nan)
UNANSWERED_SCORES: Scores = {name: info.unanswered for name, info in scores.SCORES.items()}


def grade_v1(
    claim: Effects, effect: Effects, curves: Curves | None, *, seed: int, size: Effects | None
) -> tuple[Scores, list[str]]:
    """All v1 scores, and why those that are NaN are undefined."""
    graded: Scores = {
        "F": scores.pearson(claim, effect),
        "F_log": scores.log_pearson(claim, effect),
        "F_partial": math.nan if size is None else scores.partial_pearson(claim, effect, size),
        "spearman": scores.spearman(claim, effect),
        "S": scores.sufficiency_v1(claim, effect, seed=seed, absolute_tolerance=_tolerance(size)),
        "M": scores.minimality_v1(claim, effect),
        "precision_at_3": scores.precision_at_k(claim, effect),
        "deletion_auc": math.nan,
        "insertion_auc": math.nan,
    }
    reasons = {
        "S": f"S: fewer than {scores.MIN_CAUSES_FOR_SUFFICIENCY} causes",
        "M": "M: no cause is named above the others",
        "deletion_auc": "AUC: y is the same at all steps",
    }
    if size is not None:
        reasons["F_partial"] = "F_partial: the effects follow from the movement alone"
    if curves is None or curves.status != "ok":
        reasons["deletion_auc"] = f"AUC: no curves ({curves.reason if curves else 'no claim'})"
    else:
        deletion, insertion = np.array(curves.deletion), np.array(curves.insertion)
        graded["deletion_auc"], graded["insertion_auc"] = scores.curve_aucs(deletion, insertion)
    return graded, [reason for name, reason in reasons.items() if math.isnan(graded[name])]


def _tolerance(size: Effects | None) -> float:
    """The machine's outputs are whole numbers; what a network says has a unit of its own."""
    return scores.ABSOLUTE_TOLERANCE if size is None else 0.0


GRADERS: dict[str, Callable[..., tuple[Scores, list[str]]]] = {"v1": grade_v1}


def grade(
    claim: Claim, effect: Effects, curves: Curves | None, *, version: str, seed: int, size: Effects | None = None
) -> Scores:
    """The scored part of a record: counts, scores, status and reason.

    `size` is how much each cause moves the input of a network; None for the machine, which has no `F_partial`.

    A task whose effects are all equal has nothing to rank and no scores. A task without an answer counts as a claim
    that has vanished, with the worst value in every score.
    """
    # First what concerns all methods alike: a task undefined in itself costs nobody coverage.
    if scores.is_constant(effect):
        return _row(claim, effect, UNDEFINED, "degenerate", "the effects are all equal: there is nothing to rank")
    if claim.status in UNANSWERED:
        unanswered = UNANSWERED_SCORES if size is not None else {**UNANSWERED_SCORES, "F_partial": math.nan}
        return _row(claim, effect, unanswered, claim.status, claim.reason)
    if claim.status != "ok":
        return _row(claim, effect, UNDEFINED, claim.status, claim.reason)
    graded, reasons = GRADERS[version](np.array(claim.values), effect, curves, seed=seed, size=size)
    return _row(claim, effect, graded, "ok", "; ".join(reasons))


def _row(claim: Claim, effect: Effects, graded: Scores, status: str, reason: str) -> Scores:
    # What a failed claim still holds counts for nothing.
    values = np.array(claim.values if claim.status == "ok" else ())
    scored = status not in ("degenerate", "not_applicable")
    return {
        "n_causes": len(effect),
        "n_true": scores.count_movers(effect),
        "n_rollouts": claim.n_rollouts,
        "n_gradients": claim.n_gradients,
        **graded,
        "vanished": scored and scores.is_constant(values),
        "n_named": scores.count_named(values) if len(values) else 0,
        "status": status,
        "reason": reason,
    }
