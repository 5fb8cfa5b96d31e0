"""The promise that rollouts are exact, put to the test: sequences of random interventions against fresh interfaces.

One process runs a whole sequence through the exact recipe, one rollout after the other; another process plays each
intervention straight through on a fresh interface of its own. The two print the same digests or the promise is broken.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from oracle.emulator import Machine, Snapshot
from oracle.intervention import N_BYTES, Intervention, RamWrite
from oracle.rollout import ExactRollouts, replay
from oracle.state import Trace


@dataclass(frozen=True)
class Digest:
    """What one rollout came to: SHA-256 of its RAM and of its screen."""

    ram: str
    screen: str


def random_interventions(n: int, *, generator: np.random.Generator) -> list[list[Intervention]]:
    """`n` interventions: every other one writes a single byte, the others 2 to 128 bytes."""
    return [_random_writes(1 if index % 2 == 0 else None, generator) for index in range(n)]


def _random_writes(n_bytes: int | None, generator: np.random.Generator) -> list[Intervention]:
    size = n_bytes or int(generator.integers(2, N_BYTES + 1))
    addresses = generator.choice(N_BYTES, size=size, replace=False)
    values = generator.integers(0, 256, size=size)
    return [RamWrite(int(address), int(value)) for address, value in zip(addresses, values, strict=True)]


def recipe_digests(
    fresh_machine: Callable[[], Machine], trace: Trace, sequence: Sequence[Sequence[Intervention]]
) -> list[Digest]:
    """The sequence by the exact recipe, on one machine."""
    rollouts = ExactRollouts(fresh_machine, trace)
    return [_digest(rollouts.run(interventions)) for interventions in sequence]


def fresh_digests(
    fresh_machine: Callable[[], Machine], trace: Trace, sequence: Sequence[Sequence[Intervention]]
) -> list[Digest]:
    """The sequence straight through, each on a machine of its own."""
    return [_digest(replay(fresh_machine, trace, interventions)) for interventions in sequence]


def _digest(snapshot: Snapshot) -> Digest:
    ram, screen = (hashlib.sha256(part.tobytes()).hexdigest() for part in (snapshot.ram, snapshot.screen))
    return Digest(ram, screen)
