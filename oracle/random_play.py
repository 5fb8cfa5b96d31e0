"""Frames and RAM of seeded random play: what readouts are trained on."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float32, UInt8

from oracle.emulator import Machine
from oracle.errors import InvalidState
from oracle.network import preprocess

N_BOOTS = 4
# Title screens, intros: nothing to learn from.
INTRO_FRAMES = 240
LONGEST_HOLD = 12
FIRE = 1
N_ACTIONS = 18
# Many games begin only when somebody fires.
FIRE_SHARE = 0.15
# A game that ends this often gives no play to learn from.
MOST_BOOTS = 400


@dataclass(frozen=True)
class Play:
    """Consecutive frames of several boots.

    Attributes:
        pictures: every frame as the network sees it.
        ram: RAM after every frame.
        starts: true for the first frame of a boot, which has none before it.
        n_boots: how often the console was switched on.
    """

    pictures: Float32[np.ndarray, "frame 84 84"]
    ram: UInt8[np.ndarray, "frame byte"]
    starts: Bool[np.ndarray, " frame"]
    n_boots: int

    @property
    def n_frames_unlike_first(self) -> int:
        """Frames whose picture differs from the first one."""
        return int((self.pictures != self.pictures[0]).any(axis=(1, 2)).sum())


def random_play(fresh_machine: Callable[[], Machine], n_frames: int, *, generator: np.random.Generator) -> Play:
    """Random actions, each held for 1 to 12 frames, fire more often than others; a fresh console after game over.

    A used console's reset is no reproducible start, so there is none.

    Raises:
        InvalidState: the game ends so soon after every start that there are too few frames.
    """
    pictures: list[np.ndarray] = []
    ram: list[np.ndarray] = []
    starts: list[bool] = []
    n_boots = 0
    while len(pictures) < n_frames:
        n_boots += 1
        if n_boots > MOST_BOOTS:
            raise InvalidState(
                f"random play: expected {n_frames} frames in {MOST_BOOTS} games, got {len(pictures)}; "
                "the game ends too soon to be learned"
            )
        machine = fresh_machine()
        n_kept = 0
        for frame, action in enumerate(_actions(INTRO_FRAMES + -(-n_frames // N_BOOTS), generator)):
            machine.act(action)
            if machine.terminal() or len(pictures) == n_frames:
                break
            if frame >= INTRO_FRAMES:
                pictures.append(_picture(machine))
                ram.append(machine.ram())
                starts.append(n_kept == 0)
                n_kept += 1
    return Play(np.stack(pictures), np.stack(ram), np.array(starts), n_boots)


def _actions(n_frames: int, generator: np.random.Generator) -> list[int]:
    actions: list[int] = []
    while len(actions) < n_frames:
        action = FIRE if generator.random() < FIRE_SHARE else int(generator.integers(N_ACTIONS))
        actions += [action] * int(generator.integers(1, LONGEST_HOLD + 1))
    return actions[:n_frames]


def _picture(machine: Machine) -> Float32[np.ndarray, "84 84"]:
    return np.asarray(preprocess(torch.from_numpy(machine.grayscale()).float().unsqueeze(0))[0].numpy())
