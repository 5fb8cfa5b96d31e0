"""The Python interface: the same as the command line, with DataFrames.

    from harness.api import run, load_run

    result = run(games="core", methods="default,my_method.py:my_method")
    result.leaderboard
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from os import cpu_count
from pathlib import Path

import pandas as pd

from harness.errors import BadRun
from harness.leaderboard import Board, build_board, csv_text, json_text, markdown_text
from harness.manifest import Manifest, Settings
from harness.plan import plan_run, require_same_plugins
from harness.pool import Limits
from harness.records import Tables, parquet_bytes
from harness.run_directory import RunDirectory
from harness.runner import Progress, Runner
from oracle.protocol import DEFAULT_PROTOCOL
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
    """A run on disk, finished or not; its tables are DataFrames."""

    directory: RunDirectory

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.directory.path

    @cached_property
    def manifest(self) -> Manifest:
        """Settings, versions and costs."""
        return self.directory.manifest()

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self.directory, self.manifest)

    @cached_property
    def records(self) -> pd.DataFrame:
        """One row per task and method."""
        return self._tables.records

    @cached_property
    def claims(self) -> pd.DataFrame:
        """One row per task, method and cause."""
        return self._tables.claims

    @cached_property
    def curves(self) -> pd.DataFrame:
        """One row per task, method, curve and step."""
        return self._tables.curves

    @cached_property
    def failures(self) -> pd.DataFrame:
        """One row per unit without a result."""
        return self._tables.failures

    @cached_property
    def board(self) -> Board:
        """Leaderboard, table of games, and what is excluded."""
        return build_board(self.records, self.manifest)

    @property
    def leaderboard(self) -> pd.DataFrame:
        """One row per method."""
        return self.board.leaderboard

    @property
    def per_game(self) -> pd.DataFrame:
        """One row per method and game."""
        return self.board.per_game


def run(
    *,
    protocol: str = DEFAULT_PROTOCOL,
    games: str = "scored",
    methods: str = "default",
    seed: int = 0,
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
    settings = Settings(protocol=protocol, games=games, methods=methods, seed=seed)
    with directory.locked():
        manifest = plan_run(settings, limits)
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
        return write_tables(Run(directory))


def write_tables(finished: Run) -> Run:
    """Write the tables of a run from its units."""
    directory = finished.directory
    tables = {
        "records.parquet": parquet_bytes(finished.records),
        "claims.parquet": parquet_bytes(finished.claims),
        "curves.parquet": parquet_bytes(finished.curves),
        "leaderboard.csv": csv_text(finished.leaderboard),
        "leaderboard.json": json_text(finished.board, finished.manifest),
        "leaderboard.md": markdown_text(finished.board),
        "per_game.csv": csv_text(finished.per_game),
        "failures.csv": csv_text(finished.failures),
    }
    for name, content in tables.items():
        with _room_to_write(directory):
            directory.write(name, content)
    return finished


def _finish(runner: Runner) -> Run:
    runner.run()
    statuses = Run(runner.directory).records["status"].value_counts()
    runner.manifest.costs.statuses = {str(name): int(count) for name, count in statuses.items()}
    runner.directory.write_manifest(runner.manifest)
    runner.directory.finish_timings()
    return write_tables(Run(runner.directory))


def _default_directory(protocol: str) -> Path:
    return Path("results/runs") / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{protocol}"


@contextmanager
def _room_to_write(directory: RunDirectory) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadRun(
            f"{directory.path}: expected room to write, got {error.strerror}; nothing is lost: "
            f"make room, then veritari rescore {directory.path}"
        ) from error
