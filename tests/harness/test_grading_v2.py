"""The v2 grader: from a claim and its grounds to the scored part of a record."""

import math

import numpy as np
import pytest

from harness import scores, scores_v2
from harness.grading import UNDEFINED, Grounds, grade
from harness.units import Claim, Curves, TaskId

TASK = TaskId(subject="machine", game="pong", state=0, output="ram[54]", regime="content")
EFFECT = np.array([9.0, 0.0, 4.0, 2.0, 0.0])
NAMED = (3.0, 0.0, 1.0, 0.0, 0.0)
OWN = np.array([True, False, False, False, False])
SIZE = np.array([5.0, 0.5, 1.0, 3.0, 2.0])
# y at 0, 1, 2, 4 and 5 causes. The oracle changes it at once, the two random orders late.
ORACLE = np.array([[10.0, 2, 2, 2, 2], [2, 10, 10, 10, 10]])
RANDOM = np.array([[[10.0, 10, 10, 10, 2], [10, 10, 10, 2, 2]], [[2, 2, 2, 2, 10], [2, 2, 2, 10, 10]]])
NAN = pytest.approx(math.nan, nan_ok=True)
NOT_SCORED = dict.fromkeys(UNDEFINED, NAN)
WITH_CURVES = {"oracle_curves": ORACLE, "random_curves": RANDOM}
VANISHED = dict.fromkeys(("F", "F_log", "F_cross", "F_partial", "spearman", "S", "S_log", "M"), 0.0)
NO_DIFFERENCE = {"deletion_diff": 0.0, "insertion_diff": 0.0}


def claim_of(*values, status="ok", reason=""):
    """A claim of some method."""
    return Claim(task=TASK, method="blur", status=status, reason=reason, values=values)


def curves_of(**changes):
    """The curves of a claim: deletion as good as the oracle's, insertion as late as a random order."""
    content = {"task": TASK, "method": "blur", "status": "ok", "deletion": (10, 2, 2, 2, 2)}
    return Curves(**content | {"insertion": (2, 2, 2, 10, 10)} | changes)


def graded(claim, **grounds):
    """A claim graded under v2."""
    return grade(claim, Grounds(**{"effect": EFFECT, "seed": 0} | grounds), version="v2")


def some(found, expected):
    """What was found of what is expected."""
    return {name: found[name] for name in expected}


def test_an_answer_is_scored():
    """An answered task has all v2 scores, none of v1's own, its counts and no reason."""
    found = graded(claim_of(*NAMED), own=OWN, size=SIZE, curves=curves_of(), **WITH_CURVES)
    claim = np.array(NAMED)
    expected = NOT_SCORED | {
        "F": scores.pearson(claim, EFFECT),
        "F_log": scores.log_pearson(claim, EFFECT),
        # Without the first cause the claim is (0, 1, 0, 0), the effect (0, 4, 2, 0): 2.5 / sqrt(0.75 * 11).
        "F_cross": pytest.approx(2.5 / math.sqrt(0.75 * 11)),
        "F_partial": scores.partial_pearson(claim, EFFECT, SIZE),
        "spearman": scores.spearman(claim, EFFECT),
        # The first is predicted by the third, 12, and the third by the first, 3; for the others nothing is claimed.
        "S": pytest.approx(1 - (3**2 + 1**2 + 2**2) / (81 + 16 + 4)),
        "S_log": scores_v2.log_sufficiency(claim, EFFECT),
        "M": pytest.approx(2 / 3),  # two named, both of the three true ones
        # The first and third, and one of the three unclaimed for the third place: the fourth is the third effect.
        "precision_at_3": pytest.approx((2 + 1 / 3) / 3),
        # In units of the range 8, over four steps: deletion 3.5, by chance 0.5 and 1.5; insertion, which is better
        # low, 2.5, by chance 3.5 and 2.5.
        "deletion_diff": pytest.approx((3.5 - 1) / 4),
        "insertion_diff": pytest.approx((3 - 2.5) / 4),
        "self_alive": True,
        "n_causes": 5,
        "n_true": 3,
        "n_named": 2,
        "n_rollouts": 0,
        "n_gradients": 0,
        "vanished": False,
        "status": "ok",
        "reason": "",
    }
    assert expected == found


def test_the_oracle_has_the_ceiling():
    """The true effects have F = S = M = 1 and the oracle's differences."""
    oracle_curves = curves_of(deletion=tuple(ORACLE[0]), insertion=tuple(ORACLE[1]))
    found = graded(claim_of(*EFFECT), own=OWN, curves=oracle_curves, **WITH_CURVES)
    perfect = dict.fromkeys(("F", "F_log", "F_cross", "spearman", "S", "S_log", "M", "precision_at_3"), 1.0)
    assert {name: pytest.approx(1.0) for name in perfect} == some(found, perfect)
    assert (2.5 / 4, 2.5 / 4) == pytest.approx((found["deletion_diff"], found["insertion_diff"]))


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("curves", [None, curves_of()], ids=["without curves", "with curves"])
def test_a_vanished_claim_has_nothing(value, curves):
    """A constant claim has 0 whatever order its curves were measured in; its precision is chance."""
    found = graded(claim_of(*[value] * 5), own=OWN, size=SIZE, curves=curves, **WITH_CURVES)
    expected = {**VANISHED, **NO_DIFFERENCE, "vanished": True, "status": "ok", "reason": ""}
    assert expected == some(found, expected)
    assert 3 / 5 == pytest.approx(found["precision_at_3"])


