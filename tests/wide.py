"""A console of 128 cells behind the emulator's interface, for the protocol that takes every byte as a cause.

What its cells do is told by `Rules`. All sums are taken modulo 256, and within a frame every cell is computed from the
values before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from games.catalog import Game

N_CELLS = 128
N_ROWS, N_COLUMNS = 64, 100
BACKGROUND = 4
# Ten pixels in four colours, no two rows or columns alike; 0 is transparent.
PICTURE = np.array([[9, 9, 8, 0], [9, 8, 5, 0], [7, 9, 8, 8]], dtype=np.uint8)


@dataclass(frozen=True)
class Rules:
    """What happens in every frame.

    Attributes:
        flows: (source, target): the target gains what the source holds.
        columns: (cell, row): a picture stands in this row, in the column that the cell says, modulo 100.
        pushes: cells that gain the number of the action.
        flashes: how many pixels of the first row show the number of the action, for that frame.
        counter: a cell that gains 1.
        last_frame: after this one the game is over.
        vanish_after: the frame after which no picture is drawn.
    """

    flows: Sequence[tuple[int, int]] = ()
    columns: Sequence[tuple[int, int]] = ()
    pushes: Sequence[int] = ()
    flashes: int = 0
    counter: int | None = None
    last_frame: int | None = None
    vanish_after: int | None = None


class WideMachine:
    """The console of these rules; cell k boots with 20 + k mod 40."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.restore((tuple(20 + address % 40 for address in range(N_CELLS)), 0))
        self._shown = self._places(0)

    def act(self, action: int) -> float:
        if self.terminal():
            return 0.0
        before = list(self._ram)
        gains = [(target, before[source]) for source, target in self._rules.flows]
        gains += [(address, action) for address in self._rules.pushes]
        if self._rules.counter is not None:
            gains.append((self._rules.counter, 1))
        for address, gain in gains:
            self._ram[address] = (self._ram[address] + gain) % 256
        self._n_frames += 1
        self._shown = self._places(action)
        return 0.0

    def _places(self, action: int) -> tuple[int, list[tuple[int, int]]]:
        """The action, and row and column of each picture."""
        gone = self._rules.vanish_after is not None and self._n_frames > self._rules.vanish_after
        return action, [(row, self._ram[address]) for address, row in self._rules.columns if not gone]

    def ram(self) -> np.ndarray:
        return np.array(self._ram, dtype=np.uint8)

    def screen(self) -> np.ndarray:
        screen = np.full((N_ROWS, N_COLUMNS), BACKGROUND, dtype=np.uint8)
        action, places = self._shown
        screen[0, : self._rules.flashes] = 100 + action
        down, right = np.nonzero(PICTURE)
        for row, column in places:
            screen[row + down, (column + right) % N_COLUMNS] = PICTURE[down, right]
        return screen

    def grayscale(self) -> np.ndarray:
        return self.screen()

    def write_ram(self, address: int, value: int) -> None:
        self._ram[address] = value

    def read_register(self, device: str, register: str) -> int:
        raise NotImplementedError

    def write_register(self, device: str, register: str, value: int) -> None:
        raise NotImplementedError

    def checkpoint(self) -> tuple[tuple[int, ...], int]:
        return tuple(self._ram), self._n_frames

    def restore(self, checkpoint: tuple[tuple[int, ...], int]) -> None:
        self._ram, self._n_frames = list(checkpoint[0]), checkpoint[1]

    def serialized(self) -> bytes:
        return repr(self.checkpoint()).encode()

    def lives(self) -> int:
        return int(not self.terminal())

    def terminal(self) -> bool:
        return self._rules.last_frame is not None and self._n_frames >= self._rules.last_frame


def wide_game() -> Game:
    """A game without a single name; no ROM belongs to it."""
    return Game(rom_id="wide", title="Wide", gymnasium_id="ALE/Wide-v5", rom_md5="1" * 32, named_bytes=())
