"""A console of six RAM cells whose effects are known on paper, behind the emulator's interface.

In every frame the ball moves by what the cells and the action say; all sums are taken modulo 256:

| address | name     | at boot | part in every frame                             | kind of cause                     |
|---------|----------|---------|-------------------------------------------------|-----------------------------------|
| 0       | `ball_x` | 104     | keeps its value; column of the sprite, mod 10   | linear, +1 per unit               |
| 1       | `drag`   | 1       | `ball_x -= drag`                                | linear, -1 per unit and frame     |
| 2       | `idle`   | 7       | none                                            | irrelevant                        |
| 3       | `late`   | 2       | `ball_x += min(late two frames ago, 6)`         | acts after two frames, saturates  |
| 4       | `left`   | 0       | `ball_x += left * right`                        | acts only together with `right`   |
| 5       | `right`  | 0       | `ball_x += left * right`                        | acts only together with `left`    |

The action RIGHT adds 1 to `ball_x` and earns a reward of 1. The screen has 8 rows and 10 columns in the colour of
register COLUBK; the sprite covers rows 3 and 4 of four columns from `ball_x mod 10` on, round the edge. Moving it by d
columns (the short way round) changes 4 min(d, 4) pixels.

Under `ToyProtocol` the ball stands at 108 at f* and at 113 four frames later (4 x (2 - 1), and one RIGHT). So the
effects, content (`ball_x`) and position (changed pixels), are those of `PAPER_EFFECTS`.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from games.catalog import Game, NamedByte
from games.errors import unknown_name
from oracle.footprint import sampler_geometry
from oracle.intervention import ActionWrite, Cause, RamWrite, RegisterWrite
from oracle.network import Network
from oracle.output import Output, changed_pixels_output, content_output, network_output
from oracle.removals import Removals
from oracle.responses import Responses
from oracle.rollout import ExactRollouts
from oracle.state import Trace
from oracle.task import SamplerGeometry

BALL_X, DRAG, IDLE, LATE, LEFT, RIGHT_HALF = range(6)
CELL_NAMES = ("ball_x", "drag", "idle", "late", "left", "right")
BOOT_RAM = (104, 1, 7, 2, 0, 0)
LATE_LIMIT = 6

N_ROWS, N_COLUMNS = 8, 10
SPRITE_ROWS = slice(3, 5)
SPRITE_WIDTH = 4
SPRITE_COLOUR = 0x1F
BOOT_BACKGROUND = 0x80

RIGHT = 3
PREFIX = (0, RIGHT, 0, 0, RIGHT, 0)
TAIL = (0, RIGHT, 0, 0)
BALL_AT_STATE = 108
BALL_AT_HORIZON = 113

# Cause, effect on `ball_x`, effect on the number of changed pixels.
PAPER_EFFECTS = (
    ("ram[0]:set", 17, 12),  # 17 columns are 3 the short way round
    ("ram[0]:occlude", -108, 8),  # 113 - 108 = 5, two columns right of 3
    ("ram[1]:set", -68, 8),  # four frames of 17; 68 columns are 2
    ("ram[1]:occlude", 4, 16),  # four frames of 1
    ("ram[2]:set", 0, 0),
    ("ram[2]:occlude", 0, 0),
    ("ram[3]:set", 8, 8),  # the last two of four frames, min(19, 6) - 2 each
    ("ram[3]:occlude", -4, 16),  # the last two of four frames, 0 - 2 each
    ("ram[4]:set", 0, 0),  # 17 * 0
    ("ram[4]:occlude", 0, 0),
    ("ram[5]:set", 0, 0),  # 0 * 17
    ("ram[5]:occlude", 0, 0),
    ("tia[COLUBK]:set", 0, 72),  # 80 pixels less the sprite's 8
    ("joystick:RIGHT", 1, 4),
)

# A network that looks at one pixel says its brightness in the second frame. In the reference run the ball stands at
# 109 and 111, so the sprite covers columns 1 to 4, and the pixel beside it has the colour of the background.
WATCHED_PIXEL = (1, 3, 5)
# Cause, effect on that brightness. Only these causes move a pixel within two frames; the sprite is 97 darker.
PAPER_NETWORK_EFFECTS = (
    ("ram[0]:set", 0),  # 128: columns 8, 9, 0, 1
    ("ram[0]:occlude", -97),  # 3: columns 3 to 6
    ("ram[1]:set", 0),  # 34 less, 77: columns 7, 8, 9, 0
    ("ram[1]:occlude", -97),  # 2 more, 113: columns 3 to 6
    ("tia[COLUBK]:set", -114),  # 14 instead of 128
    ("joystick:RIGHT", -97),  # 1 more, 112: columns 2 to 5
)

# What a `PoisonedMachine` takes ill when it is written to `idle`.
BRIEF_POISON, SCREEN_POISON, STATE_POISON, LASTING_POISON = 252, 253, 254, 255


@dataclass(frozen=True)
class ToyCheckpoint:
    """All of the machine's state but its screen, as on the real console."""

    ram: tuple[int, ...]
    late_values: tuple[int, int]
    background: int
    n_frames: int


