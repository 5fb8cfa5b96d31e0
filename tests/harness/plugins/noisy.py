"""A good method that talks."""

import os
import sys

from methods.method import method
from methods.reads import input_gradient


@method("noisy", domain="ram", family="gradient", access="read", source="none")
def noisy(task, *, generator):
    """Writes on every way out, below Python too."""
    print("garbage from print")  # noqa: T201  # that is the point
    sys.__stderr__.write("garbage from stderr")
    for descriptor in (1, 2):
        os.write(descriptor, b"garbage \xff\x00 from write\n")
    os.system("echo garbage from a shell; echo garbage from a shell >&2")  # noqa: S605  # fixed words
    return input_gradient(task.read, task.ram)
