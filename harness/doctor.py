"""`veritari doctor`: is this machine ready, and if not, what is missing."""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from os import cpu_count
from pathlib import Path

from games.catalog import game, game_ids, rom_path
from games.errors import VeritariError
from harness.pool import process_context
from oracle.emulator import Emulator, require_supported_ale
from oracle.machine_state import MachineState
from oracle.store import write_atomically


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    check: str
    fine: bool
    detail: str


def examine(store: Path) -> list[Finding]:
    """All checks, each of which finds something whether it is fine or not."""
    checks: dict[str, Callable[[], str]] = {
        "python": platform.python_version,
        "packages": lambda: ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "pandas", "captum")),
        "ale-py": _ale,
        "state layout": _layout,
        "ROMs": _roms,
        "store": lambda: _store(store),
        "worker processes": lambda: f"{process_context().get_start_method()}, {cpu_count()} cores",
    }
    return [_find(name, look) for name, look in checks.items()]


def _find(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, fine=True, detail=look())
    except (VeritariError, OSError) as error:
        return Finding(name, fine=False, detail=str(error))


def _ale() -> str:
    require_supported_ale()
    return version("ale-py")


def _layout() -> str:
    state = MachineState(Emulator(game("pong")).serialized())
    return f"CPU, RIOT and TIA found; COLUBK of pong is {state.read('TIA', 'COLUBK'):#04x}"


def _roms() -> str:
    for rom_id in game_ids():
        rom_path(game(rom_id))
    return f"{len(game_ids())} with the expected MD5"


def _store(folder: Path) -> str:
    probe = folder / ".probe"
    write_atomically(probe, b"")
    probe.unlink()
    return f"{folder} ({len(list(folder.glob('*.npz')))} entries)"
