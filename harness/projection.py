"""From an attribution to a claim per cause: bytes go to their causes, pixels to what moves them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from harness.units import Claim
from oracle.intervention import Cause


def project(
    attribution: Float[np.ndarray, " number"], causes: Sequence[Cause], *, per_cause: bool
) -> Float[np.ndarray, " cause"]:
    """|attribution| per cause: a byte's value goes to each of its causes; causes outside RAM get 0 from a RAM map."""
    if per_cause:
        return np.asarray(np.abs(attribution))
    sizes = np.abs(attribution)
    return np.array([0.0 if cause.ram_address is None else sizes[cause.ram_address] for cause in causes])


def project_map(
    attribution: Float[np.ndarray, "*input"], moved: Float[np.ndarray, "cause *input"], *, signed: bool
) -> Float[np.ndarray, " cause"]:
    """The claim per cause of a pixel map A, through the pixels dx that each cause moves.

    Signed: |sum of A dx|, what moves up cancels what moves down. Unsigned: sum of |A| |dx|.

    >>> project_map(np.array([1.0, -2.0]), np.array([[1.0, 1.0], [0.5, 0.0]]), signed=True).tolist()
    [1.0, 0.5]
    """
    weights, shifts = attribution.ravel(), moved.reshape(len(moved), -1).astype(np.float64)
    claim = np.abs(shifts @ weights) if signed else np.abs(shifts) @ np.abs(weights)
    return np.asarray(claim, dtype=np.float64)


def on_causes(answer: Claim, moved: Float[np.ndarray, "cause *input"], *, domain: str, signed: bool) -> Claim:
    """What a method has answered, as a claim per cause: a pixel map is projected, anything else is one already."""
    if domain != "pixels":
        return answer
    pixels = np.array(answer.values).reshape(moved.shape[1:])
    return answer.model_copy(update={"values": tuple(project_map(pixels, moved, signed=signed).tolist())})
