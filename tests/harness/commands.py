"""What the end-to-end tests share: the command in a process of its own, runs that several tests look at, plugins."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import jaxtyping
import pytest
from filelock import FileLock

from harness import cli

PLUGINS = Path(__file__).parent / "plugins"
COMMAND = (sys.executable, "-c", "from harness.cli import main; main()")
# What may differ between equal runs.
NOT_COMPARED = {"manifest.json", "timings.parquet"}
# Far more than any command here takes: a process that is waited for that long hangs.
PATIENCE_SECONDS = 120
PROGRESS = re.compile(r"veritari |(measuring|asking|verifying) .*: \d+/\d+$|verifying: \d+/\d+$")


@dataclass(frozen=True)
class Finished:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """The lines on stderr that are no progress: errors, warnings, tracebacks."""
        return [line for line in self.err.splitlines() if not PROGRESS.match(line)]


class SharedRun(NamedTuple):
    """A run that several tests look at, and the command that made it."""

    path: Path
    store: Path
    finished: Finished


def start(*arguments: object, file_limit: int | None = None, **environment: str) -> subprocess.Popen:
    """Start `veritari`, alone in a process group; no file it writes may be larger than `file_limit` bytes."""

    def limit_files() -> None:
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100", **environment},
        start_new_session=True,
        preexec_fn=limit_files,  # noqa: PLW1509  # this process starts no thread that holds a lock
    )


def finish(process: subprocess.Popen) -> Finished:
    """Wait for a command; one that hangs is killed with all its processes, and fails the test."""
    try:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"the command hangs; it printed: {out}{err}") from None
    return Finished(process.returncode, out, err)


def veritari(*arguments: object, file_limit: int | None = None, **environment: str) -> Finished:
    """Run `veritari` to its end."""
    return finish(start(*arguments, file_limit=file_limit, **environment))


def wait_for_end_of_group(group):
    """Ask for a process group until there is none; the fork server needs a moment to see that it is alone."""
    for _ in range(100):
        os.killpg(group, 0)
        time.sleep(0.1)


def in_this_process(monkeypatch, capfd, *arguments: object) -> Finished:
    """Run `veritari` here, where everything is imported already."""
    # Typer hands on a context of its own copy of click, which is no `typer.Context` to a type checker.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    monkeypatch.setattr(sys, "argv", ["veritari", *map(str, arguments)])
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    signal.signal(signal.SIGTERM, before)
    return Finished(stop.value.code, *capfd.readouterr())


def plugin(*names: str) -> str:
    """Specifications of methods in `plugins/`: `plugin("dying:exits_with_0")`; others stay as they are."""
    parts = (name.partition(":") for name in names)
    return ",".join(f"{PLUGINS / file}.py:{name}" if name else file for file, _, name in parts)


def shared(tmp_path_factory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills once, whatever number of processes run the tests."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder = root / name
    with FileLock(root / f"{name}.lock"):
        if not (root / f"{name}.made").exists():
            make(folder)
            (root / f"{name}.made").touch()
    return folder


def shared_run(tmp_path_factory, name: str, *arguments: str, **environment: str) -> SharedRun:
    """`veritari run` of ram-v1, the quicker protocol, with `arguments`; once for all tests."""

    def make(folder: Path) -> None:
        folder.mkdir()
        finished = veritari(
            "run",
            "--protocol",
            "ram-v1",
            "--out",
            folder / "run",
            "--store",
            folder / "store",
            *arguments,
            **environment,
        )
        (folder / "finished.json").write_text(json.dumps(asdict(finished)), encoding="utf-8")

    folder = shared(tmp_path_factory, name, make)
    printed = json.loads((folder / "finished.json").read_text(encoding="utf-8"))
    return SharedRun(folder / "run", folder / "store", Finished(**printed))


def two_games(tmp_path_factory) -> SharedRun:
    """The default methods on two games, by two workers: what a clean run looks like."""
    return shared_run(tmp_path_factory, "two_games", "--games", "pong,breakout", "--workers", "2")


def tables(path: Path) -> dict[str, bytes]:
    """Every file of a run that must be the same in an equal run; hidden ones are a lock, or half-written."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name not in NOT_COMPARED and not file.name.startswith(".")
    }


def n_units(path: Path) -> int:
    """How many units of a run are finished."""
    return len([file for file in (path / "units").rglob("*.json") if not file.name.startswith(".")])
