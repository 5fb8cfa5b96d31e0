"""`veritari methods check SPEC`: does a method keep the contract? What a plugin author runs first."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from games.catalog import game
from harness import work
from harness.errors import WrongUsage
from harness.pool import Job, Limits, run_job
from harness.units import Claim, slug
from harness.work import Report
from oracle.effects import measure
from oracle.protocol import protocol


@dataclass(frozen=True)
class Verdict:
    """One requirement of the contract on one task."""

    requirement: str
    task: str
    kept: bool
    detail: str


def check_method(spec: str, *, protocol_name: str, rom_id: str, seed: int, limits: Limits) -> list[Verdict]:
    """Describe the method, then ask it twice about every output of one game-state, in processes as in a run.

    Raises:
        WrongUsage: the specification can't be meant.
    """
    with tempfile.TemporaryDirectory(prefix="veritari-") as scratch:
        folder = Path(scratch)
        entry = folder / "entry.json"
        description = run_job(Job(work.describe, (spec, str(entry)), pid_file=Path(f"{entry}.pid")), limits)
        if description.status == "refused":
            raise WrongUsage(description.text)
        verdicts = [Verdict("loads and describes itself", "", description.status == "ok", description.text)]
        if description.status == "ok":
            question = measure(protocol(protocol_name), game(rom_id), 0).question
            (folder / "question.npz").write_bytes(question.to_bytes())
            for output in question.outputs:
                verdicts += _verdicts(f"{rom_id} {output.name}", _ask_twice(spec, folder, output.name, seed, limits))
    return verdicts


@dataclass(frozen=True)
class _Answer:
    """What came of asking once; no claim where the report is not ok."""

    report: Report
    claim: Claim | None


def _ask_twice(spec: str, folder: Path, output: str, seed: int, limits: Limits) -> tuple[_Answer, _Answer]:
    first, second = (_ask(spec, folder / f"{slug(output)}-{attempt}.json", output, seed, limits) for attempt in (1, 2))
    return first, second


def _ask(spec: str, answer: Path, output: str, seed: int, limits: Limits) -> _Answer:
    arguments = (spec, str(answer.parent / "question.npz"), output, seed, str(answer))
    report = run_job(Job(work.claim, arguments, pid_file=Path(f"{answer}.pid")), limits)
    claim = Claim.model_validate_json(answer.read_bytes()) if report.status == "ok" else None
    return _Answer(report, claim)


def _verdicts(task: str, answers: tuple[_Answer, _Answer]) -> list[Verdict]:
    for report in (answer.report for answer in answers):
        if report.status == "not_applicable":
            return [Verdict("applies", task, kept=True, detail=f"not applicable: {report.text}")]
        if report.status != "ok":
            return [Verdict("answers with one finite number each", task, kept=False, detail=report.text)]
    (report, first), (_, second) = ((answer.report, answer.claim) for answer in answers)
    if first is None or second is None:
        raise WrongUsage(f"{task}: expected a claim in its file, got none; run the check again")
    named = f"{sum(value > 0 for value in first.values)} of {len(first.values)} causes named"
    cost = f"{first.n_rollouts} rollouts, {first.n_gradients} gradients, {report.seconds:.2f} s"
    same = first.values == second.values
    advice = "" if same else "two answers differ: draw from `generator` only"
    return [
        Verdict("answers with one finite number each", task, kept=True, detail=named),
        Verdict("leaves its task unchanged", task, kept=True, detail=cost),
        Verdict("same answer for the same generator", task, kept=same, detail=advice),
    ]
