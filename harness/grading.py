"""From claim, effects and curves to scores: one grader per score version."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from harness import scores, scores_v2
from harness.scores_v2 import SCORES_V2
from harness.units import UNANSWERED, Claim, Curves
from oracle.effects import AnswerKey

Effects = Float[np.ndarray, " cause"]
Scores = dict[str, Any]

# The columns of all versions. Those that a version has not stay undefined.
UNDEFINED: Scores = dict.fromkeys((*scores.SCORES, *SCORES_V2), math.nan)
UNANSWERED_SCORES: Scores = {name: info.unanswered for name, info in scores.SCORES.items()}
FOLLOWS_FROM_SIZE = "F_partial: the effects follow from the movement alone"


@dataclass(frozen=True, kw_only=True)
class Grounds:
    """What a claim is graded on.

    Attributes:
        effect: |effect| per cause.
        seed: of the run.
        size: how much each cause moves the input of a network; None for the machine, which has no `F_partial`.
        own: which causes belong to the byte that is explained; None where there is none, and no `F_cross`.
        curves: y in the order of the claim; None if there is no claim.
        oracle_curves: y in the order of the true effects: deletion, insertion.
        random_curves: the same in random orders.
    """

    effect: Effects
    seed: int
    size: Effects | None = None
    own: Bool[np.ndarray, " cause"] | None = None
    curves: Curves | None = None
    oracle_curves: Float[np.ndarray, "2 step"] | None = None
    random_curves: Float[np.ndarray, "2 order step"] | None = None


def grounds_of(key: AnswerKey, row: int, seed: int, curves: Curves | None) -> Grounds:
    """What an answer key says of its output in this row, with the curves of a claim on it."""
    address = key.question.outputs[row].ram_address
    own = None
    if address is not None:
        own = np.array([cause.ram_address == address for cause in key.question.causes], dtype=np.bool_)
    reference = key.reference_curves
    return Grounds(
        effect=np.abs(key.effects[row]),
        seed=seed,
        size=key.movement.size if key.movement else None,
        own=own,
        curves=curves,
        oracle_curves=reference["oracle"][row] if reference else None,
        random_curves=reference["random"][row] if reference else None,
    )


def grade_v1(claim: Effects, grounds: Grounds) -> tuple[Scores, list[str]]:
    """All v1 scores, and why those that are NaN are undefined."""
    effect, size, curves = grounds.effect, grounds.size, grounds.curves
    graded: Scores = {
        **_shared(claim, grounds),
        "S": scores.sufficiency_v1(claim, effect, seed=grounds.seed, absolute_tolerance=_tolerance(size)),
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
        reasons["F_partial"] = FOLLOWS_FROM_SIZE
    if curves is None or curves.status != "ok":
        reasons["deletion_auc"] = f"AUC: {_without_curves(curves)}"
    else:
        deletion, insertion = np.array(curves.deletion), np.array(curves.insertion)
        graded["deletion_auc"], graded["insertion_auc"] = scores.curve_aucs(deletion, insertion)
    return graded, [reason for name, reason in reasons.items() if math.isnan(graded[name])]


def _shared(claim: Effects, grounds: Grounds) -> Scores:
    """The scores that both versions compute alike."""
    effect, size = grounds.effect, grounds.size
    return {
        "F": scores.pearson(claim, effect),
        "F_log": scores.log_pearson(claim, effect),
        "F_partial": math.nan if size is None else scores.partial_pearson(claim, effect, size),
        "spearman": scores.spearman(claim, effect),
    }


def _tolerance(size: Effects | None) -> float:
    """The machine's outputs are whole numbers; what a network says has a unit of its own."""
    return scores.ABSOLUTE_TOLERANCE if size is None else 0.0


def _without_curves(curves: Curves | None) -> str:
    return f"no curves ({curves.reason if curves else 'no claim'})"


