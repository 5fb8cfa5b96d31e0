"""What `docs/` promises: every command on a page is run as it stands, in the order of the page."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import jaxtyping
import pytest

from harness import cli
from harness.claims import DEFAULT_BUDGET
from methods.registry import registered

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "adding-a-method.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Nothing is fetched: what a package is built with is installed.
OFFLINE = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation")


@pytest.fixture
def reader(monkeypatch, tmp_path):
    """Somebody who starts in an empty folder; what is installed or imported here is forgotten afterwards."""
    # Typer hands on a context of its own copy of click, which is no `typer.Context` to a type checker.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    registered.cache_clear()
    yield tmp_path
    registered.cache_clear()
    signal.signal(signal.SIGTERM, before)


def type_in(monkeypatch, capfd, line):
    """Run one line of the page in this process: its exit code, and what it printed."""
    words = shlex.split(line, comments=True)
    words += ["--store", "store"] if words[1] == "run" else []
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code, *capfd.readouterr()


def install(package):
    """Install a package of the page where only this process, and those that it starts, look for it."""
    command = (sys.executable, "-m", "pip", "install", *OFFLINE, "--target", "site", package)
    subprocess.run(command, check=True, capture_output=True)
    registered.cache_clear()


def follow(line, monkeypatch, capfd):
    """Do what a line says, and hand back what it printed; setting up a checkout is not repeated."""
    words = shlex.split(line)
    if words[0] == "veritari":
        code, out, err = type_in(monkeypatch, capfd, line)
        assert (0, line) == (code, line), f"{out}{err}"
        return out
    if words[:5] == ["python", "-m", "pip", "install", "-e"]:
        install(words[5])
    else:
        assert line in SET_UP
    return ""


# What every checkout's tests have done already.
SET_UP = {
    "python3 -m venv .venv",
    ". .venv/bin/activate",
    "python -m pip install -c constraints.txt -e .",
}


@pytest.mark.ale
def test_every_command_of_the_page_works(reader, monkeypatch, capfd):
    """From an empty folder, every line of the page exits with 0, and the method it starts gets its row and picture."""
    printed = {}
    for kind, text in BLOCKS:
        if kind == "python":
            name = re.match(r"# (\w+\.py)\n", text)
            (reader / name[1]).write_text(text, encoding="utf-8")
        else:
            printed |= {line: follow(line, monkeypatch, capfd) for line in text.splitlines()}
    board = printed["veritari show core-run"]
    rows = [row.split() for row in board.splitlines() if "my_method" in row and not row.startswith("not told apart")]
    assert [["my_method", "read"]] == [row[1:3] for row in rows]
    assert b"\x89PNG" == (reader / "pong.png").read_bytes()[:4]
    [two] = [text for line, text in printed.items() if line.endswith("--out two")]
    named = {word.rstrip(";") for word in two.split() if word.startswith("my_method")}
    assert {"my_method", "my_method(n_samples=4)"} == named
    content = printed["veritari methods check on_content.py:on_content"]
    assert "not applicable: it explains the value of a byte, not pixels" in content


def test_set_up_of_the_page_is_ours():
    """The page installs from the files of a checkout, and the make target that it names exists."""
    lines = {line for _, text in BLOCKS for line in text.splitlines()}
    assert SET_UP <= lines
    assert [True, True] == [(ROOT / name).is_file() for name in ("constraints.txt", "pyproject.toml")]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"`make (\w+)`", PAGE)
    assert (["leaderboard"], True) == (targets, f"\n{targets[0]}:" in makefile)


def test_commands_within_sentences_exist():
    """A command that is mentioned in a sentence has the options that it is mentioned with."""
    sentences = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    options = set(re.findall(r"--[a-z]+", sentences))
    known = "\n".join(
        (ROOT / "harness" / f"{name}.py").read_text(encoding="utf-8") for name in ("cli", "cli_catalogue")
    )
    parameters = set(re.findall(r"^    (\w+): ", known, flags=re.MULTILINE))
    assert set() == {option for option in options if option[2:] not in parameters}


def test_the_budget_of_the_page_is_the_one_that_is_kept():
    """The number of rollouts on the page is the one that a task allows."""
    assert [str(DEFAULT_BUDGET)] == re.findall(r"at most (\d+) times per task", PAGE)


def test_the_readme_leads_to_the_page():
    """The README links the page, and the link leads to a file."""
    assert ["docs/adding-a-method.md"] == re.findall(r"\]\((docs/[^)]+)\)", README)
