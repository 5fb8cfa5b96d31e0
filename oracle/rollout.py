"""Exact rollouts: the one and only way to intervene.

Plain restore-and-run is not exact. A poked program can end its run inside an unfinished frame; that flag, the frame
buffers and more are not in the saved state, so a later rollout from the same checkpoint can be wrong, and a few
interfaces stay poisoned for good. So every rollout starts by proving that the machine is back where it was: from a
checkpoint two frames before the analysis frame, one frame flushes whatever was unfinished, the checkpoint is restored
again, and the two true actions are played. If the state or either screen differs from the reference, the interface is
thrown away and rebuilt from the cartridge.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import UInt8

from oracle.emulator import NOOP, Machine, Snapshot, snapshot
from oracle.errors import InvalidState, NotDeterministic
from oracle.intervention import ActionWrite, Intervention, RamWrite, RegisterWrite
from oracle.state import WARM_UP_FRAMES, Trace

# A rebuilt interface reproduces its state at once; a second attempt only guards against a broken machine.
REBUILD_ATTEMPTS = 2


@dataclass(frozen=True)
class Film:
    """What is seen of the first frames after f*: their luminance, and a snapshot of the last."""

    frames: UInt8[np.ndarray, "frame row column"]
    last: Snapshot


@dataclass(frozen=True)
class _Arrival:
    """The proof that a machine stands at f*: its state, and the screens of the two frames before."""

    serialized: bytes
    screens: tuple[bytes, ...]


class ExactRollouts:
    """Rollouts from one analysis state, each independent of all that were run before.

    Attributes:
        prefix_ram: RAM after every frame of the prefix; the last row is the RAM at f*.
        n_rollouts, n_frames, n_rebuilds: what it has cost so far, rebuilding included.

    Raises:
        InvalidState: the prefix reaches game over.
        NotDeterministic: a rebuilt interface arrives elsewhere.
    """

    # Rollouts of all states in this process, and the frames played for them: what a run has cost.
    n_run: ClassVar[int] = 0
    n_frames_run: ClassVar[int] = 0

    def __init__(self, fresh_machine: Callable[[], Machine], trace: Trace) -> None:
        self.fresh_machine = fresh_machine
        self.trace = trace
        self.n_rollouts = self.n_frames = self.n_rebuilds = 0
        self.prefix_ram: UInt8[np.ndarray, "frame byte"] = self._boot()
        if self._machine.terminal():
            raise InvalidState(
                f"trace: expected a game that runs at frame {trace.frame}, got game over; choose another trace"
            )
        self._reference = self._arrive()

    @property
    def ram(self) -> UInt8[np.ndarray, " byte"]:
        """RAM at f*."""
        return np.array(self.prefix_ram[-1])

    def run(self, interventions: Sequence[Intervention], tail: Sequence[int] | None = None) -> Snapshot:
        """Intervene at f* and play the tail (the trace's own by default); the snapshot after its last frame."""
        self._return_to_state()
        actions = intervene(self._machine, interventions, self.trace.tail if tail is None else tail)
        self.n_rollouts += 1
        ExactRollouts.n_run += 1
        reward = sum(self._act(action) for action in actions)
        return snapshot(self._machine, reward)

    def film(self, interventions: Sequence[Intervention], n_frames: int) -> Film:
        """Intervene at f* and watch the first `n_frames` of the trace's own tail."""
        self._return_to_state()
        self.n_rollouts += 1
        self._count(n_frames)
        ExactRollouts.n_run += 1
        return _film(self._machine, intervene(self._machine, interventions, self.trace.tail)[:n_frames])

    def watch(self, actions: Sequence[int], interventions: Sequence[Intervention] = ()) -> list[Snapshot]:
        """Intervene at f*, or not, and play these actions; a snapshot after every frame."""
        self._return_to_state()
        actions = intervene(self._machine, interventions, actions)
        self.n_rollouts += 1
        ExactRollouts.n_run += 1
        seen, reward = [], 0.0
        for action in actions:
            reward += self._act(action)
            seen.append(snapshot(self._machine, reward))
        return seen

    def register(self, device: str, register: str) -> int:
        """The value of a register at f*."""
        self._return_to_state()
        return self._machine.read_register(device, register)

    def _return_to_state(self) -> None:
        for _ in range(REBUILD_ATTEMPTS):
            if self._arrive() == self._reference:
                return
            self.n_rebuilds += 1
            self._boot()
        if self._arrive() != self._reference:
            raise NotDeterministic(
                f"the state at frame {self.trace.frame}: expected the same bytes on a rebuilt interface, got others; "
                "this game-state can't be measured here"
            )

    def _boot(self) -> UInt8[np.ndarray, "frame byte"]:
        """Rebuild from the cartridge and stand at f*, with the checkpoint two frames before it taken on the way."""
        self._machine = self.fresh_machine()
        rows = []
        for index, action in enumerate(self.trace.prefix):
            if index == self.trace.frame - WARM_UP_FRAMES:
                self._checkpoint: Any = self._machine.checkpoint()
            self._act(action)
            rows.append(self._machine.ram())
        return np.stack(rows)

    def _arrive(self) -> _Arrival:
        machine = self._machine
        machine.restore(self._checkpoint)
        self._act(NOOP)
        machine.restore(self._checkpoint)
        screens = []
        for action in self.trace.prefix[-WARM_UP_FRAMES:]:
            self._act(action)
            screens.append(machine.screen().tobytes())
        return _Arrival(machine.serialized(), tuple(screens))

    def _act(self, action: int) -> float:
        self._count(1)
        return self._machine.act(action)

    def _count(self, n_frames: int) -> None:
        self.n_frames += n_frames
        ExactRollouts.n_frames_run += n_frames


def intervene(machine: Machine, interventions: Sequence[Intervention], tail: Sequence[int]) -> list[int]:
    """Change the machine where it stands; the tail's actions, changed too where an intervention says so."""
    actions = list(tail)
    # Registers first: they are set by restoring an edited state, which must not undo a RAM write.
    for intervention in sorted(interventions, key=lambda each: not isinstance(each, RegisterWrite)):
        match intervention:
            case RamWrite(address, value):
                machine.write_ram(address, value)
            case RegisterWrite(device, register, value):
                machine.write_register(device, register, value)
            case ActionWrite(offset, action):
                actions[offset] = action
    return actions


def _film(machine: Machine, actions: Sequence[int]) -> Film:
    frames, reward = [], 0.0
    for action in actions:
        reward += machine.act(action)
        frames.append(machine.grayscale())
    return Film(np.stack(frames), snapshot(machine, reward))


def replay(fresh_machine: Callable[[], Machine], trace: Trace, interventions: Sequence[Intervention]) -> Snapshot:
    """The same run, straight through on a fresh machine: the slow way that every exact rollout must match."""
    machine = fresh_machine()
    for action in trace.prefix:
        machine.act(action)
    reward = sum(machine.act(action) for action in intervene(machine, interventions, trace.tail))
    return snapshot(machine, reward)


def replay_film(
    fresh_machine: Callable[[], Machine], trace: Trace, interventions: Sequence[Intervention], n_frames: int
) -> Film:
    """`ExactRollouts.film`, straight through on a fresh machine."""
    machine = fresh_machine()
    for action in trace.prefix:
        machine.act(action)
    return _film(machine, intervene(machine, interventions, trace.tail)[:n_frames])