def grade_v2(claim: Effects, grounds: Grounds) -> tuple[Scores, list[str]]:
    """All v2 scores, and why those that are NaN are undefined."""
    effect, own = grounds.effect, grounds.own
    deletion_diff, insertion_diff, undefined_diff = _differences(claim, grounds)
    graded: Scores = {
        **_shared(claim, grounds),
        "F_cross": math.nan if own is None else scores_v2.cross_pearson(claim, effect, own),
        "S": scores_v2.sufficiency_v2(claim, effect),
        "S_log": scores_v2.log_sufficiency(claim, effect),
        "M": scores_v2.minimality_v2(claim, effect),
        "precision_at_3": scores_v2.precision_at_k_v2(claim, effect),
        "deletion_diff": deletion_diff,
        "insertion_diff": insertion_diff,
    }
    reasons = {"S": f"S: fewer than {scores_v2.MIN_MOVERS} causes have an effect", "deletion_diff": undefined_diff}
    if own is not None:
        reasons["F_cross"] = "F_cross: beside the own byte's, the effects are all equal"
    if grounds.size is not None:
        reasons["F_partial"] = FOLLOWS_FROM_SIZE
    return graded, [reason for name, reason in reasons.items() if math.isnan(graded[name])]


def _differences(claim: Effects, grounds: Grounds) -> tuple[float, float, str]:
    """Deletion and insertion against random orders, and why they are undefined if they are."""
    curves, oracle, random = grounds.curves, grounds.oracle_curves, grounds.random_curves
    if oracle is None or random is None:
        return math.nan, math.nan, "difference to random: no curves of the oracle and of random orders"
    # First what concerns all methods alike; then a claim of nothing, which has no order of its own.
    if scores_v2.curve_range(oracle, random) == 0:
        return math.nan, math.nan, "difference to random: y is the same at all steps of the oracle and random orders"
    if scores.is_constant(claim):
        return 0.0, 0.0, ""
    if curves is not None and curves.status in UNANSWERED:
        # As a vanished claim: a gain must be about the same outputs for all methods.
        return 0.0, 0.0, ""
    if curves is None or curves.status != "ok":
        return math.nan, math.nan, f"difference to random: {_without_curves(curves)}"
    deletion, insertion = np.array(curves.deletion), np.array(curves.insertion)
    return *scores_v2.curve_differences(deletion, insertion, oracle, random), ""


GRADERS: dict[str, Callable[[Effects, Grounds], tuple[Scores, list[str]]]] = {"v1": grade_v1, "v2": grade_v2}


def unanswered_v1(grounds: Grounds) -> Scores:
    """The worst value in every v1 score that the subject has."""
    return UNANSWERED_SCORES if grounds.size is not None else {**UNANSWERED_SCORES, "F_partial": math.nan}


def unanswered_v2(grounds: Grounds) -> Scores:
    """What a claim of nothing has; what is undefined for all stays so."""
    return grade_v2(np.zeros_like(grounds.effect), grounds)[0]


UNANSWERED_GRADERS: dict[str, Callable[[Grounds], Scores]] = {"v1": unanswered_v1, "v2": unanswered_v2}


def grade(claim: Claim, grounds: Grounds, *, version: str) -> Scores:
    """The scored part of a record: counts, scores, status and reason.

    A task whose effects are all equal has nothing to rank and no scores. A task without an answer counts as a claim
    that has vanished, with the worst value in every score.
    """
    # First what concerns all methods alike: a task undefined in itself costs nobody coverage.
    if scores.is_constant(grounds.effect):
        return _row(claim, grounds, {}, "degenerate", "the effects are all equal: there is nothing to rank")
    if claim.status in UNANSWERED:
        return _row(claim, grounds, UNANSWERED_GRADERS[version](grounds), claim.status, claim.reason)
    if claim.status != "ok":
        return _row(claim, grounds, {}, claim.status, claim.reason)
    graded, reasons = GRADERS[version](np.array(claim.values), grounds)
    return _row(claim, grounds, graded, "ok", "; ".join(reasons))


def _row(claim: Claim, grounds: Grounds, graded: Scores, status: str, reason: str) -> Scores:
    # What a failed claim still holds counts for nothing.
    values = np.array(claim.values if claim.status == "ok" else ())
    scored = status not in ("degenerate", "not_applicable")
    return {
        "self_alive": grounds.own is not None and bool((grounds.effect[grounds.own] > 0).any()),
        "n_causes": len(grounds.effect),
        "n_true": scores.count_movers(grounds.effect),
        "n_rollouts": claim.n_rollouts,
        "n_gradients": claim.n_gradients,
        **UNDEFINED,
        **graded,
        "vanished": scored and scores.is_constant(values),
        "n_named": scores.count_named(values) if len(values) else 0,
        "status": status,
        "reason": reason,
    }
