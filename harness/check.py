"""`veritari methods check SPEC`: does a method keep the contract? What a plugin author runs first."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from games.catalog import game
from harness import work
from harness.check_program import check_program
from harness.check_weights import check_weights
from harness.errors import WrongUsage
from harness.findings import Findings, Verdict, not_applicable
from harness.guard import Report
from harness.manifest import SUBJECTS, MethodEntry
from harness.networks import network_exclusion
from harness.plan import describe_methods
from harness.pool import Limits
from harness.trial import Answer, Measured, Trial, ask_twice, measure_subjects
from harness.trial import answers as ask_each
from harness.units import Claim
from harness.work import Asked
from methods.method import Subject
from oracle.protocol import protocol

ANSWERS = "answers with one finite number each"
UNCHANGED = "leaves its task unchanged"
SAME = "same answer for the same generator"
UNTOUCHED = "leaves the global generators alone"
COUNTED = "measures within its budget"
DRAWS = "says whether it draws"
# How an error of ours begins, with the requirement that was not kept; any other text is an answer that did not come.
BROKEN = {"task: ": UNCHANGED, "read: ": UNCHANGED, "network: ": UNCHANGED, "rollouts: ": COUNTED}


def check_method(spec: str, trial: Trial, limits: Limits) -> Findings:
    """Describe a method, ask it about every output of one game-state, then about other programs and networks.

    Each question is put twice; a method that says it draws nothing is asked with another seed as well.

    Raises:
        UnknownName: no such game or protocol.
        WrongUsage: the specification can't be meant, the network can't be built, or the game-state not be measured.
    """
    reasons = _exclusions(trial)
    [entry] = describe_methods([spec], limits)
    described = Verdict("loads and describes itself", "", not entry.broken, entry.broken)
    if entry.broken:
        return Findings((described,))
    for subject in set(SUBJECTS) - set(entry.subjects):
        reasons[subject] = f"it explains {' and '.join(entry.subjects)}, not {subject}"
    wanted = trial.subjects or tuple(each for each in SUBJECTS if each in entry.subjects)
    declined = [not_applicable(f"{trial.rom_id} {each}", reasons[each]) for each in wanted if reasons[each]]
    measured = measure_subjects(trial, [each for each in wanted if not reasons[each]], limits)
    declined += [not_applicable(task, reason) for task, reason in _unmet(measured).items()]
    found = _ask(entry, trial.seed, measured, limits)
    return Findings((described, *declined)) + found


def _exclusions(trial: Trial) -> dict[Subject, str]:
    played = game(trial.rom_id)
    by_protocol = protocol(trial.protocol_name).exclusion(played)
    return {"machine": by_protocol, "network": by_protocol or network_exclusion(trial.network, played)}


def _unmet(measured: Measured) -> dict[str, str]:
    """What a measured game-state has no output for, with the reason."""
    return {
        f"{key.question.game} {subject} {regime}".rstrip(): reason
        for subject, key in measured.keys.items()
        for regime, reason in ((("", key.exclusion),) if key.exclusion else key.unmet)
    }


def _ask(entry: MethodEntry, seed: int, measured: Measured, limits: Limits) -> Findings:
    with tempfile.TemporaryDirectory(prefix="veritari-") as folder:
        tasks = _tasks(entry.spec, seed, measured, Path(folder))
        answers = ask_twice(tasks, limits)
        reseeded = {} if entry.seeded else _ask_reseeded(answers, limits)
        found = Findings(
            tuple(
                verdict
                for asked, task in tasks.items()
                for verdict in _verdicts(task, answers[asked], reseeded.get(asked))
            )
        )
        claims = {asked: claim for asked, (answer, again) in answers.items() if (claim := answer.claim) and again.claim}
        machine = {asked: claim for asked, claim in claims.items() if claim.task.subject == "machine"}
        maps = {asked: claim for asked, claim in claims.items() if entry.domain_on(claim.task.subject) == "pixels"}
        if machine:
            found += check_program(entry, measured.keys["machine"], machine, tasks, limits)
        return found + check_weights(maps, tasks, measured.layers, limits)


def _tasks(spec: str, seed: int, measured: Measured, folder: Path) -> dict[Asked, str]:
    """What is asked, with its name in the table."""
    tasks = {}
    for subject, key in measured.keys.items():
        path = folder / f"{subject}.npz"
        path.write_bytes(key.question.to_bytes())
        # As ever for the machine; an output of a network may have the same name.
        about = key.question.game if subject == "machine" else f"{key.question.game} {subject}"
        for output in key.question.outputs:
            tasks[Asked(spec, str(path), output.name, seed)] = f"{about} {output.name}"
    return tasks


def _ask_reseeded(twice: Mapping[Asked, tuple[Answer, Answer]], limits: Limits) -> dict[Asked, Answer]:
    """The same questions with another seed, those that were answered alike twice."""
    alike = [asked for asked, (first, again) in twice.items() if first.claim and again.claim and _same(first, again)]
    return ask_each({asked: (work.claim, asked._replace(run_seed=asked.run_seed + 1)) for asked in alike}, limits)


def _verdicts(task: str, answers: tuple[Answer, Answer], reseeded: Answer | None) -> list[Verdict]:
    (report, first), (report_again, second) = answers
    if report.status != report_again.status:
        one, other = (f"{each.status} ({each.text})" if each.text else each.status for each in (report, report_again))
        return [Verdict(SAME, task, kept=False, detail=f"one answer is {one}, the other {other}")]
    if report.status == "not_applicable":
        return [not_applicable(task, report.text)]
    if report.status != "ok":
        requirement = next((each for start, each in BROKEN.items() if report.text.startswith(start)), ANSWERS)
        return [Verdict(requirement, task, kept=False, detail=report.text)]
    if first is None or second is None:
        raise WrongUsage(f"{task}: expected a claim in its file, got none; run the check again")
    numbers = "causes" if first.task.subject == "machine" else "numbers"
    named = f"{sum(value != 0 for value in first.values)} of {len(first.values)} {numbers} named"
    same = _same(*answers)
    advice = "" if same else "two answers differ: draw from `generator` only"
    moved = report.text or report_again.text
    return [
        Verdict(ANSWERS, task, kept=True, detail=named),
        Verdict(SAME, task, kept=same, detail=advice),
        Verdict(UNCHANGED, task, kept=True, detail=""),
        Verdict(UNTOUCHED, task, kept=not moved, detail=moved),
        _cost(task, report, first),
        *([_draws(task, answers[0], reseeded)] if same else []),
    ]


def _same(first: Answer, second: Answer) -> bool:
    return bool(first.claim and second.claim and first.claim.values == second.claim.values)


def _draws(task: str, answer: Answer, reseeded: Answer | None) -> Verdict:
    """A method that draws and does not say so is asked with one seed in a run, whatever `--seeds` says."""
    if reseeded is None:
        return Verdict(DRAWS, task, kept=True, detail="declared seeded")
    if reseeded.claim is None:
        return Verdict(DRAWS, task, kept=False, detail=f"with another seed: {reseeded.report.text}")
    advice = "another seed gives another answer: declare seeded=True, so that --seeds asks it with several"
    kept = _same(answer, reseeded)
    return Verdict(DRAWS, task, kept=kept, detail="" if kept else advice)


def _cost(task: str, report: Report, claim: Claim) -> Verdict:
    cost = f"{claim.n_rollouts} rollouts, {claim.n_gradients} gradients, {report.seconds:.2f} s"
    uncounted = []
    # A machine that is built for the first of them runs its reference as well.
    if report.n_rollouts > claim.n_rollouts + bool(claim.n_rollouts):
        uncounted.append(f"the machine ran {report.n_rollouts}")
    if report.n_frames_outside:
        uncounted.append(f"{report.n_frames_outside} frames were played outside of rollouts")
    advice = f", but {' and '.join(uncounted)}; measure with task.rollout and access='world'" if uncounted else ""
    return Verdict(COUNTED, task, kept=not uncounted, detail=cost + advice)
