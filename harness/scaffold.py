"""`veritari methods new NAME`: a method to start from, as one file or as a package that can be installed."""

import ast
import builtins
import keyword
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import distributions, packages_distributions
from pathlib import Path
from string import Template
from typing import NamedTuple

from games.errors import unknown_name
from harness.claims import DEFAULT_BUDGET
from harness.controls import CONTROLS
from harness.errors import CannotWrite, WrongUsage
from methods.registry import registered
from methods.spec import split_specs

TEMPLATES = Path(__file__).parent / "templates"
DOMAINS = ("ram", "cause", "pixels")
# What `--methods` reads as a group of methods.
GROUPS = ("default", "all")
# Files of a package, and their templates; the module comes beside them.
PACKAGE = {"pyproject.toml": "pyproject.toml", "README.md": "README.md", "tests/test_{name}.py": "test_method.py"}


class Written(NamedTuple):
    """What was written, and what to type next."""

    files: tuple[Path, ...]
    commands: tuple[str, ...]


def new_method(name: str, *, domain: str, folder: Path, package: bool) -> Written:
    """Write a method that keeps the contract as it stands: `name.py`, or the package `name/`.

    Raises:
        UnknownName: no such domain.
        WrongUsage: a name that a method can't have, a folder that no specification can name, or a file that is there.
        CannotWrite: the folder can't be written; no file is left behind.
    """
    if domain not in DOMAINS:
        raise unknown_name("domain", domain, DOMAINS)
    _require_name(name, domain)
    if package:
        _require_distribution(name)
    code = _rendered(f"{domain}.py", name)
    return _package(folder / name, name, code) if package else _file(folder / f"{name}.py", name, code)


def _file(path: Path, name: str, code: str) -> Written:
    # A word that begins with a dash would be an option.
    spec = f"./{path}:{name}" if str(path).startswith("-") else f"{path}:{name}"
    if "(" in spec or split_specs(f"{spec},default") != [spec, "default"]:
        raise WrongUsage(
            f"--folder: expected a path that can stand in --methods, got {str(path.parent)!r}; choose one without "
            "commas, brackets, quotes and blanks at its ends"
        )
    with _in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, code)
    methods = shlex.quote(f"default,{spec}")
    return Written(
        (path,),
        (f"veritari methods check {shlex.quote(spec)}", f"veritari run --games core --states 1 --methods {methods}"),
    )


def _package(folder: Path, name: str, code: str) -> Written:
    others = {path.format(name=name): _rendered(template, name) for path, template in PACKAGE.items()}
    files = {f"{name}.py": code} | others
    _make(folder, files)
    # pip takes a bare word for the name of a package in its index.
    place = shlex.quote(str(folder) if folder.is_absolute() else f"./{folder}")
    install = f"python -m pip install -e {place}"
    return Written(tuple(folder / path for path in files), (install, f"veritari methods check {name}"))


def _rendered(template: str, name: str) -> str:
    text = (TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(name=name, title=name.replace("_", " ").capitalize(), budget=DEFAULT_BUDGET)


# --- names ----------------------------------------------------------------------------------------------------------


def _require_name(name: str, domain: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise WrongUsage(f"method name: expected snake case like 'my_method', got {name!r}; rename it")
    if taken := _taken_by(name, domain):
        raise WrongUsage(f"method name: expected a free one, {name!r} is {taken}; choose another")


def _require_distribution(name: str) -> None:
    """Refuse what pip would not install, or would install in place of something else."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9_]*[a-z0-9])?", name):
        raise WrongUsage(f"package name: expected one that ends in a letter or digit, got {name!r}; rename it")
    installed = {_normalised(each.name) for each in distributions() if each.name}
    if _normalised(name) in installed:
        raise WrongUsage(
            f"package name: expected a free one, {name!r} is an installed package, which it would replace; "
            "choose another"
        )


def _normalised(distribution: str) -> str:
    """As pip compares names: `python_dateutil` is `python-dateutil`."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _taken_by(name: str, domain: str) -> str:
    """Whose name it is; an empty text if it is free."""
    if name in registered():
        return f"taken by {registered()[name].value}"
    owners = {
        "the name of a control": name in CONTROLS,
        "a group of methods": name in GROUPS,
        "a word of Python": keyword.iskeyword(name) or hasattr(builtins, name),
        # A package of this name would replace the other.
        "an installed module": name in sys.stdlib_module_names or name in packages_distributions(),
        "used by the example itself": name in _words_of(_rendered(f"{domain}.py", "_")),
    }
    return next((owner for owner, applies in owners.items() if applies), "")


def _words_of(code: str) -> set[str]:
    """Every name that a function of the same name would hide."""
    nodes = list(ast.walk(ast.parse(code)))
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    return imported | {node.id for node in nodes if isinstance(node, ast.Name)}


# --- files ----------------------------------------------------------------------------------------------------------


def _make(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files into a folder that is made for them; one that can't be filled is removed."""
    with _in_words(folder):
        folder.mkdir(parents=True)
    try:
        with _in_words(folder):
            (folder / "tests").mkdir()
        for path, text in files.items():
            _write(folder / path, text)
    except CannotWrite:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write(path: Path, text: str) -> None:
    """Write a file that is not there yet; one that can be written in part only is removed."""
    with _in_words(path):
        file = path.open("x", encoding="utf-8")
    with _in_words(path):
        try:
            with file:
                file.write(text)
        except OSError:
            path.unlink(missing_ok=True)
            raise


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """What goes wrong while `path` is made, in one line."""
    try:
        yield
    except FileExistsError as error:
        raise WrongUsage(
            f"{path}: expected nothing there, got a file or folder; choose another name or --folder"
        ) from error
    except OSError as error:
        raise CannotWrite(
            f"{path}: expected a place that can be written, got {error.strerror}; choose another name or --folder"
        ) from error
