"""From an attribution to a claim per cause: bytes go to their causes, pixels to what moves them (see `Movement`)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from harness.units import Claim
from oracle.intervention import Cause
from oracle.movement import Movement


def project(
    attribution: Float[np.ndarray, " number"], causes: Sequence[Cause], *, per_cause: bool
) -> Float[np.ndarray, " cause"]:
    """|attribution| per cause: a byte's value goes to each of its causes; causes outside RAM get 0 from a RAM map."""
    if per_cause:
        return np.asarray(np.abs(attribution))
    sizes = np.abs(attribution)
    return np.array([0.0 if cause.ram_address is None else sizes[cause.ram_address] for cause in causes])


def on_causes(answer: Claim, movement: Movement | None, *, domain: str, signed: bool) -> Claim:
    """What a method has answered, as a claim per cause: a pixel map is projected, anything else is one already."""
    if movement is None or domain != "pixels":
        return answer
    pixels = np.array(answer.values).reshape(movement.shape)
    return answer.model_copy(update={"values": tuple(movement.project(pixels, signed=signed).tolist())})