@pytest.mark.parametrize("status", ["failed", "timeout"])
def test_an_unanswered_task_counts_as_vanished(status):
    """A failed claim has what a claim of nothing has, whatever it still holds, with its own status and reason."""
    claim = claim_of(*EFFECT, status=status, reason="it raised")
    found = graded(claim, own=OWN, size=SIZE, **WITH_CURVES)
    expected = NOT_SCORED | VANISHED | NO_DIFFERENCE | {"precision_at_3": pytest.approx(3 / len(EFFECT))}
    assert expected == some(found, expected)
    assert (True, 0, status, "it raised") == tuple(found[name] for name in ("vanished", "n_named", "status", "reason"))


def test_what_is_undefined_for_all_is_undefined_for_a_failure():
    """A failed claim costs nothing in a score that nobody has on that task."""
    effect = np.array([9.0, 0.0, 0.0, 0.0, 0.0])
    still = {"oracle_curves": np.full((2, 5), 3.0), "random_curves": np.full((2, 2, 5), 3.0)}
    found = graded(claim_of(status="failed"), effect=effect, own=OWN, **still)
    undefined = ("F_cross", "F_partial", "S", "S_log", "deletion_diff", "insertion_diff")
    assert dict.fromkeys(undefined, NAN) | {"F": 0.0, "M": 0.0} == some(found, [*undefined, "F", "M"])


def test_undefined_scores_have_reasons():
    """Every score that is undefined for a reason has it told, and the others stay."""
    found = graded(claim_of(*NAMED), effect=np.array([9.0, 0.0, 0.0, 0.0, 0.0]), own=OWN, size=2 * OWN + 1.0)
    assert [
        "S: fewer than 2 causes have an effect",
        "difference to random: no curves of the oracle and of random orders",
        "F_cross: beside the own byte's, the effects are all equal",
        "F_partial: the effects follow from the movement alone",
    ] == found["reason"].split("; ")
    assert ([NAN] * 6, 0.5) == (
        [found[name] for name in ("S", "S_log", "F_cross", "F_partial", "deletion_diff", "insertion_diff")],
        found["M"],
    )


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("no curves of the oracle and of random orders", {"random_curves": None}),
        ("no curves of the oracle and of random orders", {"oracle_curves": None}),
        ("no curves (no claim)", {"curves": None}),
        (
            "y is the same at all steps of the oracle and random orders",
            {"oracle_curves": 0 * ORACLE, "random_curves": 0 * RANDOM},
        ),
    ],
)
def test_undefined_differences_have_a_reason(reason, changes):
    """Without curves, or where nothing changes y, the differences are undefined, and the record says which it was."""
    found = graded(claim_of(*NAMED), **WITH_CURVES | {"curves": curves_of()} | changes)
    expected = {"deletion_diff": NAN, "insertion_diff": NAN, "reason": f"difference to random: {reason}"}
    assert expected == some(found, expected)


def test_curves_that_failed_gain_nothing():
    """As a vanished claim, so that gains are about the same outputs for all methods."""
    broken = curves_of(status="failed", reason="the machine broke")
    found = graded(claim_of(*NAMED), **WITH_CURVES | {"curves": broken})
    assert (0.0, 0.0, "") == (found["deletion_diff"], found["insertion_diff"], found["reason"])


def test_what_a_task_has_not_has_no_reason():
    """A position output on the machine has neither F_cross nor F_partial, and nothing is to be explained."""
    found = graded(claim_of(*NAMED), curves=curves_of(), **WITH_CURVES)
    assert (NAN, NAN, "") == (found["F_cross"], found["F_partial"], found["reason"])


def test_the_seed_changes_nothing():
    """Under v2 no score depends on the seed of the run."""
    one, other = (graded(claim_of(*NAMED), seed=seed, own=OWN, curves=curves_of(), **WITH_CURVES) for seed in (0, 1))
    # Undefined is the same NaN in both.
    assert one == other


def test_a_degenerate_task_is_not_scored():
    """Where all effects are equal nobody is scored under v2 either."""
    found = graded(claim_of(*NAMED), effect=np.full(5, 4.0), own=OWN, curves=curves_of(), **WITH_CURVES)
    assert NOT_SCORED | {"status": "degenerate"} == some(found, [*UNDEFINED, "status"])


@pytest.mark.parametrize(
    ("own", "alive"),
    [(OWN, True), (np.array([False, True, False, False, False]), False), (None, False)],
    ids=["it moves itself", "it is overwritten", "it is no byte"],
)
def test_a_byte_that_keeps_what_it_is_given_is_told(own, alive):
    """`self_alive` says whether the byte that is explained has an effect on itself, also of a claim that has failed."""
    assert [9.0, 0.0] == EFFECT[:2].tolist()
    for status in ("ok", "failed"):
        values = NAMED if status == "ok" else ()
        assert (
            alive is graded(claim_of(*values, status=status), own=own, curves=curves_of(), **WITH_CURVES)["self_alive"]
        )
