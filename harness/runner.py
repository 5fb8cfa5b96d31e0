"""A run from its settings to its tables: plan the units, run what is missing, score from files.

Three passes, each of many small units that are stored as they finish: measure every game-state, ask every method about
every task (each method in processes of its own, which never see effects), measure the curves of every claim.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from harness import work
from harness.controls import CONTROLS
from harness.errors import BadRun
from harness.guard import Report
from harness.judging import JudgedTask, ScoredState, believed_claim, believed_curves, failure
from harness.manifest import Manifest, MethodEntry
from harness.pool import Job, Limits, run_jobs
from harness.projection import on_causes
from harness.run_directory import RunDirectory, Unit
from harness.seeds import seed_of
from harness.units import UNANSWERED, Claim, Curves, OracleOutcome, task_id
from oracle.effects import AnswerKey
from oracle.errors import DamagedFile
from oracle.task import Question

# Answer keys that the judge has in memory at a time.
STATES_KEPT = 4


@runtime_checkable
class Progress(Protocol):
    """What the runner tells while it works."""

    def start(self, what: str, n_units: int) -> None:
        """A pass of `n_units` begins."""

    def advance(self) -> None:
        """One unit is done."""

    def warn(self, text: str) -> None:
        """Something the user should know; the run goes on."""


@dataclass
class Runner:
    """Runs what a manifest asks for and its directory does not have yet."""

    directory: RunDirectory
    manifest: Manifest
    store: Path
    progress: Progress
    retry_failed: bool = False
    _n_rollouts: int = field(default=0, init=False)
    _n_frames: int = field(default=0, init=False)

    def run(self) -> None:
        """All three passes. May be interrupted at any moment and called again."""
        started = time.perf_counter()
        self.directory.begin()
        try:
            with self._new_scratch():
                self._measure_states()
            self._require_effects()
            self._states = list(self._read_scored_states())
            for entry in self.manifest.methods:
                with self._new_scratch():
                    self._ask(entry)
            with self._new_scratch():
                self._measure_curves()
        finally:
            self._add_costs(time.perf_counter() - started)

    @contextmanager
    def _new_scratch(self) -> Iterator[None]:
        """A folder for the files of one pass, or of one method: nobody finds there what others left."""
        with tempfile.TemporaryDirectory(prefix="veritari-") as scratch:
            self._scratch = Path(scratch)
            yield

    # --- the oracle ---------------------------------------------------------------------------------------------

    def _measure_states(self) -> None:
        missing = [outcome for outcome in self._game_states() if self._state_is_missing(outcome)]
        jobs = {self._oracle_job(outcome): outcome for outcome in missing}

        def done(job: Job, report: Report) -> None:
            outcome = jobs[job]
            if report.status == "ok":
                archive = self._archive_path(outcome)
                self.directory.write_answer_key(outcome, archive.read_bytes())
            self._finish_state(outcome, report)

        self._run("measuring effects", list(jobs), done)

    def _require_effects(self) -> None:
        """Stop where no effect at all could be measured: something is wrong with the installation or the script."""
        stored = [self.directory.unit(outcome) for outcome in self._game_states()]
        failures = [outcome for outcome in stored if outcome is not None and outcome.status in UNANSWERED]
        if failures and len(failures) == len(stored):
            # A network that was mended is another one, which no run is continued with.
            of_user = failures[0].subject == "network" and self.manifest.network.file_sha256
            resume = f"continue with --resume {self.directory.path} --retry-failed"
            raise BadRun(
                f"effects: expected some, got none for {len(failures)} game-states, the first: {failures[0].reason}; "
                f"mend it and {'start a new run' if of_user else resume}"
            )

    def _game_states(self) -> Iterator[OracleOutcome]:
        for subject in self.manifest.settings.subjects:
            for game in self.manifest.games:
                for state in range(self.manifest.n_states):
                    if subject not in game.exclusions:
                        yield OracleOutcome(subject=subject, game=game.rom_id, state=state, status="ok")

    def _state_is_missing(self, outcome: OracleOutcome) -> bool:
        if self._is_missing(outcome):
            return True
        stored = self.directory.unit(outcome)
        return stored is not None and stored.status == "ok" and self._answer_key(outcome) is None

    def _oracle_job(self, outcome: OracleOutcome) -> Job:
        protocol, network = self.manifest.settings.protocol, self.manifest.network_of(outcome.subject)
        what = work.GameState(protocol, outcome.game, outcome.state, network)
        return Job(work.measure_state, (what, str(self.store), str(self._archive_path(outcome))))

    def _archive_path(self, outcome: OracleOutcome) -> Path:
        return self._scratch / f"effects-{outcome.subject}-{outcome.game}-{outcome.state}.npz"

    def _finish_state(self, outcome: OracleOutcome, report: Report) -> None:
        answer_key = self._answer_key(outcome) if report.status == "ok" else None
        if report.status == "excluded":
            finished = outcome.model_copy(update={"status": "excluded", "reason": report.text})
        elif answer_key is None:
            finished = outcome.model_copy(update={"status": failure(report), "reason": f"oracle: {report.text}"})
        else:
            if report.text:
                self.progress.warn(report.text)
            finished = outcome.model_copy(
                update={
                    "status": "excluded" if answer_key.exclusion else "ok",
                    "reason": answer_key.exclusion,
                    "n_frames": answer_key.n_frames,
                    "n_rollouts": answer_key.n_rollouts,
                }
            )
        self._store(finished, report.seconds)

    def _answer_key(self, outcome: OracleOutcome) -> AnswerKey | None:
        """The measured effects; None if they are missing or damaged, which is told."""
        try:
            return self.directory.answer_key(outcome.subject, outcome.game, outcome.state)
        except DamagedFile as error:
            self.progress.warn(str(error))
            return None

    def _read_scored_states(self) -> Iterator[ScoredState]:
        # A method's tasks stand in the order of the states: more than a few need not be kept.
        answer_key = lru_cache(maxsize=STATES_KEPT)(self.directory.answer_key)
        for outcome in self._game_states():
            stored = self.directory.unit(outcome)
            if stored is not None and stored.status == "ok":
                where = (outcome.subject, outcome.game, outcome.state)
                yield ScoredState(answer_key(*where).question, partial(answer_key, *where))

    # --- the methods --------------------------------------------------------------------------------------------

    def _write_questions(self) -> None:
        """One file per game-state that holds what a method may know: workers are given nothing else."""
        for state in self._states:
            self._question_path(state.question).write_bytes(state.archive)

    def _question_path(self, question: Question) -> Path:
        return self._scratch / f"question-{question.subject}-{question.game}-{question.state}.npz"

    def _ask(self, entry: MethodEntry) -> None:
        if entry.label in CONTROLS:
            self._claim_control(entry)
        elif entry.broken:
            self._fail_all(entry)
        else:
            self._write_questions()
            self._ask_in_workers(entry)

    def _fail_all(self, entry: MethodEntry) -> None:
        for task in self._tasks_of(entry):
            self._store(task.claim.model_copy(update={"status": "failed", "reason": entry.broken}), 0.0)

    def _claim_control(self, entry: MethodEntry) -> None:
        settings = self.manifest.settings
        for task in self._tasks_of(entry):
            if self._is_missing(task.claim):
                of = task.claim.task
                seed = seed_of(settings.seed + of.repeat, settings.protocol, of.game, of.state, of.output, entry.label)
                values = CONTROLS[entry.label](task.truth, generator=np.random.default_rng(seed))
                self._store(task.claim.model_copy(update={"values": tuple(values.tolist())}), 0.0)

    def _tasks_of(self, entry: MethodEntry) -> Iterator[JudgedTask]:
        for state in self._states:
            if state.question.subject not in entry.subjects:
                continue
            for row, output in enumerate(state.question.outputs):
                for repeat in self.manifest.repeats(entry):
                    claim = Claim(task=task_id(state.question, output, repeat), method=entry.label, status="ok")
                    yield JudgedTask(state, row, claim)

    def _ask_in_workers(self, entry: MethodEntry) -> None:
        jobs: dict[Job, tuple[JudgedTask, Path]] = {}
        for task in self._tasks_of(entry):
            if self._is_missing(task.claim) or self._lacks_map(entry, task.claim):
                answer = self._scratch / task.claim.filename.replace("/", "-")
                path, seed = str(self._question_path(task.question)), self._seed(task.claim)
                arguments = (entry.spec, path, task.claim.task.output, seed, str(answer))
                jobs[Job(work.claim, arguments, pid_file=Path(f"{answer}.pid"))] = (task, answer)

        def done(job: Job, report: Report) -> None:
            task, answer = jobs[job]
            self._store(self._projected(entry, task, report, answer), report.seconds)

        self._run(f"asking {entry.label}", list(jobs), done)

    def _seed(self, claim: Claim) -> int:
        return self.manifest.settings.seed + claim.task.repeat

    def _lacks_map(self, entry: MethodEntry, claim: Claim) -> bool:
        """Whether the claim is there and the pixel map behind it is not."""
        stored = self.directory.unit(claim)
        if stored is None or stored.status != "ok" or entry.domain_on(claim.task.subject) != "pixels":
            return False
        try:
            return self.directory.pixel_map(claim) is None
        except DamagedFile as error:
            self.progress.warn(str(error))
            return True

    def _projected(self, entry: MethodEntry, task: JudgedTask, report: Report, answer: Path) -> Claim:
        """The claim per cause of what a worker left; a pixel map is kept beside it."""
        frames, domain = task.question.frames, entry.domain_on(task.question.subject)
        if domain != "pixels":
            return believed_claim(task.claim, report, answer, len(task.question.causes))
        given = believed_claim(task.claim, report, answer, frames.size, is_map=True)
        if given.status != "ok":
            return given
        self.directory.write_map(given, np.array(given.values).reshape(frames.shape))
        return on_causes(given, task.truth.movement, domain=domain, signed=entry.signed)

    # --- the curves ---------------------------------------------------------------------------------------------

    def _measure_curves(self) -> None:
        self._write_questions()
        jobs: dict[Job, tuple[JudgedTask, Path]] = {}
        for task in self._tasks_without_curves():
            answer = self._scratch / task.curves.filename.replace("/", "-")
            claim_path = self.directory.unit_path(task.claim)
            seed = self.manifest.settings.seed
            arguments = (str(self._question_path(task.question)), str(claim_path), seed, str(answer))
            jobs[Job(work.curves, arguments)] = (task, answer)

        def done(job: Job, report: Report) -> None:
            task, answer = jobs[job]
            self._store(believed_curves(task, report, answer), report.seconds)

        self._run("measuring curves", list(jobs), done)

    def _tasks_without_curves(self) -> list[JudgedTask]:
        """Those of one game-state stand together, so that a worker boots its machine once."""
        wanted = []
        for task in (task for entry in self.manifest.methods for task in self._tasks_of(entry)):
            answered = self.directory.unit(task.claim)
            if answered is not None and answered.status == "ok" and self._is_missing(task.curves):
                wanted.append(task)
        return sorted(wanted, key=lambda each: (each.question.game, each.question.state))

    # --- all passes ---------------------------------------------------------------------------------------------

    def _is_missing(self, unit: Unit) -> bool:
        stored = self.directory.unit(unit)
        if stored is None and self.directory.unit_path(unit).exists():
            self.progress.warn(f"{self.directory.unit_path(unit)}: damaged; it is done again")
        return stored is None or (self.retry_failed and stored.status in UNANSWERED)

    def _run(self, what: str, jobs: Sequence[Job], done: Callable[[Job, Report], None]) -> None:
        limits = Limits(self.manifest.workers, self.manifest.timeout_seconds, self.manifest.memory_gib)
        self.progress.start(what, len(jobs))

        def advance(job: Job, report: Report) -> None:
            if report.status == "no_room":
                raise self.directory.no_room(report.text)
            self._n_frames += report.n_frames
            self._n_rollouts += report.n_rollouts
            self.manifest.costs.peak_worker_mib = max(self.manifest.costs.peak_worker_mib, report.peak_mib)
            done(job, report)
            self.progress.advance()

        run_jobs(jobs, limits, advance)

    def _store(self, unit: OracleOutcome | Claim | Curves, seconds: float) -> None:
        self.directory.write_unit(unit)
        self.directory.add_timing(unit.filename, seconds)

    def _add_costs(self, seconds: float) -> None:
        costs = self.manifest.costs
        costs.wall_seconds += seconds
        costs.n_frames += self._n_frames
        costs.n_rollouts += self._n_rollouts
        costs.ended = datetime.now(UTC).isoformat(timespec="seconds")
        self.directory.write_manifest(self.manifest)
