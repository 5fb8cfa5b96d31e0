"""Plugins as text, and how a test puts one on the disk."""

import importlib
import textwrap
from pathlib import Path

FUNCTION_PLUGIN = """
    from methods.method import method
    from methods.reads import input_gradient

    NUMBER = 3

    @method("gradient_times_ram", domain="ram", family="gradient", access="read", source="a paper")
    def gradient_times_ram(task, *, generator, factor: float = 1.0):
        return input_gradient(task.read, task.ram) * task.ram * factor

    @method("second", domain="ram", family="control", access="read", source="a paper")
    def second(task, *, generator):
        return task.ram
"""

# The annotations are kept as text, so they are looked up in the module when a parameter is checked.
CLASS_PLUGIN = """
    from __future__ import annotations

    from dataclasses import dataclass
    from typing import ClassVar, Literal

    import torch

    from methods.method import Declaration, Method

    Mode = Literal["plain", "{mode}"]

    @dataclass(frozen=True)
    class Shifted(Method):
        declaration: ClassVar[Declaration] = Declaration("{name}", "ram", "control", "read", "a paper")

        shift: int = 1
        mode: Mode = "plain"

        def attribute(self, task, *, generator: torch.Generator) -> torch.Tensor:
            return task.ram + self.shift
"""


def write(path: Path, text: str) -> Path:
    """Write a file of Python text, and the folders it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    importlib.invalidate_caches()
    return path
