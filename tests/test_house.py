"""The rules of the house that a machine can check: pinned packages, one-way imports, no path of any machine."""

import re
from collections.abc import Iterator
from importlib.metadata import requires, version
from pathlib import Path

from importlinter.cli import lint_imports
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def needed(name: str, extras: frozenset[str], seen: set[str]) -> Iterator[str]:
    """Everything that is installed for `name`, dependencies of dependencies included."""
    for text in requires(name) or ():
        requirement = Requirement(text)
        environments = [{"extra": extra} for extra in extras] or [{"extra": ""}]
        if requirement.marker and not any(requirement.marker.evaluate(each) for each in environments):
            continue
        dependency = canonicalize_name(requirement.name)
        if dependency not in seen:
            seen.add(dependency)
            yield dependency
            yield from needed(dependency, frozenset(requirement.extras), seen)


def test_everything_installed_is_pinned() -> None:
    """Every package that veritari and its development extra bring in has its version in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {canonicalize_name(name): pin for name, _, pin in (line.partition("==") for line in lines) if pin}
    packages = set(needed("veritari", frozenset({"", "dev"}), set()))
    # A build tag such as 2.13.0+cpu tells where torch was built, not which version it is.
    installed = {name: version(name).partition("+")[0] for name in packages}
    assert installed == {name: pinned.get(name) for name in packages}


def test_imports_point_one_way() -> None:
    """The import contracts of pyproject.toml hold."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_packages_have_no_re_exports() -> None:
    """An `__init__.py` of the four packages holds a docstring and nothing else."""
    texts = {
        name: (ROOT / name / "__init__.py").read_text(encoding="utf-8")
        for name in ("games", "oracle", "methods", "harness")
    }
    assert [] == [name for name, text in texts.items() if not re.fullmatch(r'"""[^"]+"""\n', text)]
