"""The Atari 2600 as `ale-py` plays it, behind the small interface that the exact rollouts need.

Every surprise of ale-py that could make a number wrong is handled here or in `oracle.rollout`, with its reason.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import ale_py
import numpy as np
from ale_py import Action, ALEInterface, ALEState, LoggerMode
from jaxtyping import UInt8

from games.catalog import Game, rom_path
from games.errors import UnsupportedRom
from oracle.errors import UnsupportedEmulator
from oracle.machine_state import MachineState

SUPPORTED_ALE = frozenset({"0.12.1"})
NOOP = 0

Ram = UInt8[np.ndarray, " byte"]
Screen = UInt8[np.ndarray, "row column"]


@dataclass(frozen=True)
class Snapshot:
    """What can be seen of the machine after one frame. `screen` holds palette indices."""

    ram: Ram
    screen: Screen
    reward: float
    lives: int
    terminal: bool


@runtime_checkable
class Machine(Protocol):
    """A deterministic console that can be stopped, changed in one place and run on."""

    def act(self, action: int) -> float:
        """Play one frame with this action and return its reward; after game over nothing happens."""

    def ram(self) -> Ram:
        """A copy of the RAM."""

    def screen(self) -> Screen:
        """A copy of the screen as the last `act` drew it."""

    def grayscale(self) -> Screen:
        """The luminance of that screen, 0..255."""

    def write_ram(self, address: int, value: int) -> None:
        """Set one RAM byte."""

    def read_register(self, device: str, register: str) -> int:
        """The value of one register of a device."""

    def write_register(self, device: str, register: str, value: int) -> None:
        """Set one register of a device."""

    def checkpoint(self) -> Any:
        """A copy of the state, for `restore` on this same machine."""

    def restore(self, checkpoint: Any) -> None:
        """Return to a checkpoint. The screen is stale until the next `act`."""

    def serialized(self) -> bytes:
        """The state as bytes."""

    def lives(self) -> int:
        """Lives left, as ALE reads them."""

    def terminal(self) -> bool:
        """True after game over."""


class Emulator:
    """A fresh ALE interface with one cartridge, reset and ready. Not safe in threads.

    Raises:
        UnsupportedEmulator: an ale-py that this code was not checked with.
        UnsupportedRom: loading it would end the process, so it is refused before.
        RomMismatch: the ROM is not the one of the game table.
    """

    # Frames played by all interfaces of this process: what a run has cost.
    n_frames: ClassVar[int] = 0

    def __init__(self, game: Game) -> None:
        require_supported_ale()
        path = rom_path(game)
        if not ALEInterface.isSupportedROM(path):
            raise UnsupportedRom(f"{game.rom_id}: expected a ROM that ale-py can play, got {path}; choose another game")
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self._ale = ALEInterface()
        # The default of 0.25 would repeat actions at random.
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.setInt("frame_skip", 1)
        self._load(path)
        # Only on a fresh interface is this a reproducible start: on a used one, RAM differs in 24 games.
        self._ale.reset_game()

    def _load(self, rom: Path) -> None:
        self._ale.loadROM(rom)

    def act(self, action: int) -> float:
        Emulator.n_frames += 1
        return float(self._ale.act(Action(action)))

    def ram(self) -> Ram:
        return np.array(self._ale.getRAM(), dtype=np.uint8)

    def screen(self) -> Screen:
        return np.array(self._ale.getScreen(), dtype=np.uint8)

    def grayscale(self) -> Screen:
        return np.array(self._ale.getScreenGrayscale(), dtype=np.uint8)

    def colours(self) -> UInt8[np.ndarray, "row column 3"]:
        """The screen in red, green and blue, for people."""
        return np.array(self._ale.getScreenRGB(), dtype=np.uint8)

    def write_ram(self, address: int, value: int) -> None:
        self._ale.setRAM(address, value)

    def read_register(self, device: str, register: str) -> int:
        return MachineState(self.serialized()).read(device, register)

    def write_register(self, device: str, register: str, value: int) -> None:
        edited = MachineState(self.serialized()).with_value(device, register, value)
        self._ale.restoreState(ALEState(edited))

    def checkpoint(self) -> ALEState:
        return self._ale.cloneState()

    def restore(self, checkpoint: ALEState) -> None:
        self._ale.restoreState(checkpoint)

    def serialized(self) -> bytes:
        return bytes(self._ale.cloneState().serialize())

    def lives(self) -> int:
        return int(self._ale.lives())

    def terminal(self) -> bool:
        return bool(self._ale.game_over())


def require_supported_ale() -> None:
    """Refuse an ale-py whose numbers nobody has checked.

    Raises:
        UnsupportedEmulator: another version than those in `SUPPORTED_ALE`.
    """
    if ale_py.__version__ not in SUPPORTED_ALE:
        raise UnsupportedEmulator(
            f"ale-py: expected {' or '.join(sorted(SUPPORTED_ALE))}, got {ale_py.__version__}; "
            "install with: pip install -c constraints.txt"
        )


def snapshot(machine: Machine, reward: float) -> Snapshot:
    """What can be seen of `machine` now; `reward` is what the run has earned so far."""
    return Snapshot(machine.ram(), machine.screen(), reward, machine.lives(), machine.terminal())


@contextmanager
def silenced_stderr() -> Iterator[Callable[[], int]]:
    """Keep C++ from writing to stderr: a poked program makes ALE print `Illegal Instruction` by the thousand.

    Gives a function that tells how many bytes were written so far, so that a noisy rollout can be flagged. It works on
    the file descriptor, since Python's `sys.stderr` never sees that stream.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile(buffering=0) as sink:
        os.dup2(sink.fileno(), 2)
        try:
            yield lambda: os.fstat(sink.fileno()).st_size
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
