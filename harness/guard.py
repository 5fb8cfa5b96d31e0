"""What keeps a worker process and its neighbours safe from what runs in it: limits, and reports in plain text."""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch

from games.errors import VeritariError
from methods.method import NotApplicable
from methods.registry import BrokenPlugin
from oracle.emulator import Emulator
from oracle.errors import InvalidState
from oracle.rollout import ExactRollouts

LONGEST_REASON = 500
GIB = 2**30
KIB_PER_MIB = 1024


class Report(NamedTuple):
    """How a unit went.

    `text` is a reason or a warning in one line, `peak_mib` the most memory that its process ever held, `n_frames` and
    `n_rollouts` what was emulated for it, `n_frames_outside` the frames of these that no exact rollout played.
    """

    status: str
    text: str
    seconds: float
    peak_mib: float = 0.0
    n_frames: int = 0
    n_rollouts: int = 0
    n_frames_outside: int = 0


class NoRoom(Exception):
    """An answer of ours can't be written: the disk is full, or a quota is used up."""


def prepare_worker(memory_gib: float) -> None:
    """Make a new worker process ready: quiet, one torch thread, limited memory."""
    sink = os.open(os.devnull, os.O_RDWR)
    # File descriptors, not sys.stdout: the emulator and plugins write from C as well.
    for descriptor in (0, 1, 2):
        os.dup2(sink, descriptor)
    torch.set_num_threads(1)
    # The command line names the run and the store, which are no business of a method.
    sys.argv[1:] = []
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = int(memory_gib * GIB)
    # Nobody may go above a hard limit that is there already.
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def ended_after(cpu_seconds: float) -> Iterator[None]:
    """End this process if the block computes for longer, in C as well: its own default for the signal is to die."""
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def sign(answer: Path) -> None:
    """Say beside the answer which process works on it, so that its leaving without a word can be noticed."""
    write(Path(f"{answer}.pid"), str(os.getpid()))


def write(answer: Path, content: str | bytes) -> None:
    """Leave an answer for the parent.

    Raises:
        NoRoom: it can't be written.
    """
    try:
        answer.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise NoRoom(error.strerror) from error


def guarded(work: Callable[[], str], refused: tuple[type[VeritariError], ...] = ()) -> Report:
    """Do the work and report how it went, whatever it raises; `refused` are errors of the user's own specification."""
    started, before = time.perf_counter(), _emulated()
    try:
        status, text = "ok", work()
    except NoRoom as error:
        status, text = "no_room", str(error)
    except NotApplicable as error:
        status, text = "not_applicable", _words(error)
    except InvalidState as error:
        status, text = "excluded", _words(error)
    except BrokenPlugin as error:
        status, text = "failed", _words(error)
    except refused as error:
        status, text = "refused", _words(error)
    except BaseException as error:  # noqa: BLE001  # a plugin may raise anything, SystemExit included
        status, text = "failed", _words(error)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB
    return Report(
        status,
        _one_line(text),
        time.perf_counter() - started,
        peak_mib,
        *(now - then for now, then in zip(_emulated(), before, strict=True)),
    )


def _emulated() -> tuple[int, int, int]:
    """Frames, rollouts, and frames outside of them, that this process has played so far."""
    return Emulator.n_frames, ExactRollouts.n_run, Emulator.n_frames - ExactRollouts.n_frames_run


def _words(error: BaseException) -> str:
    """The error's text, with its type if it is none of ours; an exception's own `__str__` may raise too."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001  # as in `guarded`
        return type(error).__name__
    return text if isinstance(error, VeritariError) and text else f"{type(error).__name__}: {text}".rstrip(": ")


def _one_line(text: str) -> str:
    """Short, on one line, and of characters that every file takes."""
    printable = text.encode("utf-8", errors="replace").decode("utf-8")
    return " ".join(printable.split())[:LONGEST_REASON]
