"""The response surface of a game-state: what every output does after every other value of some RAM bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int32

from games.errors import VeritariError
from oracle.effects import Measured
from oracle.emulator import silenced_stderr
from oracle.intervention import RamWrite
from oracle.output import Finals, Output
from oracle.responses import finals_of

N_VALUES = 256


@dataclass(frozen=True)
class Surface:
    """One row per address, one column per value that the byte is set to; 0 where it has that value already.

    Attributes:
        differences: y(do(RAM[address] := value)) - y(reference) of each output, in units of y.
        changed_bytes, changed_pixels: how many bytes and pixels differ from the reference run at the horizon.
        n_rollouts, n_frames: what measuring it cost.
    """

    differences: Int32[np.ndarray, "output address 256"]
    changed_bytes: Int32[np.ndarray, "address 256"]
    changed_pixels: Int32[np.ndarray, "address 256"]
    n_rollouts: int
    n_frames: int


def measure_surface(found: Measured, outputs: Sequence[Output], addresses: Sequence[int]) -> Surface:
    """Set each byte to each of its 255 other values, in a rollout of its own.

    Screens are kept for the values of one byte at a time.
    """
    rollouts, reference = found.rollouts, found.reference
    costs_before = rollouts.n_rollouts, rollouts.n_frames
    shape = (len(addresses), N_VALUES)
    differences = np.zeros((len(outputs), *shape), dtype=np.int32)
    changed_bytes, changed_pixels = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
    expected = [output.values(finals_of([reference], reference)) for output in outputs]
    for row, address in enumerate(addresses):
        # A present value of 255 must not be a number of eight bits, which numpy would count on from.
        others = np.delete(np.arange(N_VALUES), int(rollouts.ram[address]))
        finals = _finals(found, address, others.tolist())
        for index, output in enumerate(outputs):
            differences[index, row, others] = whole(output.values(finals) - expected[index])
        changed_bytes[row, others] = (finals.ram != reference.ram).sum(axis=1)
        changed_pixels[row, others] = finals.changed.sum(axis=(1, 2))
    n_rollouts, n_frames = rollouts.n_rollouts - costs_before[0], rollouts.n_frames - costs_before[1]
    return Surface(differences, changed_bytes, changed_pixels, n_rollouts, n_frames)


def _finals(found: Measured, address: int, values: Sequence[int]) -> Finals:
    with silenced_stderr():
        return finals_of([found.rollouts.run([RamWrite(address, value)]) for value in values], found.reference)


def whole(differences: Float[np.ndarray, " rollout"]) -> Int32[np.ndarray, " rollout"]:
    """The same as whole numbers, which all outputs of the machine are.

    Raises:
        VeritariError: one is not; rounding it would be a silent mistake.
    """
    numbers = differences.astype(np.int32)
    if not np.array_equal(numbers, differences):
        raise VeritariError(f"surface: expected whole numbers, got {differences[numbers != differences][0]}")
    return numbers


def joined(parts: Sequence[Surface]) -> Surface:
    """Surfaces of the same outputs, their addresses one after the other."""
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=-2)
        for name in ("differences", "changed_bytes", "changed_pixels")
    }
    return Surface(
        **arrays, n_rollouts=sum(part.n_rollouts for part in parts), n_frames=sum(part.n_frames for part in parts)
    )
