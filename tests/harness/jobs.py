"""Jobs for the pool of worker processes: what a unit of work may do to its process."""

import os
import resource
import signal
import time
from pathlib import Path

import torch

from harness.guard import Report

# Set by the parent process in a test; a worker must not have it.
mark = ""


def says(text: str) -> Report:
    """A job that works."""
    return Report("ok", text, 0.0)


def takes(seconds: float) -> Report:
    """A job that works, later; says which process did it."""
    time.sleep(seconds)
    return says(str(os.getpid()))


def exits(code: int) -> Report:
    """A job whose process ends without a word."""
    os._exit(code)


def exits_after_introduction(pid_file: str) -> Report:
    """As a unit of a foreign method: says which process it is, then leaves as if all were well."""
    Path(pid_file).write_text(str(os.getpid()), encoding="utf-8")
    os._exit(0)


def kills_itself() -> Report:
    """A job that the kernel ends."""
    os.kill(os.getpid(), signal.SIGKILL)
    return says("never said")


def will_not_end() -> Report:
    """A job that leaves its process deaf to a polite end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return says("deaf")


def closes_pipes() -> Report:
    """A job that can't be heard any more."""
    os.closerange(3, 256)
    return says("never heard")


def describes_its_process() -> Report:
    """What a worker was made like: threads of torch, mark of the parent, limits of memory and of core dumps."""
    memory, core = resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_CORE)
    return says(f"{torch.get_num_threads()} threads, mark {mark!r}, memory {memory[0]}, core {core[0]}")


def shouts() -> Report:
    """A job that writes to every way out, below Python."""
    for descriptor in (1, 2):
        os.write(descriptor, b"garbage\n")
    return says("quiet")
