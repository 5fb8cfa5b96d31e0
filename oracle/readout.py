"""Readouts: one small CNN per game that looks at the screen and predicts the named bytes."""

import hashlib
import math
from pathlib import Path

import torch
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save

from games.catalog import Game
from oracle.errors import DamagedFile
from oracle.footprint import names_a_position
from oracle.network import N_FRAMES, SIDE, Network, preprocess
from oracle.output import REGIMES, Regime, network_output
from oracle.store import write_atomically

NAME = "readout"
FOLDER = Path(__file__).parent / "readouts"
# A regime needs a byte that the network reads at least this well from frames it was not trained on.
NEEDED_R2 = 0.5
N_CHANNELS = (8, 16, 16)


class ReadoutNetwork(torch.nn.Module):
    """Three convolutions of stride 2 and one linear head; y in units of the byte, 0..255.

    The head predicts standardised values; the last step gives them mean and scale back. `centre`, the mean pixel, is
    taken off first: on a bright screen the network does not learn without it.
    """

    def __init__(self, n_bytes: int) -> None:
        super().__init__()
        first, second, third = N_CHANNELS
        # Separate modules: methods that hook a ReLU need each for itself.
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(N_FRAMES, first, kernel_size=5, stride=2, padding=2),
            torch.nn.ReLU(),
            torch.nn.Conv2d(first, second, kernel_size=3, stride=2, padding=1),
            torch.nn.ReLU(),
            torch.nn.Conv2d(second, third, kernel_size=3, stride=2, padding=1),
            torch.nn.ReLU(),
        )
        side = -(-SIDE // 8)
        self.head = torch.nn.Linear(third * side * side, n_bytes)
        self.register_buffer("centre", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(n_bytes))
        self.register_buffer("scale", torch.ones(n_bytes))

    def standardised(self, seen: Float[torch.Tensor, "batch frame 84 84"]) -> Float[torch.Tensor, "batch byte"]:
        """Predictions in standard deviations of each byte."""
        predicted: torch.Tensor = self.head(self.features(seen - self.get_buffer("centre")).flatten(1))
        return predicted

    def forward(self, seen: Float[torch.Tensor, "batch frame 84 84"]) -> Float[torch.Tensor, "batch byte"]:
        return self.standardised(seen) * self.get_buffer("scale") + self.get_buffer("mean")


class ByteReadout(BaseModel):
    """How well one byte is read: R2 on frames that were held out; None where it never changed there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: int
    name: str
    r2: float | None


class ReadoutCard(BaseModel):
    """What a game's weights are and where they come from; lies beside them as JSON.

    Attributes:
        n_frames, n_boots: frames it was trained and tested on, and how often the console was switched on for them.
        n_frames_unlike_first: frames whose picture differs from the first one: has play left the title screen?
        weights_sha256: of the weights file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    game: str
    rom_md5: str
    seed: int
    n_frames: int
    n_boots: int
    n_frames_unlike_first: int
    versions: dict[str, str]
    bytes: tuple[ByteReadout, ...]
    weights_sha256: str

    @property
    def n_read_well(self) -> int:
        """Bytes that reach the R2 that is needed."""
        return sum(each.r2 is not None and each.r2 >= NEEDED_R2 for each in self.bytes)

    def best(self, regime: Regime) -> ByteReadout | None:
        """The byte of this regime that is read best, the first of equals; None where the game has no such byte."""
        of_regime = [each for each in self.bytes if _regime(each.name) == regime and each.r2 is not None]
        return max(of_regime, key=lambda each: each.r2 or 0.0, default=None)

    def chosen(self, regime: Regime) -> ByteReadout | None:
        """The byte that is explained in this regime; None where none is read well enough."""
        best = self.best(regime)
        return best if best and best.r2 is not None and best.r2 >= NEEDED_R2 else None

    def shortfall(self, regime: Regime) -> str:
        """Why no byte is explained in this regime."""
        best = self.best(regime)
        is_named = any(_regime(each.name) == regime for each in self.bytes)
        nothing = "none of them changes in play" if is_named else "the game names none"
        # Rounded down: what falls short must not look as if it did not.
        found = f"the best, {best.name}, has {math.floor((best.r2 or 0.0) * 1000) / 1000}" if best else nothing
        return f"readout: no {regime} byte with held-out R2 >= {NEEDED_R2}: {found}"


def _regime(name: str) -> Regime:
    return "position" if names_a_position(name) else "content"


def card_path(rom_id: str, folder: Path = FOLDER) -> Path:
    """Where the card of a game lies or would lie."""
    return folder / f"{rom_id}.json"


def weights_path(rom_id: str, folder: Path = FOLDER) -> Path:
    """Where the weights of a game lie or would lie."""
    return folder / f"{rom_id}.safetensors"


def has_readout(rom_id: str, folder: Path = FOLDER) -> bool:
    """Whether weights were trained for this game."""
    return card_path(rom_id, folder).exists()


def read_card(rom_id: str, folder: Path = FOLDER) -> ReadoutCard:
    """The card of a game.

    Raises:
        DamagedFile: missing, or no card.
    """
    path = card_path(rom_id, folder)
    try:
        return ReadoutCard.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise DamagedFile(
            f"{path}: expected the card of a readout, got {_first_line(error)}; {_advice(rom_id)}"
        ) from error


def load_readout(game: Game, folder: Path = FOLDER) -> Network:
    """The readout of a game, with the outputs that are explained.

    Raises:
        DamagedFile: card or weights are missing or damaged, or belong to another ROM.
    """
    card, path = read_card(game.rom_id, folder), weights_path(game.rom_id, folder)
    if card.rom_md5 != game.rom_md5:
        raise DamagedFile(
            f"{path}: expected a readout of ROM {game.rom_md5}, got one of {card.rom_md5}; {_advice(game.rom_id)}"
        )
    try:
        content = path.read_bytes()
        if (found := hashlib.sha256(content).hexdigest()) != card.weights_sha256:
            raise ValueError(f"SHA-256 {found[:12]} instead of {card.weights_sha256[:12]}")
        module = ReadoutNetwork(len(card.bytes))
        module.load_state_dict(load(content))
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise DamagedFile(f"{path}: expected its weights, got {_first_line(error)}; {_advice(game.rom_id)}") from error
    chosen = [(regime, card.chosen(regime)) for regime in REGIMES]
    columns = {each.address: column for column, each in enumerate(card.bytes)}
    return Network(
        name=NAME,
        module=module.eval().requires_grad_(requires_grad=False),
        preprocess=preprocess,
        outputs=tuple(
            network_output(f"readout[{byte.address}]", regime, columns[byte.address]) for regime, byte in chosen if byte
        ),
        unmet=tuple((regime, card.shortfall(regime)) for regime, byte in chosen if not byte),
        identity=card.weights_sha256,
    )


def save_readout(module: ReadoutNetwork, card: ReadoutCard, folder: Path) -> None:
    """Write weights and card; `card.weights_sha256` is filled in."""
    content = save({name: value.contiguous() for name, value in module.state_dict().items()})
    signed = card.model_copy(update={"weights_sha256": hashlib.sha256(content).hexdigest()})
    write_atomically(weights_path(card.game, folder), content)
    # The card last: where it is, the weights are.
    write_atomically(card_path(card.game, folder), (signed.model_dump_json(indent=1) + "\n").encode())


def _first_line(error: Exception) -> str:
    return " ".join((getattr(error, "strerror", None) or str(error)).split())[:120]


def _advice(rom_id: str) -> str:
    return f"train it with: veritari readouts train --games {rom_id}"
