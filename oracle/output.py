"""Outputs: the scalar that is explained, read from the last snapshot of a rollout."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, UInt8

from games.errors import VeritariError
from oracle.template import Template, displacement

Regime = Literal["content", "position"]
REGIMES: tuple[Regime, ...] = ("content", "position")


@dataclass(frozen=True)
class Finals:
    """What rollouts end with: RAM and screen at the horizon, beside the screen of the reference run."""

    ram: UInt8[np.ndarray, "rollout byte"]
    screens: UInt8[np.ndarray, "rollout row column"]
    reference_screen: UInt8[np.ndarray, "row column"]

    @property
    def changed(self) -> Bool[np.ndarray, "rollout row column"]:
        """The pixels in which each differs from the reference run."""
        return np.asarray(self.screens != self.reference_screen)


@dataclass(frozen=True)
class Output:
    """What y is.

    Attributes:
        name: `ram[54]` for the value of a byte, `changed_pixels` for the number of screen pixels that differ from the
            reference run (so that y of the reference is 0), `sprite[49,54]` for the displacement of the sprite that
            these bytes translate, `readout[54]` or another name for an output of a network.
        regime: `content` or `position`.
        ram_address: the byte, for a content output of the machine.
        network_column: which number, for an output of a network.
        template: the sprite to be found on the screen, for a displacement.
    """

    name: str
    regime: Regime
    ram_address: int | None
    network_column: int | None = None
    template: Template | None = None

    def values(self, finals: Finals) -> Float[np.ndarray, " rollout"]:
        """y of each rollout.

        Raises:
            VeritariError: it is an output of a network, which has to be asked.
        """
        if self.network_column is not None:
            raise VeritariError(f"output {self.name}: expected one of the machine, got a network's; ask the network")
        if self.ram_address is not None:
            return np.asarray(finals.ram[:, self.ram_address], dtype=np.float64)
        if self.template is not None:
            return displacement(self.template, finals.screens)[0]
        return np.asarray(finals.changed.sum(axis=(1, 2)), dtype=np.float64)


def content_output(ram_address: int) -> Output:
    """y = the value of a RAM byte at the horizon."""
    return Output(f"ram[{ram_address}]", "content", ram_address)


def changed_pixels_output() -> Output:
    """y = the number of pixels that differ from the reference run at the horizon."""
    return Output("changed_pixels", "position", None)


def displacement_output(template: Template) -> Output:
    """y = how far the sprite has been displaced, in pixels."""
    addresses = ",".join(str(byte.address) for byte in template.bytes)
    return Output(f"sprite[{addresses}]", "position", None, template=template)


def network_output(name: str, regime: Regime, column: int) -> Output:
    """y = one number of a network that has looked at the frames after the intervention."""
    return Output(name, regime, None, column)
