"""Train the readout of a game on random play, and measure how well it reads each byte from blocks that were held out.

Nothing of a held-out block is trained on, but two traces: its first example shows the frame before the block as well,
and the mean pixel that is taken off is that of all frames.
"""

from collections.abc import Callable
from dataclasses import dataclass

import ale_py
import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from games.catalog import Game
from oracle.emulator import Machine
from oracle.random_play import Play, random_play
from oracle.readout import ByteReadout, ReadoutCard, ReadoutNetwork

TRAINING_FRAMES = 6000
# Neighbouring frames look alike, so whole blocks are held out.
BLOCK_FRAMES = 50
HELD_OUT_SHARE = 0.2
N_EPOCHS = 6
BATCH = 64
LARGEST_STEP = 4e-3


@dataclass(frozen=True)
class Examples:
    """Pairs of consecutive frames, and the bytes after the second one.

    Attributes:
        pictures: all frames; example i shows frames `last[i] - 1` and `last[i]`.
        targets: the named bytes, 0..255.
        held_out: examples kept from training.
    """

    pictures: Float[torch.Tensor, "frame 84 84"]
    last: Int[torch.Tensor, " example"]
    targets: Float[torch.Tensor, "example byte"]
    held_out: Bool[torch.Tensor, " example"]

    def seen(self, chosen: Int[torch.Tensor, " batch"]) -> Float[torch.Tensor, "batch 2 84 84"]:
        """The inputs of some examples."""
        last = self.last[chosen]
        return torch.stack([self.pictures[last - 1], self.pictures[last]], dim=1)


def train_readout(
    game: Game, fresh_machine: Callable[[], Machine], *, seed: int, n_frames: int = TRAINING_FRAMES
) -> tuple[ReadoutNetwork, ReadoutCard]:
    """Weights and card of one game; the same seed gives the same weights on one machine.

    Raises:
        InvalidState: random play ends before there is anything to see.
    """
    play = random_play(fresh_machine, n_frames, generator=np.random.default_rng([seed, 0]))
    examples = split_examples(play, [byte.address for byte in game.named_bytes], np.random.default_rng([seed, 1]))
    module = fit(examples, generator=torch.Generator().manual_seed(seed))
    scores = held_out_r2(module, examples)
    card = ReadoutCard(
        game=game.rom_id,
        rom_md5=game.rom_md5,
        seed=seed,
        n_frames=len(play.pictures),
        n_boots=play.n_boots,
        n_frames_unlike_first=play.n_frames_unlike_first,
        versions={"ale-py": ale_py.__version__, "torch": torch.__version__.partition("+")[0]},
        bytes=tuple(
            ByteReadout(address=byte.address, name=byte.name, r2=None if np.isnan(score) else float(score))
            for byte, score in zip(game.named_bytes, scores, strict=True)
        ),
        weights_sha256="",
    )
    return module, card


def split_examples(play: Play, addresses: list[int], generator: np.random.Generator) -> Examples:
    """All pairs within one boot; a fifth of the blocks of 50 frames is held out, drawn at random."""
    last = np.flatnonzero(~play.starts)
    block = last // BLOCK_FRAMES
    blocks = np.unique(block)
    n_held_out = max(1, round(HELD_OUT_SHARE * len(blocks)))
    held_out = np.isin(block, generator.choice(blocks, size=n_held_out, replace=False))
    return Examples(
        pictures=torch.from_numpy(play.pictures),
        last=torch.from_numpy(last),
        targets=torch.from_numpy(play.ram[last][:, addresses].astype(np.float32)),
        held_out=torch.from_numpy(held_out),
    )


def fit(examples: Examples, *, generator: torch.Generator) -> ReadoutNetwork:
    """Least squares on standardised bytes by Adam, with a step that rises and falls once."""
    training = torch.nonzero(~examples.held_out).squeeze(1)
    module = _new_network(examples, training, generator)
    wanted = (examples.targets - module.get_buffer("mean")) / module.get_buffer("scale")
    n_steps = N_EPOCHS * -(-len(training) // BATCH)
    optimiser = torch.optim.Adam(module.parameters(), lr=LARGEST_STEP)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=LARGEST_STEP, total_steps=n_steps)
    for _ in range(N_EPOCHS):
        for chosen in training[torch.randperm(len(training), generator=generator)].split(BATCH):
            optimiser.zero_grad()
            loss = (module.standardised(examples.seen(chosen)) - wanted[chosen]).square().mean()
            loss.backward()
            optimiser.step()
            schedule.step()
    return module.eval()


def _new_network(examples: Examples, training: torch.Tensor, generator: torch.Generator) -> ReadoutNetwork:
    module = ReadoutNetwork(examples.targets.shape[1])
    for part in module.modules():
        if isinstance(part, torch.nn.Conv2d | torch.nn.Linear):
            torch.nn.init.kaiming_uniform_(part.weight, nonlinearity="relu", generator=generator)
            torch.nn.init.zeros_(part.bias)  # type: ignore[arg-type]  # both kinds are made with one
    targets = examples.targets[training]
    deviation = targets.std(dim=0, correction=0)
    module.get_buffer("mean").copy_(targets.mean(dim=0))
    # A byte that never changes is predicted as it is.
    module.get_buffer("scale").copy_(torch.where(deviation > 0, deviation, 1.0))
    module.get_buffer("centre").copy_(examples.pictures.mean())
    return module


@torch.no_grad()
def held_out_r2(module: ReadoutNetwork, examples: Examples) -> Float[np.ndarray, " byte"]:
    """1 - (squared error) / (variation about the mean) per byte, on what was held out; NaN where nothing varies."""
    chosen = torch.nonzero(examples.held_out).squeeze(1)
    predicted = torch.cat([module(examples.seen(part)) for part in chosen.split(BATCH)]).double().numpy()
    targets = examples.targets[chosen].double().numpy()
    errors = np.square(predicted - targets).sum(axis=0)
    variation = np.square(targets - targets.mean(axis=0)).sum(axis=0)
    return np.where(variation > 0, 1 - errors / np.where(variation > 0, variation, 1), np.nan)
