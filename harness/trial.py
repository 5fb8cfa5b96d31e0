"""What `veritari methods check` asks, in processes as in a run: effects of one game-state, then answers of a method."""

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from harness import work
from harness.errors import WrongUsage
from harness.guard import Report
from harness.pool import Job, Limits, run_jobs
from harness.units import Claim
from harness.work import Asked, GameState, Randomisation
from methods.method import Subject
from oracle.effects import AnswerKey
from oracle.readout import NAME as READOUT
from oracle.scrambled import OtherProgram
from oracle.task import Question

# Enough to tell a claim that stays from one that changes; scrambling seeds are tried from 0 on.
N_PROGRAMS = 4
MOST_PROGRAMS = 32

Key = TypeVar("Key")


@dataclass(frozen=True)
class Trial:
    """What a method is tried on; `subjects` is None for all that it explains."""

    protocol_name: str
    rom_id: str
    seed: int
    subjects: tuple[Subject, ...] | None = None
    network: str = READOUT


class Result(NamedTuple):
    """How a unit went, and what it wrote; nothing where the report is not ok."""

    report: Report
    content: bytes


class Answer(NamedTuple):
    """What came of asking once; no claim where the report is not ok."""

    report: Report
    claim: Claim | None


class Measured(NamedTuple):
    """The answer keys of a game-state by subject, and the layers of the network from the output back to the input."""

    keys: dict[Subject, AnswerKey]
    layers: tuple[str, ...]


def results(wanted: Mapping[Key, tuple[Callable[..., Report], tuple[Any, ...]]], limits: Limits) -> dict[Key, Result]:
    """Run functions of `harness.work` in one pool; each is given the path of its answer after its arguments."""
    with tempfile.TemporaryDirectory(prefix="veritari-") as folder:
        files = {key: Path(folder) / str(index) for index, key in enumerate(wanted)}
        jobs = {
            key: Job(function, (*arguments, str(files[key])), pid_file=Path(f"{files[key]}.pid"))
            for key, (function, arguments) in wanted.items()
        }
        reports: dict[Job, Report] = {}
        run_jobs(list(jobs.values()), limits, reports.__setitem__)
        return {key: _result(reports[job], files[key]) for key, job in jobs.items()}


def _result(report: Report, file: Path) -> Result:
    return Result(report, file.read_bytes() if report.status == "ok" else b"")


def measure_subjects(trial: Trial, subjects: Iterable[Subject], limits: Limits) -> Measured:
    """Measure the first game-state on each subject; nothing of it is left where a method could find it.

    Raises:
        WrongUsage: the network can't be built or asked, or the game-state can't be measured.
    """
    keys: dict[Subject, AnswerKey] = {}
    layers: tuple[str, ...] = ()
    with tempfile.TemporaryDirectory(prefix="veritari-") as store:
        networks = {subject: trial.network if subject == "network" else "" for subject in subjects}
        states = {each: GameState(trial.protocol_name, trial.rom_id, 0, network) for each, network in networks.items()}
        wanted = {each: (work.measure_state, (state, store)) for each, state in states.items()}
        for subject, result in results(wanted, limits).items():
            keys[subject] = AnswerKey.from_bytes(_content(result, networks[subject], trial), subject)
    if "network" in keys:
        found = results({"layers": (work.list_layers, (trial.network, trial.rom_id))}, limits)["layers"]
        layers = tuple(name or "the network itself" for name in json.loads(_content(found, trial.network, trial)))
    return Measured(keys, layers)


def _content(result: Result, network: str, trial: Trial) -> bytes:
    if result.report.status != "ok":
        raise WrongUsage(f"{'--network' if network else f'--game {trial.rom_id}'}: {result.report.text}")
    return result.content


def ask_twice(asked: Iterable[Asked], limits: Limits) -> dict[Asked, tuple[Answer, Answer]]:
    """Both answers to each question: the second in another process, where others were asked before it."""
    forth = list(asked)
    first, second = (
        answers({each: (work.claim, tuple(each)) for each in order}, limits) for order in (forth, forth[::-1])
    )
    return {each: (first[each], second[each]) for each in forth}


def ask_randomised(
    wanted: Iterable[tuple[Asked, Randomisation]], limits: Limits
) -> dict[tuple[Asked, Randomisation], Answer]:
    """The answers about networks whose top layers have random weights."""
    return answers({each: (work.claim_randomised, each) for each in wanted}, limits)


def measure_programs(
    question_path: str, outputs_it_tells: Callable[[OtherProgram], Iterable[str]], limits: Limits
) -> dict[str, list[OtherProgram]]:
    """For each output the first `N_PROGRAMS` scrambled programs that run and tell about it; fewer where most do not.

    `outputs_it_tells` says about which outputs a program tells. One that hangs or crashes takes its worker with it, and
    no more. An output that no program tells about is left out, after `MOST_PROGRAMS` were tried.
    """
    telling: dict[str, list[OtherProgram]] = {}
    n_outputs = len(Question.from_bytes(Path(question_path).read_bytes(), question_path).outputs)
    for first in range(0, MOST_PROGRAMS, N_PROGRAMS):
        tried = range(first, first + N_PROGRAMS)
        wanted = {program: (work.measure_scrambled, (question_path, program)) for program in tried}
        for report, content in results(wanted, limits).values():
            if report.status == "ok":
                program = OtherProgram.model_validate_json(content)
                for output in outputs_it_tells(program):
                    telling.setdefault(output, []).append(program)
        if len(telling) == n_outputs and min(map(len, telling.values())) >= N_PROGRAMS:
            break
    return {output: programs[:N_PROGRAMS] for output, programs in telling.items()}


def ask_scrambled(wanted: Iterable[tuple[Asked, int]], limits: Limits) -> dict[tuple[Asked, int], Answer]:
    """The answers about the same state under other programs."""
    return answers({each: (work.claim_scrambled, each) for each in wanted}, limits)


def answers(wanted: Mapping[Key, tuple[Callable[..., Report], tuple[Any, ...]]], limits: Limits) -> dict[Key, Answer]:
    """As `results`, of functions that write a claim."""
    return {
        key: Answer(report, Claim.model_validate_json(content) if report.status == "ok" else None)
        for key, (report, content) in results(wanted, limits).items()
    }
