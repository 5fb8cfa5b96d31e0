"""Which protocol is meant: a name or a TOML file, and what is overridden on the command line."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.errors import WrongUsage
from oracle.protocol import customised, protocol

BASE = "base"


def chosen_protocol(selection: str, *, states: int | None = None, overrides: Sequence[str] = ()) -> str:
    """The full name of a protocol.

    `selection` is a name, or the path of a TOML file with the key `base` and parameters; `overrides` are texts such as
    `horizon=30`, and count more than the file.

    Raises:
        UnknownName: no such protocol or parameter.
        BadProtocol: a value that can't be meant.
        WrongUsage: a file that can't be read, or an override that is none.
    """
    values = _of_file(Path(selection)) if selection.endswith(".toml") else _of_name(selection)
    base = values.pop(BASE)
    for override in overrides:
        name, separator, value = override.partition("=")
        if not separator:
            raise WrongUsage(f"--set: expected parameter=value, got {override}; correct it")
        values[name.strip()] = value.strip()
    if states is not None:
        values["n_states"] = states
    return customised(base, values).name


def _of_name(selection: str) -> dict[str, Any]:
    named = protocol(selection)
    base = protocol(selection.partition("(")[0].strip())
    return {
        BASE: base.name,
        **{name: value for name, value in named.adjustable().items() if value != base.adjustable()[name]},
    }


def _of_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WrongUsage(f"--protocol {path}: expected a TOML file, got {reason}; correct it") from error
    if not isinstance(values.get(BASE), str):
        raise WrongUsage(f'--protocol {path}: expected a key base, such as base = "ram-v2", got none; add it')
    return values
