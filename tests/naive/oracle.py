"""The oracle once more, straight through: no checkpoints, no shared state, loops instead of array expressions.

`PlainRollouts` and `UncheckedRollouts` are the two obvious ways that are *not* exact; the tests show where they fail.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from oracle.emulator import Machine
from oracle.intervention import ActionWrite, Intervention, RamWrite, RegisterWrite
from oracle.task import SamplerGeometry

MachineMaker = Callable[[], Machine]
End = tuple[np.ndarray, np.ndarray]


def play(machine: Machine, interventions: Sequence[Intervention], tail: Sequence[int]) -> End:
    """Intervene, play the tail, and give RAM and screen at its end."""
    for each in interventions:
        if isinstance(each, RegisterWrite):
            machine.write_register(each.device, each.register, each.value)
    for each in interventions:
        if isinstance(each, RamWrite):
            machine.write_ram(each.address, each.value)
    for offset, action in enumerate(tail):
        pressed = action
        for each in interventions:
            if isinstance(each, ActionWrite) and each.offset == offset:
                pressed = each.action
        machine.act(pressed)
    return machine.ram(), machine.screen()


def end_of_run(
    fresh_machine: MachineMaker, prefix: Sequence[int], tail: Sequence[int], interventions: Sequence[Intervention]
) -> End:
    """One run on a machine of its own."""
    machine = fresh_machine()
    for action in prefix:
        machine.act(action)
    return play(machine, interventions, tail)


def effects(
    fresh_machine: MachineMaker,
    prefix: Sequence[int],
    tail: Sequence[int],
    interventions: Sequence[Intervention],
    address: int,
) -> list[tuple[int, int]]:
    """For every intervention the change of one byte and the number of changed pixels, a fresh machine for each run."""
    reference_ram, reference_screen = end_of_run(fresh_machine, prefix, tail, [])
    measured = []
    for intervention in interventions:
        ram, screen = end_of_run(fresh_machine, prefix, tail, [intervention])
        pairs = zip(screen.tobytes(), reference_screen.tobytes(), strict=True)
        n_changed = sum(pixel != reference_pixel for pixel, reference_pixel in pairs)
        measured.append((int(ram[address]) - int(reference_ram[address]), n_changed))
    return measured


class PlainRollouts:
    """Restore a checkpoint taken at f* and run."""

    def __init__(self, fresh_machine: MachineMaker, prefix: Sequence[int], tail: Sequence[int]) -> None:
        self._machine = fresh_machine()
        self._tail = tail
        for action in prefix:
            self._machine.act(action)
        self._checkpoint = self._machine.checkpoint()

    def run(self, interventions: Sequence[Intervention]) -> End:
        self._machine.restore(self._checkpoint)
        return play(self._machine, interventions, self._tail)


class UncheckedRollouts:
    """The exact recipe but for its last step: it never looks whether the machine is back where it was."""

    def __init__(self, fresh_machine: MachineMaker, prefix: Sequence[int], tail: Sequence[int]) -> None:
        self._machine = fresh_machine()
        self._last_actions, self._tail = prefix[-2:], tail
        for action in prefix[:-2]:
            self._machine.act(action)
        self._checkpoint = self._machine.checkpoint()

    def run(self, interventions: Sequence[Intervention]) -> End:
        self._machine.restore(self._checkpoint)
        self._machine.act(0)
        self._machine.restore(self._checkpoint)
        for action in self._last_actions:
            self._machine.act(action)
        return play(self._machine, interventions, self._tail)


def geometry(ram: Sequence[int], positions: Sequence[int], changed: Mapping[int, np.ndarray]) -> SamplerGeometry | None:
    """The geometry of ram-v1 from the pixels that poking a byte changes: bytes named as positions, then 49 and 54."""
    best, best_count = None, 0
    for address in positions:
        cell = _first_changed(changed[address])
        if cell is None:
            continue
        near = _in_window(changed[address], cell)
        if near and int(changed[address].sum()) <= 8 * len(near) and len(near) > best_count:
            best, best_count = _geometry(ram, address, cell, near), len(near)
    if best is not None:
        return best
    n_rows, n_columns = changed[49].shape
    cell = _first_changed(changed[49]) or _first_changed(changed[54]) or (n_rows // 2, n_columns // 2)
    address = 54 if changed[54].sum() > changed[49].sum() else 49
    near = _in_window(changed[address], cell)
    return _geometry(ram, address, cell, near) if near else None


def _first_changed(mask: np.ndarray) -> tuple[int, int] | None:
    for column in range(mask.shape[1]):
        for row in range(mask.shape[0]):
            if mask[row, column]:
                return row, column
    return None


def _in_window(mask: np.ndarray, cell: tuple[int, int]) -> list[tuple[int, int]]:
    rows = range(max(0, cell[0] - 8), min(mask.shape[0], cell[0] + 9))
    columns = range(max(0, cell[1] - 16), min(mask.shape[1], cell[1] + 17))
    return [(row, column) for row in rows for column in columns if mask[row, column]]


def _geometry(
    ram: Sequence[int], address: int, cell: tuple[int, int], near: Sequence[tuple[int, int]]
) -> SamplerGeometry:
    top, left = min(row for row, _ in near), min(column for _, column in near)
    offsets = tuple((row - top, column - left) for row, column in near)
    return SamplerGeometry(address, int(ram[address]), cell, (top, left), offsets)
