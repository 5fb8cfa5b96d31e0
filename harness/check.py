"""`veritari methods check SPEC`: does a method keep the contract? What a plugin author runs first."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from games.catalog import game
from harness.errors import WrongUsage
from harness.guard import Report
from harness.manifest import SUBJECTS, MethodEntry
from harness.networks import network_exclusion
from harness.plan import describe_methods
from harness.pool import Limits
from harness.sanity import N_DRAWS, STILL_ALIKE, CurvePoint, curve_point, depths, follows_weights
from harness.scores import is_constant
from harness.trial import Answer, Measured, Trial, ask_randomised, ask_twice, measure_subjects
from harness.units import Claim
from harness.work import Asked, Randomisation
from methods.method import Subject
from oracle.protocol import protocol

ANSWERS = "answers with one finite number each"
UNCHANGED = "leaves its task unchanged"
SAME = "same answer for the same generator"
UNTOUCHED = "leaves the global generators alone"
COUNTED = "measures within its budget"
DEPENDS = "its map depends on the network's weights"
# How an error of ours begins, with the requirement that was not kept; any other text is an answer that did not come.
BROKEN = {"task: ": UNCHANGED, "read: ": UNCHANGED, "network: ": UNCHANGED, "rollouts: ": COUNTED}


@dataclass(frozen=True)
class Verdict:
    """One requirement of the contract on one task."""

    requirement: str
    task: str
    kept: bool
    detail: str


@dataclass(frozen=True)
class Findings:
    """What came of a check: the verdicts, and how maps of networks change while weights are randomised."""

    verdicts: tuple[Verdict, ...]
    randomisation: tuple[CurvePoint, ...] = ()


def check_method(spec: str, trial: Trial, limits: Limits) -> Findings:
    """Describe a method, ask it twice about every output of one game-state, then about networks that forget.

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
    declined = [_not_applicable(f"{trial.rom_id} {each}", reasons[each]) for each in wanted if reasons[each]]
    measured = measure_subjects(trial, [each for each in wanted if not reasons[each]], limits)
    declined += [_not_applicable(task, reason) for task, reason in _unmet(measured).items()]
    found = _ask(entry, trial.seed, measured, limits)
    return Findings((described, *declined, *found.verdicts), found.randomisation)


def _exclusions(trial: Trial) -> dict[Subject, str]:
    played = game(trial.rom_id)
    by_protocol = protocol(trial.protocol_name).exclusion(played)
    return {"machine": by_protocol, "network": by_protocol or network_exclusion(trial.network, played)}


def _not_applicable(task: str, reason: str) -> Verdict:
    return Verdict("applies", task, kept=True, detail=f"not applicable: {reason}")


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
        verdicts = [verdict for asked, task in tasks.items() for verdict in _verdicts(task, answers[asked])]
        maps = {
            asked: claim
            for asked, (answer, again) in answers.items()
            if (claim := answer.claim) and again.claim and entry.domain_on(claim.task.subject) == "pixels"
        }
        curves = _randomise(maps, tasks, measured.layers, limits)
    return Findings((*verdicts, *curves.verdicts), curves.randomisation)


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


def _verdicts(task: str, answers: tuple[Answer, Answer]) -> list[Verdict]:
    for report in (answer.report for answer in answers):
        if report.status == "not_applicable":
            return [_not_applicable(task, report.text)]
        if report.status != "ok":
            requirement = next((each for start, each in BROKEN.items() if report.text.startswith(start)), ANSWERS)
            return [Verdict(requirement, task, kept=False, detail=report.text)]
    (report, first), (report_again, second) = answers
    if first is None or second is None:
        raise WrongUsage(f"{task}: expected a claim in its file, got none; run the check again")
    numbers = "causes" if first.task.subject == "machine" else "numbers"
    named = f"{sum(value != 0 for value in first.values)} of {len(first.values)} {numbers} named"
    same = first.values == second.values
    advice = "" if same else "two answers differ: draw from `generator` only"
    moved = report.text or report_again.text
    return [
        Verdict(ANSWERS, task, kept=True, detail=named),
        Verdict(SAME, task, kept=same, detail=advice),
        Verdict(UNCHANGED, task, kept=True, detail=""),
        Verdict(UNTOUCHED, task, kept=not moved, detail=moved),
        _cost(task, report, first),
    ]


def _cost(task: str, report: Report, claim: Claim) -> Verdict:
    cost = f"{claim.n_rollouts} rollouts, {claim.n_gradients} gradients, {report.seconds:.2f} s"
    # A machine that is built for the first of them runs its reference as well.
    if report.n_rollouts <= claim.n_rollouts + bool(claim.n_rollouts):
        return Verdict(COUNTED, task, kept=True, detail=cost)
    uncounted = f"the machine ran {report.n_rollouts}; measure with task.rollout and access='world'"
    return Verdict(COUNTED, task, kept=False, detail=f"{cost}, but {uncounted}")


def _randomise(
    maps: Mapping[Asked, Claim], tasks: Mapping[Asked, str], layers: Sequence[str], limits: Limits
) -> Findings:
    """Ask about every map again while the network forgets one layer after the other."""
    steps = [Randomisation(*step) for step in product(depths(len(layers)), range(N_DRAWS))]
    answers = ask_randomised(product(maps, steps), limits)
    curves = [
        _curve(tasks[asked], claim, layers, {step: answers[asked, step] for step in steps})
        for asked, claim in maps.items()
        if steps
    ]
    return Findings(
        tuple(verdict for curve in curves for verdict in curve.verdicts),
        tuple(point for curve in curves for point in curve.randomisation),
    )


def _curve(task: str, trained: Claim, layers: Sequence[str], answers: Mapping[Randomisation, Answer]) -> Findings:
    maps: dict[int, list[np.ndarray]] = {}
    for step, answer in answers.items():
        if answer.claim is None:
            reason = f"with random weights down to {layers[step.n_layers - 1]}: {answer.report.text}"
            return Findings((Verdict(DEPENDS, task, kept=False, detail=reason),))
        maps.setdefault(step.n_layers, []).append(np.array(answer.claim.values))
    known = np.array(trained.values)
    points = tuple(curve_point(trained.task.output, layers[depth - 1], known, maps[depth]) for depth in maps)
    kept = follows_weights(points[-1], known, maps[max(maps)])
    detail = _in_short(points) + ("; the map of the trained network is constant" if is_constant(known) else "")
    return Findings((Verdict(DEPENDS, task, kept=kept, detail=detail),), points)


def _in_short(points: Sequence[CurvePoint]) -> str:
    correlations = " ".join(f"{point.absolute:.2f}" for point in points)
    layers, limit = f"{points[0].layer} .. {points[-1].layer}", f"kept if the last is below {STILL_ALIKE}"
    return f"rank correlation {correlations} with random weights down to {layers}; {limit}"
