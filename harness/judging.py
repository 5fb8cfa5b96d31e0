"""What the judge keeps of a task, and what it believes of the answers that processes leave."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from harness.controls import Truth
from harness.guard import Report
from harness.units import Claim, Curves, Status
from oracle.effects import AnswerKey
from oracle.task import Question

# A claim of a few hundred numbers is some kilobytes, a map of two frames some hundred; what is far larger is neither.
LARGEST_ANSWER = 2**26
# Sums over a map must not overflow, and maps are kept in float32.
LARGEST_NUMBER = 1e30


@dataclass(frozen=True)
class ScoredState:
    """What the judge keeps of a game-state while methods are asked: the question; effects stay in their file."""

    question: Question
    answer_key: Callable[[], AnswerKey]

    @cached_property
    def archive(self) -> bytes:
        """The question as a file, which is written anew for every method: nobody finds it changed by another."""
        return self.question.to_bytes()


@dataclass(frozen=True)
class JudgedTask:
    """One output of a game-state and one method's claim on it, which may be still to be made."""

    state: ScoredState
    row: int
    claim: Claim

    @property
    def question(self) -> Question:
        return self.state.question

    @property
    def truth(self) -> Truth:
        """What the answer key says of it, read from its file."""
        key = self.state.answer_key()
        claims = {name: claims[self.row] for name, claims in key.controls.items()}
        return Truth(np.abs(key.effects[self.row]), key.movement, claims)

    @property
    def reference(self) -> float:
        """y of the reference run."""
        return float(self.state.answer_key().reference_value[self.row])

    @property
    def curves(self) -> Curves:
        """The curves that belong to the claim, as far as known before they are measured."""
        return Curves(task=self.claim.task, method=self.claim.method, status="ok")


def believed_claim(claim: Claim, report: Report, answer: Path, n_values: int, *, is_map: bool = False) -> Claim:
    """What a method's process left, believed only if it is a claim on this very task, of this many numbers.

    In a pixel map they may be negative, also where the sign says nothing.
    """
    if report.status == "not_applicable":
        return claim.model_copy(update={"status": "not_applicable", "reason": report.text})
    if report.status != "ok":
        return claim.model_copy(update={"status": failure(report), "reason": report.text})
    try:
        if answer.stat().st_size > LARGEST_ANSWER:
            raise ValueError("a file of that size is no claim")
        given = Claim.model_validate_json(answer.read_bytes())
        # A method is told its seed only by what it draws.
        asked = claim.task.model_copy(update={"repeat": 0})
        if (given.task, given.method, given.status) != (asked, claim.method, "ok"):
            raise ValueError("it is about another task")
        is_sized = len(given.values) == n_values and np.isfinite(given.values).all()
        if is_map and is_sized and max(map(abs, given.values)) > LARGEST_NUMBER:
            raise ValueError(f"expected a map of numbers up to {LARGEST_NUMBER:g}; scale it down")
        if not is_sized or (not is_map and min(given.values) < 0):
            raise ValueError(f"expected {n_values} finite numbers{'' if is_map else ' >= 0'}")
    except (OSError, ValidationError, ValueError) as error:
        return claim.model_copy(update={"status": "failed", "reason": f"its process left no valid claim: {error}"})
    return given.model_copy(update={"task": claim.task})


def believed_curves(task: JudgedTask, report: Report, answer: Path) -> Curves:
    """What came of measuring curves; refused if they start elsewhere than the effects were measured from."""
    if report.status != "ok":
        return task.curves.model_copy(update={"status": failure(report), "reason": report.text})
    measured = Curves.model_validate_json(answer.read_bytes())
    if measured.deletion[0] != task.reference:
        reason = f"reference: expected y = {task.reference:g} as in the effects, got {measured.deletion[0]:g}"
        return task.curves.model_copy(update={"status": "failed", "reason": reason})
    return measured


def failure(report: Report) -> Status:
    """The status of a unit that gave no result."""
    return "timeout" if report.status == "timeout" else "failed"
