"""The control `hub`: what each cause does to other bytes in general, not to the one that is asked about.

A method above `random` but not above `hub` knows which bytes matter, not which matter for this output.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

# |effect| of every cause on every RAM byte, taken as a content output.
RamEffects = Float[np.ndarray, "cause byte"]
Bytes = Bool[np.ndarray, " byte"]
# The RAM byte of each cause; -1 for causes outside RAM.
Addresses = Int[np.ndarray, " cause"]

LEAST_MOVERS = 3


def eligible_bytes(ram_effects: RamEffects, addresses: Addresses, *, least: int = LEAST_MOVERS) -> Bytes:
    """The bytes that at least `least` other bytes move; causes outside RAM don't count.

    >>> eligible_bytes(np.array([[0.0, 2.0], [1.0, 1.0], [3.0, 0.0]]), np.array([0, 1, -1]), least=1).tolist()
    [True, True]
    """
    n_bytes = ram_effects.shape[1]
    moved_by = np.zeros((n_bytes, n_bytes), dtype=np.bool_)
    in_ram = addresses >= 0
    # Several causes of one byte are one byte that moves.
    np.logical_or.at(moved_by, addresses[in_ram], ram_effects[in_ram] > 0)
    np.fill_diagonal(moved_by, val=False)
    return np.asarray(moved_by.sum(axis=0) >= least)


def hub_claim(
    ram_effects: RamEffects, *, eligible: Bytes, addresses: Addresses, output_byte: int | None
) -> Float[np.ndarray, " cause"]:
    """Of each cause, the mean share of the largest effect that it has on the other eligible bytes, in [0, 1].

    Left out are the byte that is asked about (`output_byte`; None for a position output) and the cause's own byte; 0
    where no byte is left. A byte that nothing moves counts with a share of 0.

    >>> effects = np.array([[8.0, 2.0, 0.0], [1.0, 4.0, 5.0], [2.0, 1.0, 5.0]])
    >>> hub_claim(effects, eligible=np.full(3, True), addresses=np.array([0, 1, 2]), output_byte=2).tolist()
    [0.5, 0.125, 0.25]
    """
    largest = ram_effects.max(axis=0)
    shares = ram_effects / np.where(largest > 0, largest, 1.0)
    every_byte = np.arange(len(eligible))
    counted = eligible & (every_byte != output_byte) & (every_byte != addresses[:, np.newaxis])
    return np.asarray((shares * counted).sum(axis=1) / np.maximum(counted.sum(axis=1), 1))
