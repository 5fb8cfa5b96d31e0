"""The question that is put to every method: data and a callable, nothing that reaches the emulator or the answer."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32, UInt8
from pydantic import BaseModel, ConfigDict, Field

from oracle.archive import naming_damage, pack, unpack
from oracle.intervention import Cause, Intervention
from oracle.output import Output, Regime
from oracle.state import Trace

Rollout = Callable[[Sequence[Intervention]], float]


@dataclass(frozen=True)
class SamplerGeometry:
    """Where a sprite is drawn and how its position byte moves it, for the bilinear-sampler read.

    Attributes:
        address: the position byte p; `value` is its value b_p at f*.
        cell: the pixel (row, column) that the read looks at.
        origin: smallest row and smallest column (py0, px0) of the sprite's changed pixels.
        offsets: the sprite's pixels (row, column) relative to `origin`.
    """

    address: int
    value: int
    cell: tuple[int, int]
    origin: tuple[int, int]
    offsets: tuple[tuple[int, int], ...]


class Question(BaseModel):
    """One game-state as plain values: all that a method may know of it, and no effect."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    protocol: str
    subject: str
    game: str
    state: int
    trace: Trace
    causes: tuple[Cause, ...]
    outputs: tuple[Output, ...]
    geometry: SamplerGeometry | None
    # Of subject `network`: which one is explained, and a hash of its weights.
    network: str = ""
    network_sha256: str = ""
    # RAM after every frame of the prefix. Kept out of the JSON text: an array travels beside it.
    reference_pool: UInt8[np.ndarray, "frame byte"] = Field(exclude=True)
    # Of subject `network`: its input in the reference run, without a batch axis; empty for the machine.
    frames: Float32[np.ndarray, "*input"] = Field(default_factory=lambda: np.zeros(0, np.float32), exclude=True)

    @property
    def ram(self) -> UInt8[np.ndarray, " byte"]:
        """RAM at f*."""
        return np.asarray(self.reference_pool[-1])

    def to_bytes(self) -> bytes:
        """The archive of this question."""
        return pack(json.loads(self.model_dump_json()), self.arrays())

    def arrays(self) -> dict[str, np.ndarray]:
        """What stands beside the JSON text."""
        return {"reference_pool": self.reference_pool, "frames": self.frames}

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> "Question":
        """The question of an archive; `name` is used in errors.

        Raises:
            DamagedFile: not an archive of ours.
        """
        values, arrays = unpack(content, name)
        with naming_damage(name):
            return cls(**values, **arrays)


@dataclass(frozen=True)
class Task:
    """One output of one game-state, as a method sees it.

    Attributes:
        ram: RAM at f*, float64, values 0..255.
        causes: what the claim will be compared on, without effects.
        read: what is differentiated, from (..., *input) to (..., 1): on the machine a stand-in for the output, from
            RAM; on a network the explained output itself, from its input.
        reference_pool: RAM after every frame of the prefix.
        frames: of subject `network`, its input in the reference run, float32; None on the machine.
        network: the whole network, frozen, whose layers `read` runs; None on the machine.
        rollout: y after the given interventions, measured on the machine; counted, and limited by a budget.
    """

    protocol: str
    subject: str
    game: str
    state: int
    output: str
    regime: Regime
    ram: Float[torch.Tensor, " byte"]
    causes: tuple[Cause, ...]
    read: torch.nn.Module
    reference_pool: Float[torch.Tensor, "frame byte"]
    rollout: Rollout
    frames: Float[torch.Tensor, "*input"] | None = None
    network: torch.nn.Module | None = None

    @property
    def point(self) -> Float[torch.Tensor, "*input"]:
        """Where `read` is differentiated: the network's input, or RAM."""
        return self.ram if self.frames is None else self.frames
