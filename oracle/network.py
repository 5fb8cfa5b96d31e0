"""A neural network that looks at the screen, as a subject: frames -> preprocessing -> network -> one of its outputs."""

import hashlib
from collections.abc import Callable
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
    """

    name: str
    module: torch.nn.Module
    preprocess: Preprocess
    outputs: tuple[Output, ...]
    unmet: tuple[tuple[Regime, str], ...] = ()
    identity: str = ""

    def weights_sha256(self) -> str:
        """SHA-256 over names, types and values of parameters and buffers."""
        digest = hashlib.sha256()
        for name, value in self.module.state_dict().items():
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}\0".encode())
            digest.update(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def look(self, frames: Frames) -> Input:
        """What the network is given, without a batch axis.

        Raises:
            BrokenNetwork: the preprocessing raises, or gives no finite floating point tensor.
        """
        with self._naming_what_it_raises("preprocessing"), torch.no_grad():
            seen = self.preprocess(torch.from_numpy(frames.astype(np.float32)))
        if not isinstance(seen, torch.Tensor) or not seen.is_floating_point() or seen.numel() == 0:
            got = f"{seen.dtype} {tuple(seen.shape)}" if isinstance(seen, torch.Tensor) else type(seen).__name__
            raise BrokenNetwork(f"{self.name}: preprocessing: expected a floating point tensor, got {got}; mend it")
        if not torch.isfinite(seen).all():
            raise BrokenNetwork(f"{self.name}: preprocessing: expected finite numbers, got NaN or infinite; mend it")
        return np.asarray(seen.float().numpy())

    def values(self, seen: Input) -> Float[np.ndarray, " output"]:
        """y of every output for one input. Always a batch of one: larger batches differ in the last bits.

        Raises:
            BrokenNetwork: it raises, gives another shape, or NaN.
        """
        with self._naming_what_it_raises("network"), torch.no_grad():
            answer = self.module(self.batch(seen))
        n_needed = 1 + max((_column(output) for output in self.outputs), default=0)
        if not isinstance(answer, torch.Tensor) or answer.ndim != 2 or answer.shape[1] < n_needed:
            got = f"shape {tuple(answer.shape)}" if isinstance(answer, torch.Tensor) else type(answer).__name__
            raise BrokenNetwork(f"{self.name}: expected outputs (1, {n_needed} or more), got {got}; correct it")
        values = answer[0].double().numpy()[[_column(output) for output in self.outputs]]
        if not np.isfinite(values).all():
            raise BrokenNetwork(f"{self.name}: expected finite outputs, got NaN or infinite ones; check its weights")
        return np.asarray(values)

    def batch(self, seen: Input) -> torch.Tensor:
        """One input as a batch of one, in the type of the network's parameters."""
        dtype = next((parameter.dtype for parameter in self.module.parameters()), torch.float32)
        return torch.tensor(seen, dtype=dtype).unsqueeze(0)

    def _naming_what_it_raises(self, part: str) -> "_Naming":
        return _Naming(f"{self.name}: {part}")


@dataclass(frozen=True)
class _Naming:
    """Whatever a user's network raises is one line that names it."""

    what: str

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception):
            reason = " ".join(str(error).split())[:200]
            raise BrokenNetwork(
                f"{self.what}: expected an answer, got {type(error).__name__}: {reason}; mend it"
            ) from error


def _column(output: Output) -> int:
    if output.network_column is None:
        raise BrokenNetwork(f"output {output.name}: expected a column of the network, got none; name one")
    return output.network_column
