"""Outputs: the scalar that is explained, read from the last snapshot of a rollout."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, UInt8

from games.errors import VeritariError

Regime = Literal["content", "position"]
REGIMES: tuple[Regime, ...] = ("content", "position")


@dataclass(frozen=True)
class Output:
    """What y is.

    Attributes:
        name: `ram[54]` for the value of a byte, `changed_pixels` for the number of screen pixels that differ from the
            reference run (so that y of the reference is 0), `readout[54]` or another name for an output of a network.
        regime: `content` or `position`.
        ram_address: the byte, for a content output of the machine.
        network_column: which number, for an output of a network.
    """

    name: str
    regime: Regime
    ram_address: int | None
    network_column: int | None = None

    def values(
        self, final_ram: UInt8[np.ndarray, "rollout byte"], changed: Bool[np.ndarray, "rollout row column"]
    ) -> Float[np.ndarray, " rollout"]:
        """y of each rollout, from its final RAM and the pixels in which it differs from the reference run.

        Raises:
            VeritariError: it is an output of a network, which has to be asked.
        """
        if self.network_column is not None:
            raise VeritariError(f"output {self.name}: expected one of the machine, got a network's; ask the network")
        if self.ram_address is not None:
            return np.asarray(final_ram[:, self.ram_address], dtype=np.float64)
        return np.asarray(changed.sum(axis=(1, 2)), dtype=np.float64)


def content_output(ram_address: int) -> Output:
    """y = the value of a RAM byte at the horizon."""
    return Output(f"ram[{ram_address}]", "content", ram_address)


def changed_pixels_output() -> Output:
    """y = the number of pixels that differ from the reference run at the horizon."""
    return Output("changed_pixels", "position", None)


def network_output(name: str, regime: Regime, column: int) -> Output:
    """y = one number of a network that has looked at the frames after the intervention."""
    return Output(name, regime, None, column)
