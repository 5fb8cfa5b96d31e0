"""Run units in worker processes: in parallel, each with a time limit, and none able to take another one down.

Processes are started by a fork server (spawned where there is none): a plain fork after torch was imported can hang.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from harness import work
from harness.guard import Report, prepare_worker
from oracle.emulator import silenced_stderr

POLL_SECONDS = 0.2
NOT_STARTED = "no worker process could be started for it; a script must call run() under: if __name__ == '__main__'"


@dataclass(frozen=True)
class Job:
    """A function of `harness.work` with its arguments; `pid_file` is where it says which process it runs in."""

    function: Callable[..., Report]
    arguments: tuple[Any, ...]
    pid_file: Path | None = None


@dataclass(frozen=True)
class Limits:
    """How many processes at once, and what one unit may take."""

    workers: int
    timeout_seconds: float
    memory_gib: float

    def alone(self) -> "Limits":
        """The same for a single process."""
        return replace(self, workers=1)


def process_context() -> BaseContext:
    """How worker processes are started here."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # Imported once, in the server: a new worker is ready in milliseconds.
    context.set_forkserver_preload([work.__name__])
    # The server and its children are born without a terminal: one that is stopped while it starts would print there.
    with silenced_stderr():
        forkserver.ensure_running()
    return context


def run_jobs(jobs: Sequence[Job], limits: Limits, on_done: Callable[[Job, Report], None]) -> None:
    """Run all jobs; `on_done` is called in this process for each as it ends, whatever happened to it."""
    waiting = list(jobs)
    # A pool breaks only if its pipe does. What it had not finished gets a pool of its own, one by one, so that a job
    # which breaks pools is found out.
    finished = _run_in_one_pool(waiting, limits, on_done)
    for job in waiting:
        if job not in finished and not _run_in_one_pool([job], limits.alone(), on_done):
            on_done(job, Report("failed", NOT_STARTED, 0.0))


def run_job(job: Job, limits: Limits) -> Report:
    """Run one job in a process of its own."""
    reports: list[Report] = []
    run_jobs([job], limits.alone(), lambda _, report: reports.append(report))
    return reports[0]


def _run_in_one_pool(jobs: Sequence[Job], limits: Limits, on_done: Callable[[Job, Report], None]) -> set[Job]:
    finished: set[Job] = set()
    if not jobs:
        return finished
    with _pool(min(limits.workers, len(jobs)), limits.memory_gib) as pool:
        for job in jobs:
            if job.pid_file:
                job.pid_file.unlink(missing_ok=True)  # of an earlier attempt
        pending = {pool.schedule(job.function, job.arguments, timeout=limits.timeout_seconds): job for job in jobs}
        while pending:
            done, _ = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            _cancel_those_that_left(pending)
            for future in [each for each in pending if each in done]:
                job = pending.pop(future)
                report = _report(future, limits)
                if report is None:
                    return finished
                on_done(job, report)
                finished.add(job)
    return finished


@contextmanager
def _pool(workers: int, memory_gib: float) -> Iterator[ProcessPool]:
    pool = ProcessPool(
        max_workers=workers, initializer=prepare_worker, initargs=(memory_gib,), context=process_context()
    )
    try:
        yield pool
    finally:
        pool.stop()
        pool.join()


def _report(future: "ProcessFuture[Report]", limits: Limits) -> Report | None:
    """What became of a job; None if its pool broke."""
    try:
        return future.result()
    except TimeoutError:
        return Report("timeout", f"no answer within {limits.timeout_seconds:g} s", limits.timeout_seconds)
    except ProcessExpired as error:
        return Report("failed", f"the process ended ({_exit_words(error.exitcode)})", 0.0)
    except CancelledError:
        return Report("failed", "the process ended (exit code 0)", 0.0)
    except BrokenProcessPool:
        return None
    except Exception as error:  # noqa: BLE001  # whatever a process managed to send instead of a report
        return Report("failed", f"the process sent no report but {type(error).__name__}", 0.0)


def _exit_words(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _cancel_those_that_left(pending: dict["ProcessFuture[Report]", Job]) -> None:
    """Give up on jobs whose process left without a word: pebble does not notice an exit code of 0."""
    for future, job in pending.items():
        if job.pid_file and future.running() and _is_gone(job.pid_file):
            # It may have answered just before it left.
            time.sleep(POLL_SECONDS)
            if not future.done() and _is_gone(job.pid_file):
                future.cancel()


def _is_gone(pid_file: Path) -> bool:
    try:
        os.kill(int(pid_file.read_text(encoding="utf-8")), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False
