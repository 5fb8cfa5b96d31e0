"""Do-values of RAM bytes: what a byte is set to when its effect is measured under ram-v2.

Some are donors, values that the byte has had in the reference pool, the others spread evenly over all there are. How
well the columns of effects of two independent draws correlate is measured in `tests/oracle/test_do_values.py`.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from oracle.intervention import N_BYTES, Cause, Intervention, RamWrite

N_VALUES = 8
N_DONORS = 4

Pool = UInt8[np.ndarray, "frame byte"]


@dataclass(frozen=True)
class DoValues:
    """The values of one byte, all different and none the present one; donors first.

    `n_donors` of them occurred in the reference pool.
    """

    values: tuple[int, ...]
    n_donors: int


def draw_do_values(
    column: UInt8[np.ndarray, " frame"],
    *,
    generator: np.random.Generator,
    n_values: int = N_VALUES,
    n_donors: int = N_DONORS,
) -> DoValues:
    """Do-values of the byte whose value after every prefix frame is `column`; the last is the present one, b.

    Donors are the distinct other values, sorted; up to `n_donors` of them are taken systematically, from a random start
    in equal steps. The others lie one in each of equal strata of b + 1 .. b + 255, modulo 256 (without the donors,
    where these are all of a stratum).
    """
    present = int(column[-1])
    known = [value for value in np.unique(column).tolist() if value != present]
    count = min(n_donors, len(known))
    donors = [known[place] for place in _systematic(len(known), count, generator)]
    others = [int(generator.choice(free)) for free in _strata(present, donors, n_values - count)]
    return DoValues((*donors, *others), count)


def _strata(present: int, donors: list[int], n_strata: int) -> list[list[int]]:
    """All values but the present one and the donors, in so many runs, none of them empty."""
    if n_strata == 0:
        return []
    after = (present + np.arange(1, 256)) % 256
    runs = [[value for value in run.tolist() if value not in donors] for run in np.array_split(after, n_strata)]
    if all(runs):
        return runs
    # So many are wanted that donors are all there is in some run: the runs are those of what is left.
    left = [value for value in after.tolist() if value not in donors]
    return [run.tolist() for run in np.array_split(np.array(left), n_strata)]


def _systematic(n_known: int, count: int, generator: np.random.Generator) -> list[int]:
    """Every (n_known / count)-th place, from a random start."""
    if count == 0:
        return []
    step = n_known / count
    start = generator.random() * step
    # Rounding must not step over the end.
    return [min(int(start + index * step), n_known - 1) for index in range(count)]


def byte_causes(
    pool: Pool, *, generator: np.random.Generator, n_values: int = N_VALUES, n_donors: int = N_DONORS
) -> tuple[Cause, ...]:
    """One cause per RAM byte, `ram[0]` to `ram[127]`; removing it sets it to its first do-value."""
    causes = []
    for address in range(N_BYTES):
        drawn = draw_do_values(pool[:, address], generator=generator, n_values=n_values, n_donors=n_donors)
        first, *further = (RamWrite(address, value) for value in drawn.values)
        causes.append(
            cause_of(f"ram[{address}]", (first, *further), removal=first, address=address, off=drawn.n_donors == 0)
        )
    return tuple(causes)


def cause_of(
    label: str,
    interventions: tuple[Intervention, ...],
    *,
    removal: Intervention | None,
    address: int | None = None,
    off: bool = False,
) -> Cause:
    """A cause with several do-values."""
    first, *further = interventions
    return Cause(label, first, removal, address, vacuous=False, further=tuple(further), off_manifold=off)
