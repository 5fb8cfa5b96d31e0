"""A neural network that looks at the screen, as a subject: frames -> preprocessing -> network -> one of its outputs."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32, UInt8

from games.errors import VeritariError
from oracle.output import Output, Regime

# The network sees the frames that follow the intervention, and nothing older.
N_FRAMES = 2
SIDE = 84
BRIGHTEST = 255
# How much an answer may change by rounding, as a share of the largest.
LIKE = 0.01

Frames = UInt8[np.ndarray, "frame row column"]
Input = Float32[np.ndarray, "*input"]
Preprocess = Callable[[torch.Tensor], torch.Tensor]


class BrokenNetwork(VeritariError):
    """A network that can't be asked: it raises, gives NaN, or has another shape than it says."""


def preprocess(frames: Float[torch.Tensor, "*batch frame row column"]) -> Float[torch.Tensor, "*batch frame 84 84"]:
    """Luminance 0..255 of a screen of any size, resized to 84 x 84 by area, in [0, 1]; differentiable.

    The same in training and in scoring.

    >>> preprocess(torch.full((2, 250, 160), 51.0)).unique()
    tensor([0.2000])
    """
    pictures = frames.reshape(-1, 1, *frames.shape[-2:])
    resized = torch.nn.functional.interpolate(pictures, size=(SIDE, SIDE), mode="area")
    return resized.reshape(*frames.shape[:-2], SIDE, SIDE) / BRIGHTEST


@dataclass(frozen=True)
class Network:
    """A network and what is explained of it.

    Attributes:
        name: in records: `readout`, or what the user wrote.
        module: from a batch of inputs to (B, K).
        preprocess: from luminance (frame, row, column), 0..255 in float32, to one input of any shape.
        outputs: what is explained, each with the column of its number.
        unmet: regimes that it has no output for, with the reason.
        identity: equal identities, equal networks; empty where nobody can vouch for that.
        names_all: whether `outputs` are all columns that the module has.
    """

    name: str
    module: torch.nn.Module
    preprocess: Preprocess
    outputs: tuple[Output, ...]
    unmet: tuple[tuple[Regime, str], ...] = ()
    identity: str = ""
    names_all: bool = False

    def fingerprint(self, seen: Input) -> str:
        """SHA-256 over names, types and values of parameters and buffers, and over what it says of one input.

        Two that are built alike agree on one machine.
        """
        digest = hashlib.sha256(self.values(seen).tobytes())
        for name, value in self.module.state_dict().items():
            if isinstance(value, torch.Tensor):
                digest.update(f"{name} {value.dtype} {tuple(value.shape)}\0".encode())
                digest.update(byte_text(value))
        return digest.hexdigest()

    def look(self, frames: Frames) -> Input:
        """What the network is given, without a batch axis.

        Raises:
            BrokenNetwork: the preprocessing raises, or gives no finite floating point tensor.
        """
        with _naming(f"{self.name}: preprocessing"), torch.no_grad():
            seen = self.preprocess(torch.from_numpy(frames.astype(np.float32)))
        if not isinstance(seen, torch.Tensor) or not seen.is_floating_point() or seen.numel() == 0:
            got = f"{seen.dtype} {tuple(seen.shape)}" if isinstance(seen, torch.Tensor) else type(seen).__name__
            raise BrokenNetwork(f"{self.name}: preprocessing: expected a floating point tensor, got {got}; mend it")
        # A copy: the preprocessing may give the same tensor again.
        single = np.array(seen.float().numpy())
        if not np.isfinite(single).all():
            raise BrokenNetwork(f"{self.name}: preprocessing: expected finite numbers, got NaN or infinite; mend it")
        return single

    def values(self, seen: Input) -> Float[np.ndarray, " output"]:
        """y of every output for one input. Always a batch of one: larger batches differ in the last bits.

        Raises:
            BrokenNetwork: it raises, gives another shape, or NaN.
        """
        return np.asarray(self._rows(self.batch(seen))[0])

    def require_steady(self, seen: Input, other: Input) -> None:
        """Refuse a network that says something else of an input beside another one, or after it.

        Raises:
            BrokenNetwork: it does: it normalises over the batch, draws random numbers, or keeps a state.
        """
        alone = self.values(seen)
        beside = self._rows(torch.cat([self.batch(seen), self.batch(other)]))[0]
        # Larger batches may differ by rounding, and half precision rounds early.
        if not np.allclose(beside, alone, rtol=LIKE, atol=LIKE * float(np.abs(alone).max(initial=0.0))):
            raise BrokenNetwork(f"{self.name}: expected the same answer in a larger batch, got another; make it steady")
        if not np.array_equal(self.values(seen), alone):
            raise BrokenNetwork(f"{self.name}: expected the same answer to the same frames, got others; make it steady")

    def _rows(self, batch: torch.Tensor) -> Float[np.ndarray, "row output"]:
        with _naming(f"{self.name}: network"), torch.no_grad():
            answer = self.module(batch)
        columns = [column_of(output) for output in self.outputs]
        n_needed = 1 + max(columns, default=0)
        is_matrix = isinstance(answer, torch.Tensor) and answer.ndim == 2 and len(answer) == len(batch)
        fits = is_matrix and (answer.shape[1] == n_needed if self.names_all else answer.shape[1] >= n_needed)
        if not fits:
            got = f"shape {tuple(answer.shape)}" if isinstance(answer, torch.Tensor) else type(answer).__name__
            wanted = f"({len(batch)}, {n_needed}{'' if self.names_all else ' or more'})"
            raise BrokenNetwork(f"{self.name}: expected outputs {wanted}, got {got}; correct it")
        rows = answer.double().numpy()[:, columns]
        if not np.isfinite(rows).all():
            raise BrokenNetwork(f"{self.name}: expected finite outputs, got NaN or infinite ones; check its weights")
        return np.asarray(rows)

    def batch(self, seen: Input) -> torch.Tensor:
        """One input as a batch of one, in the type of the network's parameters."""
        return torch.tensor(seen, dtype=input_dtype(self.module)).unsqueeze(0)


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Whatever a user's network raises is one line that names it."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise BrokenNetwork(f"{what}: expected an answer, got {type(error).__name__}: {reason}; mend it") from error


def byte_text(value: torch.Tensor) -> bytes:
    """The bytes of a tensor of any type; equal for NaN as well."""
    return bytes(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())


def input_dtype(module: torch.nn.Module) -> torch.dtype:
    """The type of a network's input: that of its floating point parameters, float32 if it has none."""
    floating = (parameter.dtype for parameter in module.parameters() if parameter.is_floating_point())
    return next(floating, torch.float32)


def column_of(output: Output) -> int:
    """Which number of the network an output is.

    Raises:
        BrokenNetwork: it is one of the machine.
    """
    if output.network_column is None:
        raise BrokenNetwork(f"output {output.name}: expected one of the network, got one of the machine; name another")
    return output.network_column
