"""The Python interface: the same as the command line, with DataFrames.

from harness.api import run, load_run

result = run(games="core", methods="default,my_method.py:my_method")
result.leaderboard
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from os import cpu_count
from pathlib import Path

import pandas as pd

from harness.board_texts import csv_text, json_text, markdown_text
from harness.errors import BadRun, Interrupted
from harness.leaderboard import Board, build_boards, joined
from harness.manifest import Manifest, Settings
from harness.options import DEFAULT_PROTOCOL
from harness.plan import describe_broken_again, parse_subjects, plan_run, require_same_plugins
from harness.pool import Limits
from harness.records import Tables, checksums, parquet_bytes, read_failures, read_parquet
from harness.run_directory import CHECKSUMS, RunDirectory
from harness.runner import Progress, Runner
from oracle.readout import NAME as READOUT
from oracle.store import default_store

DEFAULT_TIMEOUT_SECONDS = 120.0
DEFAULT_MEMORY_GIB = 4.0


class Silent:
    """Progress for those who do not look."""

    def start(self, what: str, n_units: int) -> None:
        """Say nothing."""

    def advance(self) -> None:
        """Say nothing."""

    def warn(self, text: str) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Run:
    """A run on disk; its tables are DataFrames. One that is unfinished has the rows of what is done."""

    directory: RunDirectory
    # Build the tables from the units even where they are written: what scoring again means.
    from_units: bool = False

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.directory.path

    @cached_property
    def manifest(self) -> Manifest:
        """Settings, versions and costs."""
        return self.directory.manifest()

    @property
    def is_finished(self) -> bool:
        """True once all its tables are written."""
        return (self.path / CHECKSUMS).exists()

    @cached_property
    def records(self) -> pd.DataFrame:
        """One row per task and method."""
        return self._table("records")

    @cached_property
    def claims(self) -> pd.DataFrame:
        """One row per task, method and cause."""
        return self._table("claims")

    @cached_property
    def curves(self) -> pd.DataFrame:
        """One row per task, method, curve and step."""
        return self._table("curves")

    @cached_property
    def failures(self) -> pd.DataFrame:
        """One row per unit without a result."""
        if self.is_finished and not self.from_units:
            return read_failures(self.directory)
        return self._tables.failures

    @property
    def missing(self) -> list[str]:
        """What is not done yet, or damaged; empty for a finished run."""
        return self._tables.missing

    def seconds_per_task(self, subject: str, methods: Iterable[str]) -> list[float]:
        """Mean seconds that each method took per task of one subject; NaN where it was not timed."""
        return self.directory.seconds_per_task(subject, methods)

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self.directory, self.manifest)

    def _table(self, name: str) -> pd.DataFrame:
        if self.is_finished and not self.from_units:
            return read_parquet(self.directory, f"{name}.parquet")
        built: pd.DataFrame = getattr(self._tables, name)
        return built

    @cached_property
    def boards(self) -> dict[str, Board]:
        """By subject: leaderboard, table of games, and what is excluded."""
        return build_boards(self.records, self.manifest)

    @property
    def leaderboard(self) -> pd.DataFrame:
        """One row per subject and method. Ranks and means are within a subject."""
        return joined(board.leaderboard for board in self.boards.values())

    @property
    def per_game(self) -> pd.DataFrame:
        """One row per subject, method and game."""
        return joined(board.per_game for board in self.boards.values())


def run(
    *,
    protocol: str = DEFAULT_PROTOCOL,
    games: str = "scored",
    methods: str = "default",
    subject: str = "machine,network",
    network: str = READOUT,
    seed: int = 0,
    seeds: int = 1,
    workers: int | None = None,
    out: Path | str | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    memory_gib: float = DEFAULT_MEMORY_GIB,
    store: Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run methods on games and write a run directory; see `veritari run --help` for the arguments.

    Raises:
        VeritariError: anything the user can mend; whatever was finished by then is kept.
    """
    directory = RunDirectory(Path(out) if out else _default_directory(protocol))
    directory.require_new()
    limits = Limits(workers or cpu_count() or 1, timeout_seconds, memory_gib)
    settings = Settings(
        protocol=protocol,
        games=games,
        methods=methods,
        seed=seed,
        n_seeds=seeds,
        subjects=parse_subjects(subject),
        network=network,
    )
    manifest = plan_run(settings, limits)
    with directory.locked():
        directory.require_new()  # again: another run may have begun it meanwhile
        directory.write_manifest(manifest)
        return _finish(Runner(directory, manifest, store or default_store(), progress or Silent()))


