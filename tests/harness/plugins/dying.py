"""Methods that end their process."""

import ctypes
import os
import signal

from methods.method import method

SHARED = {"domain": "ram", "family": "gradient", "access": "read", "source": "none"}


@method("exits_with_0", **SHARED)
def exits_with_0(task, *, generator):
    """As if all were well."""
    os._exit(0)


@method("exits_with_3", **SHARED)
def exits_with_3(task, *, generator):
    """With a code."""
    os._exit(3)


@method("reads_address_0", **SHARED)
def reads_address_0(task, *, generator):
    """A segmentation fault."""
    ctypes.string_at(0)


@method("is_killed", **SHARED)
def is_killed(task, *, generator):
    """As the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


@method("closes_pipes", **SHARED)
def closes_pipes(task, *, generator):
    """Whatever it answers can't be heard."""
    os.closerange(3, 1024)
    return task.ram


@method("leaves_child", **SHARED)
def leaves_child(task, *, generator):
    """Dies while a child of it holds its pipes open."""
    if os.fork() == 0:
        signal.alarm(20)
        signal.pause()
    os._exit(4)