class ToyMachine:
    """The console of the table above. `boot_ball_x` and `last_frame` make its unsteady and its short-lived sisters."""

    def __init__(self, boot_ball_x: int = BOOT_RAM[BALL_X], last_frame: int | None = None) -> None:
        self._last_frame = last_frame
        self.restore(ToyCheckpoint((boot_ball_x, *BOOT_RAM[1:]), (0, 0), BOOT_BACKGROUND, n_frames=0))
        self._screen = self._drawn()

    def act(self, action: int) -> float:
        if self.terminal():
            return 0.0
        pressed = action == RIGHT
        newest, oldest = self._late_values
        pushes = int(pressed) - self._ram[DRAG] + min(oldest, LATE_LIMIT) + self._ram[LEFT] * self._ram[RIGHT_HALF]
        self._ram[BALL_X] = (self._ram[BALL_X] + pushes) % 256
        self._late_values = (self._ram[LATE], newest)
        self._n_frames += 1
        self._screen = self._drawn()
        return float(pressed)

    def _drawn(self) -> np.ndarray:
        screen = np.full((N_ROWS, N_COLUMNS), self._background, dtype=np.uint8)
        columns = (self._ram[BALL_X] + np.arange(SPRITE_WIDTH)) % N_COLUMNS
        screen[SPRITE_ROWS, columns] = SPRITE_COLOUR
        return screen

    def ram(self) -> np.ndarray:
        return np.array(self._ram, dtype=np.uint8)

    def screen(self) -> np.ndarray:
        return self._screen.copy()

    def grayscale(self) -> np.ndarray:
        return self._screen.copy()

    def write_ram(self, address: int, value: int) -> None:
        self._ram[address] = value

    def read_register(self, device: str, register: str) -> int:
        _require_background(device, register)
        return self._background

    def write_register(self, device: str, register: str, value: int) -> None:
        _require_background(device, register)
        self._background = value

    def checkpoint(self) -> ToyCheckpoint:
        return ToyCheckpoint(tuple(self._ram), self._late_values, self._background, self._n_frames)

    def restore(self, checkpoint: ToyCheckpoint) -> None:
        self._ram = list(checkpoint.ram)
        self._late_values = checkpoint.late_values
        self._background = checkpoint.background
        self._n_frames = checkpoint.n_frames

    def serialized(self) -> bytes:
        return repr(self.checkpoint()).encode()

    def lives(self) -> int:
        return int(not self.terminal())

    def terminal(self) -> bool:
        return self._n_frames == self._last_frame


def _require_background(device: str, register: str) -> None:
    if (device, register) != ("TIA", "COLUBK"):
        raise unknown_name("register", f"{device}.{register}", ["TIA.COLUBK"])


class PoisonedMachine(ToyMachine):
    """A console with hidden state that no checkpoint holds; certain values written to `idle` upset it.

    - `BRIEF_POISON`: the first frame after the next `restore` is wrong, and no other: one frame flushes it.
    - `SCREEN_POISON`: from now on one pixel of every screen is wrong; RAM and state stay right.
    - `STATE_POISON`: from now on `late` grows by 1 in every frame; no screen shows it for two frames.
    - `LASTING_POISON`: from now on the ball moves one step further in every frame, so state and screen are wrong.
    """

    def __init__(self, boot_ball_x: int = BOOT_RAM[BALL_X]) -> None:
        self._taken: set[int] = set()
        self._spoils_frame = False
        super().__init__(boot_ball_x)

    def write_ram(self, address: int, value: int) -> None:
        super().write_ram(address, value)
        if address == IDLE:
            self._taken.add(value)

    def restore(self, checkpoint: ToyCheckpoint) -> None:
        super().restore(checkpoint)
        self._spoils_frame = BRIEF_POISON in self._taken
        self._taken.discard(BRIEF_POISON)

    def act(self, action: int) -> float:
        steps = 3 * self._spoils_frame + (LASTING_POISON in self._taken)
        self._ram[BALL_X] = (self._ram[BALL_X] + steps) % 256
        self._ram[LATE] = (self._ram[LATE] + (STATE_POISON in self._taken)) % 256
        self._spoils_frame = False
        return super().act(action)

    def _drawn(self) -> np.ndarray:
        screen = super()._drawn()
        if SCREEN_POISON in self._taken:
            screen[0, 0] ^= 1
        return screen