def resume(
    path: Path | str,
    *,
    workers: int | None = None,
    retry_failed: bool = False,
    store: Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """Continue a run where it stopped, with the settings of its manifest.

    Raises:
        BadRun: no run there, other versions or other methods than it was started with.
    """
    directory = RunDirectory(Path(path))
    manifest = directory.manifest()
    manifest.require_same_versions()
    with directory.locked():
        manifest.workers = workers or manifest.workers
        limits = Limits(manifest.workers, manifest.timeout_seconds, manifest.memory_gib)
        require_same_plugins(manifest, limits)
        if retry_failed:
            manifest.methods = describe_broken_again(manifest.methods, limits)
        return _finish(Runner(directory, manifest, store or default_store(), progress or Silent(), retry_failed))


def load_run(path: Path | str) -> Run:
    """A run that is on disk.

    Raises:
        BadRun: there is none, or one of another format.
    """
    loaded = Run(RunDirectory(Path(path)))
    loaded.manifest  # noqa: B018  # read now, so that a wrong path is told here
    return loaded


def rescore(path: Path | str) -> Run:
    """Score stored claims again and write the tables anew; nothing is measured and no method is asked."""
    directory = RunDirectory(Path(path))
    directory.manifest()
    with directory.locked():
        return write_tables(Run(directory, from_units=True))


def write_tables(finished: Run) -> Run:
    """Write the tables of a run from its units."""
    directory = finished.directory
    if missing := finished.missing:
        raise BadRun(
            f"{directory.path}: expected all units, got {len(missing)} missing or damaged, the first: {missing[0]}; "
            f"continue with: veritari run --resume {shlex.quote(str(directory.path))}"
        )
    texts = {
        "leaderboard.csv": csv_text(finished.leaderboard),
        "leaderboard.json": json_text(finished.boards.values(), finished.manifest),
        "leaderboard.md": markdown_text(finished.boards.values()),
        "per_game.csv": csv_text(finished.per_game),
        "comparisons.csv": csv_text(joined(board.comparisons for board in finished.boards.values())),
        "families.csv": csv_text(joined(board.families for board in finished.boards.values())),
        "failures.csv": csv_text(finished.failures),
    }
    tables = {f"{name}.parquet": parquet_bytes(getattr(finished, name)) for name in ("records", "claims", "curves")}
    tables |= {name: text.encode() for name, text in texts.items()}
    for name, content in tables.items():
        directory.write(name, content)
    directory.write(CHECKSUMS, checksums(tables))
    return finished


def _finish(runner: Runner) -> Run:
    directory = runner.directory
    try:
        runner.run()
        statuses = Run(directory, from_units=True).records["status"].value_counts()
        runner.manifest.costs.statuses = {str(name): int(count) for name, count in statuses.items()}
        directory.write_manifest(runner.manifest)
        directory.finish_timings()
        return write_tables(Run(directory, from_units=True))
    except KeyboardInterrupt as stop:
        path = shlex.quote(str(directory.path))
        raise Interrupted(
            f"interrupted; what was finished is kept: continue with: veritari run --resume {path}"
        ) from stop


def _default_directory(protocol: str) -> Path:
    return Path("results/runs") / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{protocol}"
