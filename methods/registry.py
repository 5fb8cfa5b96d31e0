"""Find a method by what the user writes: a registered name, `path/to/file.py:name` or `package.module:name`.

`captum.attr:Name` is one of Captum's classes, see `methods/captum_adapter.py`.

Registered methods are the entry points of the group `veritari.methods`; ours are registered the same way as anybody's.
"""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from games.errors import VeritariError, unknown_name
from methods.method import Declaration, FunctionMethod, Method
from methods.spec import CAPTUM, BadSpec, parse_spec

ENTRY_POINT_GROUP = "veritari.methods"


class BrokenPlugin(BadSpec):
    """A plugin that is there but does not import, or whose method does not keep the contract."""


class NameTaken(VeritariError):
    """Two methods want the same name."""


@cache
def registered() -> dict[str, EntryPoint]:
    """The registered methods by name.

    Raises:
        NameTaken: two packages register the same name.
    """
    # A package that is installed and lies in the working directory as well shows the same entry point twice.
    points = {(point.name, point.value): point for point in entry_points(group=ENTRY_POINT_GROUP)}
    for name, count in Counter(name for name, _ in points).items():
        if count > 1:
            values = ", ".join(value for each, value in points if each == name)
            raise NameTaken(f"method {name}: expected one entry point, got {count} ({values}); uninstall one")
    return {name: point for (name, _), point in sorted(points.items())}


def resolve(spec: str) -> Method:
    """The method that a specification names, with its parameters.

    Raises:
        UnknownName: no registered method, none of that file or module, or no class of Captum, of this name.
        BadSpec: it does not parse, does not import, or leads to no method.
        BadMethod: a parameter is wrong.
        NameTaken: a plugin has the name of a registered method.
    """
    target, parameters = parse_spec(spec)
    if target.startswith(CAPTUM):
        return _from_captum(target.removeprefix(CAPTUM), parameters)
    if ":" in target:
        found = _from_plugin(target)
    elif target in registered():
        found = _from_entry_point(registered()[target])
    elif target.endswith(".py"):
        raise BadSpec(f"{target}: expected path/to/file.py:name, got no name; add the method's name after a colon")
    else:
        raise unknown_name("method", target, registered())
    return found.with_parameters(**parameters) if parameters else found


def _from_entry_point(point: EntryPoint) -> Method:
    with _foreign_import(f"method {point.name} ({point.value})"):
        loaded = point.load()
    found = _as_method(loaded, point.name)
    if found.declaration.name != point.name:
        raise BrokenPlugin(
            f"{point.value}: expected a method named {point.name!r} like its entry point, "
            f"got {found.declaration.name!r}; rename one"
        )
    return found


def _from_captum(name: str, parameters: dict[str, Any]) -> Method:
    # Loaded when it is asked for, as plugins are: Captum takes a second, and most commands never need it.
    adapter = _load_module("methods.captum_adapter")
    found: Method = adapter.captum_method(name, parameters)
    return found


def _from_plugin(target: str) -> Method:
    place, _, attribute = target.rpartition(":")
    module = _load(place)
    if not hasattr(module, attribute):
        known = [name for name, value in vars(module).items() if _is_method(value)]
        if not known:
            raise BadSpec(f"{place}: expected a method named {attribute!r}, got none in it; correct it")
        raise unknown_name(f"method of {place}", attribute, known)
    found = _as_method(getattr(module, attribute), target)
    name = found.declaration.name
    if name in registered() and registered()[name].value.partition(":")[0] != module.__name__:
        raise NameTaken(f"{target}: the name {name!r} is taken by {registered()[name].value}; rename the method")
    return found


def load_attribute(target: str) -> object:
    """Anything that `path/to/file.py:name` or `package.module:name` names.

    Raises:
        BadSpec: it does not parse, does not import, or is not there.
    """
    place, _, attribute = target.rpartition(":")
    if not place or not attribute:
        raise BadSpec(f"{target}: expected path/to/file.py:name or package.module:name, got no colon; correct it")
    module = _load(place)
    if not hasattr(module, attribute):
        known = ", ".join(name for name in vars(module) if not name.startswith("_")) or "nothing"
        raise BrokenPlugin(f"{place}: expected something named {attribute!r}, got none; it has: {known:.200}")
    return getattr(module, attribute)


def _load(place: str) -> ModuleType:
    return _load_file(Path(place)) if place.endswith(".py") else _load_module(place)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadSpec(f"{path}: expected a Python file, got none there; check the path")
    _append_to_path(path.resolve().parent)
    _append_to_path(Path.cwd())
    # Two plugins may have the same file name: the hash of the path keeps their modules apart.
    name = f"veritari_plugin_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise BadSpec(f"{path}: expected a Python file that can be imported; check the path")
    module = importlib.util.module_from_spec(specification)
    # Dataclasses look their module up while it is being executed.
    sys.modules[name] = module
    try:
        with _foreign_import(str(path)):
            specification.loader.exec_module(module)
    except BrokenPlugin:
        del sys.modules[name]
        raise
    return module


def _load_module(name: str) -> ModuleType:
    _append_to_path(Path.cwd())
    with _foreign_import(f"module {name}"):
        return importlib.import_module(name)


def _append_to_path(folder: Path) -> None:
    """Appended, never prepended: a user's own `methods/` folder must not shadow ours."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


@contextmanager
def _foreign_import(what: str) -> Iterator[None]:
    """Whatever foreign code raises while it is imported, `sys.exit()` included, is one line for the user."""
    try:
        yield
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise BrokenPlugin(f"{what}: expected something that imports, got {reason}; mend it") from error


def _is_method(value: object) -> bool:
    return isinstance(value, Method) or (isinstance(value, type) and hasattr(value, "declaration"))


def _as_method(value: object, target: str) -> Method:
    if isinstance(value, Method):
        _require_contract(value, target)
        return value
    if not (isinstance(value, type) and issubclass(value, Method)):
        raise BrokenPlugin(
            f"{target}: expected a function with @method(...) or a class below methods.method.Method, "
            f"got {type(value).__name__}"
        )
    if not isinstance(getattr(value, "declaration", None), Declaration):
        raise BrokenPlugin(f"{target}: expected a declaration, got none; set declaration = Declaration(...)")
    if inspect.isabstract(value):
        raise BrokenPlugin(f"{target}: expected a method `attribute`, got none; write it")
    try:
        return value()
    except (TypeError, ValueError) as error:
        raise BrokenPlugin(f"{target}: expected a default for every parameter, got: {error}") from error


def _require_contract(value: Method, target: str) -> None:
    """A function must take what it will be called with; found out now, not at the first task."""
    if not isinstance(value, FunctionMethod):
        return
    arguments = inspect.signature(value.function).parameters
    if "generator" not in arguments:
        raise BrokenPlugin(f"{target}: expected the arguments (task, *, generator), got no generator; add it")
    for each in arguments.values():
        if each.kind is each.KEYWORD_ONLY and each.name != "generator" and each.default is each.empty:
            raise BrokenPlugin(f"{target}: expected a default for every parameter, got none for {each.name!r}")