def unsteady_machines(machine: Callable[[int], ToyMachine] = ToyMachine) -> Callable[[], ToyMachine]:
    """A maker of machines of which each boots with the ball one step further right than the one before."""
    starts = itertools.count(BOOT_RAM[BALL_X])
    return lambda: machine(next(starts))


@dataclass(frozen=True)
class ToyProtocol:
    """The shape of ram-v1 on the toy: `set` and `occlude` of every cell, the background colour and the action RIGHT.

    State k waits k frames longer, in which the ball moves k steps.
    """

    name: str = "toy"
    score_version: str = "v1"
    n_states: int = 1

    def parameters(self) -> dict[str, Any]:
        return asdict(self)

    def exclusion(self, game: Game) -> str:
        return "" if game.named_bytes else "no named bytes"

    def trace(self, game: Game, state: int) -> Trace:
        return Trace((*PREFIX, *[0] * state, *TAIL), len(PREFIX) + state)

    def causes(self, game: Game, rollouts: ExactRollouts) -> tuple[Cause, ...]:
        named = [cause for byte in game.named_bytes for cause in _cell_causes(byte.address, rollouts.ram)]
        background = RegisterWrite("TIA", "COLUBK", 0x0E)
        no_background = RegisterWrite("TIA", "COLUBK", 0)
        return (
            *named,
            Cause("tia[COLUBK]:set", background, no_background, ram_address=None, vacuous=False),
            Cause("joystick:RIGHT", ActionWrite(0, RIGHT), None, ram_address=None, vacuous=False),
        )

    def candidates(self, game: Game, state: int) -> tuple[Trace, ...]:
        return (self.trace(game, state),)

    def require_live(self, rollouts: ExactRollouts) -> None:
        """All of its states are."""

    def outputs(self, game: Game, rollouts: ExactRollouts, responses: Responses) -> tuple[Output, ...]:
        return content_output(BALL_X), changed_pixels_output()

    def geometry(self, game: Game, rollouts: ExactRollouts, responses: Responses) -> SamplerGeometry | None:
        return sampler_geometry(rollouts, responses.reference.screen, game.named_bytes)

    def adjustable(self) -> dict[str, int]:
        return {}

    def adjusted(self, name: str, values: Mapping[str, int]) -> "ToyProtocol":
        return self

    @property
    def controls(self) -> tuple[str, ...]:
        return ()

    def controls_on(
        self, game: Game, rollouts: ExactRollouts, responses: Responses, outputs: Sequence[Output]
    ) -> dict[str, np.ndarray]:
        return {}

    @property
    def breaks_ties_at_random(self) -> bool:
        return False

    def removal_steps(self, n_causes: int) -> tuple[int, ...]:
        return tuple(range(n_causes + 1))

    def reference_curves(
        self, removals: Removals, game: Game, trace: Trace, effects: np.ndarray
    ) -> dict[str, np.ndarray]:
        return {}


def _cell_causes(address: int, ram: np.ndarray) -> tuple[Cause, Cause]:
    value = int(ram[address])
    changed, absent = RamWrite(address, (value + 17) % 256), RamWrite(address, 0)
    return (
        Cause(f"ram[{address}]:set", changed, absent, ram_address=address, vacuous=False),
        Cause(f"ram[{address}]:occlude", absent, absent, ram_address=address, vacuous=value == 0),
    )


def toy_protocol() -> ToyProtocol:
    """The protocol whose effects are `PAPER_EFFECTS`."""
    return ToyProtocol()


def toy_game() -> Game:
    """The toy as a game with six named bytes; no ROM belongs to it."""
    rows = tuple(NamedByte(address=address, name=name, source="OCAtari") for address, name in enumerate(CELL_NAMES))
    return Game(rom_id="toy", title="Toy", gymnasium_id="ALE/Toy-v5", rom_md5="0" * 32, named_bytes=rows)


class WeightedPixels(torch.nn.Module):
    """A linear network: each output is a weighted sum of all pixels of both frames."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(weights)

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bfrc,kfrc->bk", seen, self.weights)


def pixel_network(scale: float = 1.0) -> Network:
    """The network that says the brightness of `WATCHED_PIXEL`, times `scale`; it sees frames as they are."""
    weights = torch.zeros(1, 2, N_ROWS, N_COLUMNS)
    weights[(0, *WATCHED_PIXEL)] = scale
    return Network(
        "pixel", WeightedPixels(weights).eval(), lambda frames: frames, (network_output("pixel", "content", 0),)
    )
