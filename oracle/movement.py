"""How do-values move the input of a network: few numbers of many, so only those that move are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int
from scipy.sparse import csr_array, vstack

from oracle.responses import effects_of_causes


@dataclass(frozen=True)
class Movement:
    """x(do(u := v)) - x(reference) of every do-value v that was tried, as a sparse matrix.

    Attributes:
        shifts: one row per do-value, one column per number of the input in row-major order.
        owners: the cause that each row belongs to.
        shape: of the input.
    """

    shifts: csr_array
    owners: Int[np.ndarray, " rollout"]
    shape: tuple[int, ...]

    @classmethod
    def of(
        cls,
        inputs: Sequence[Float32[np.ndarray, "*input"]],
        reference: Float32[np.ndarray, "*input"],
        owners: np.ndarray,
    ) -> "Movement":
        """From what a network was shown after every do-value, and in the reference run."""
        rows = [csr_array((each - reference).reshape(1, -1)) for each in inputs]
        return cls(_stacked(rows, reference.size), owners, reference.shape)

    @property
    def n_causes(self) -> int:
        return len(np.unique(self.owners))

    @property
    def size(self) -> Float[np.ndarray, " cause"]:
        """How much each cause moves the input: sum of |dx|, the mean over its do-values."""
        return self.project(np.ones(self.shape), signed=False)

    def project(self, attribution: Float[np.ndarray, "*input"], *, signed: bool) -> Float[np.ndarray, " cause"]:
        """The claim per cause of a pixel map A: |sum of A dx| where its sign counts, else sum of |A| |dx|.

        The mean over the do-values of a cause.
        """
        weights, shifts = attribution.ravel().astype(np.float64), self.shifts.astype(np.float64)
        claims = np.abs(shifts @ weights) if signed else abs(shifts) @ np.abs(weights)
        return effects_of_causes(np.asarray(claims), self.owners)

    def dense(self) -> Float32[np.ndarray, "rollout *input"]:
        """All of it, one array per do-value."""
        return np.asarray(self.shifts.toarray(), dtype=np.float32).reshape(-1, *self.shape)

    def arrays(self) -> dict[str, np.ndarray]:
        """Its parts, for an archive."""
        return {
            "moved_values": self.shifts.data,
            "moved_places": self.shifts.indices.astype(np.int32),
            "moved_starts": self.shifts.indptr.astype(np.int64),
            "moved_owners": self.owners.astype(np.int64),
            "moved_shape": np.array(self.shape, dtype=np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Movement":
        """From the parts, which are taken out of `arrays`."""
        data, places, starts, owners, shape = (
            arrays.pop(f"moved_{part}") for part in ("values", "places", "starts", "owners", "shape")
        )
        columns = int(np.prod(shape))
        shifts = csr_array((data, places, starts), shape=(len(starts) - 1, columns))
        return cls(shifts, owners, tuple(shape.tolist()))


def _stacked(rows: Sequence[Any], n_columns: int) -> csr_array:
    """One below the other, with sorted places, so that equal content gives equal bytes."""
    stacked = csr_array(vstack(rows, format="csr") if rows else csr_array((0, n_columns), dtype=np.float32))
    stacked.eliminate_zeros()
    stacked.sort_indices()
    return stacked
