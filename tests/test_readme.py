"""What the README promises, tried."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from games.catalog import game
from harness.cli import app
from harness.networks import network_of
from methods.reads import input_gradient
from methods.registry import resolve
from tests.methods.tasks import CASES, NETWORK_CASES, draw_network_task, draw_task

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"^veritari ([^#\n]+)", README, flags=re.MULTILINE)))


def test_method_in_five_lines_works(tmp_path: Path) -> None:
    """The README's example method loads from a file and claims |gradient x RAM|."""
    code = re.search(r"```python\n(# my_method\.py.*?)```", README, flags=re.DOTALL)
    (tmp_path / "my_method.py").write_text(code[1] if code else "", encoding="utf-8")
    method = resolve(f"{tmp_path}/my_method.py:gradient_times_ram")
    task = draw_task(CASES[0], method)
    expected = input_gradient(task.read, task.ram) * task.ram
    torch.testing.assert_close(expected, method.claim(task, generator=torch.Generator()), rtol=0, atol=0)


def test_map_of_the_example_works(tmp_path: Path) -> None:
    """The README's pixel method loads from a file and claims the signed gradient of a network."""
    code = re.search(r"```python\n(# my_map\.py.*?)```", README, flags=re.DOTALL)
    (tmp_path / "my_map.py").write_text(code[1] if code else "", encoding="utf-8")
    task = draw_network_task(NETWORK_CASES[0])
    mine, ours = (
        each.claim(task, generator=torch.Generator())
        for each in (resolve(f"{tmp_path}/my_map.py:my_map"), resolve("vanilla_gradient"))
    )
    torch.testing.assert_close(ours, mine, rtol=0, atol=0)


def test_network_of_the_example_works(tmp_path: Path) -> None:
    """The README's example network builds and says two numbers of two frames of a screen."""
    code = re.search(r"```python\n(# my_network\.py.*?)```", README, flags=re.DOTALL)
    (tmp_path / "my_network.py").write_text(code[1] if code else "", encoding="utf-8")
    network = network_of(f"{tmp_path}/my_network.py:build", game("pong"))
    seen = network.look(np.zeros((2, 210, 160), np.uint8))
    assert ((2, 84, 84), 2) == (seen.shape, len(network.values(seen)))


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_exist(command: str) -> None:
    """Every command of the README exists with the options it is shown with."""
    words = command.split()
    names = [word for word in words if re.fullmatch(r"[a-z]+", word)]
    subcommands = names[:2] if names[0] in ("methods", "games", "readouts") else names[:1]
    shown = CliRunner().invoke(app, [*subcommands, "--help"], terminal_width=200)
    missing = [word for word in words if word.startswith("--") and word not in shown.output]
    assert (0, []) == (shown.exit_code, missing)


def test_both_set_up_commands_are_make_targets() -> None:
    """`make leaderboard` and `make test` are targets of the Makefile, and CI calls the latter."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    assert {"leaderboard", "test"} <= targets & set(re.findall(r"^make ([a-z]+)", README, flags=re.MULTILINE))
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_every_dependency_has_its_reason() -> None:
    """Each package that pyproject.toml asks for stands in CONTRIBUTING.md's table."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = project.partition("dependencies = [\n")[2].partition("]")[0]
    packages = re.findall(r'"([a-z-]+)', block)
    table = re.findall(
        r"^\| ([a-z, -]+) \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert sorted(packages) == sorted(name for row in table for name in row.split(", ") if name != "package")
