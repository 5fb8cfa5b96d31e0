"""Find a method by what the user writes: a registered name, `path/to/file.py:name` or `package.module:name`.

Parameters follow in parentheses: `integrated_gradients(n_steps=16)`. Registered methods are the entry points of the
group `veritari.methods`; ours are registered the same way as anybody's.
"""

import ast
import importlib
import importlib.util
import sys
from collections import Counter
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from games.errors import VeritariError, unknown_name
from methods.method import Method

ENTRY_POINT_GROUP = "veritari.methods"


class BadSpec(VeritariError):
    """A method specification that can't be read, imported, or understood."""


class BrokenPlugin(BadSpec):
    """A plugin that is there but does not import, or has no such method."""


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
    counts = Counter(name for name, _ in points)
    for name, count in counts.items():
        if count > 1:
            values = ", ".join(value for each, value in points if each == name)
            raise NameTaken(f"method {name}: expected one entry point, got {count} ({values}); uninstall one")
    return {name: point for (name, _), point in sorted(points.items())}


def split_specs(text: str) -> list[str]:
    """Split at commas outside parentheses, brackets and quotes.

    >>> split_specs("vanilla_gradient, integrated_gradients(n_steps=8,other=2)")
    ['vanilla_gradient', 'integrated_gradients(n_steps=8,other=2)']
    """
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        depth += (character in "([{") - (character in ")]}") if not quote else 0
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def resolve(spec: str) -> Method:
    """The method that a specification names, with its parameters.

    Raises:
        UnknownName: no registered method of this name.
        BadSpec: it does not parse, does not import, or leads to no method.
        BadMethod: a parameter is wrong.
        NameTaken: a plugin has the name of a registered method.
    """
    target, parameters = parse_spec(spec)
    if ":" in target:
        found = _from_plugin(target)
    elif target in registered():
        found = _as_method(registered()[target].load(), target)
    else:
        raise unknown_name("method", target, registered())
    return found.with_parameters(**parameters) if parameters else found


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Target and parameters of a specification.

    >>> parse_spec("path/to/plugin.py:mine(sigma=0.5)")
    ('path/to/plugin.py:mine', {'sigma': 0.5})

    Raises:
        BadSpec: not `name` or `name(parameter=value, ...)` with plain values.
    """
    target, opening, rest = spec.strip().partition("(")
    if not opening:
        return target.strip(), {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(each.arg is None for each in call.keywords):
            raise ValueError("positional arguments")
        return target.strip(), {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise BadSpec(f"method {spec!r}: expected name(parameter=value, ...) with plain values, got {error}") from error


def _from_plugin(target: str) -> Method:
    place, _, attribute = target.rpartition(":")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    if not hasattr(module, attribute):
        known = [name for name, value in vars(module).items() if isinstance(value, Method)]
        raise BrokenPlugin(
            f"{place}: expected a method named {attribute!r}, got none; it has: {', '.join(known) or 'no method'}"
        )
    found = _as_method(getattr(module, attribute), target)
    name = found.declaration.name
    if name in registered() and registered()[name].value.partition(":")[0] != module.__name__:
        raise NameTaken(f"{target}: the name {name!r} is taken by {registered()[name].value}; rename the method")
    return found


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadSpec(f"{path}: expected a Python file, got none there; check the path")
    name = f"veritari_plugin_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise BadSpec(f"{path}: expected a Python file that can be imported; check the path")
    module = importlib.util.module_from_spec(specification)
    # Dataclasses look their module up while it is being executed.
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except Exception as error:  # whatever foreign code raises while it is imported is the user's to read
        del sys.modules[name]
        raise BrokenPlugin(
            f"{path}: expected a file that imports, got {type(error).__name__}: {error}; mend it"
        ) from error
    return module


def _load_module(name: str) -> ModuleType:
    # Appended, never prepended: a user's own `methods/` folder must not shadow ours.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except Exception as error:  # as above
        raise BrokenPlugin(f"module {name}: expected one that imports, got {type(error).__name__}: {error}") from error


def _as_method(value: object, target: str) -> Method:
    if isinstance(value, Method):
        return value
    if isinstance(value, type) and issubclass(value, Method):
        try:
            return value()
        except TypeError as error:
            raise BrokenPlugin(f"{target}: expected a default for every parameter, got {error}") from error
    raise BrokenPlugin(f"{target}: expected a Method or a function with @method(...), got {type(value).__name__}")
