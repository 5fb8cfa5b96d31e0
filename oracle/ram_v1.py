"""Protocol ram-v1: the choices of the published audit (arXiv 2606.22447), reproduced so that results stay comparable.

Its weak choices are kept as well: one early state per game, `set` and `occlude` as separate causes, an action cause
that is the identity, and a content byte picked by the very effects it is scored on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt8

from games.catalog import Game
from oracle.errors import DegenerateTask
from oracle.footprint import sampler_geometry
from oracle.intervention import ActionWrite, Cause, RamWrite, RegisterWrite
from oracle.output import Output, changed_pixels_output, content_output
from oracle.removals import Removals
from oracle.responses import Responses
from oracle.rollout import ExactRollouts
from oracle.state import Trace
from oracle.task import SamplerGeometry

# One trace for every game: ALE action ids, 90 of the prefix and 15 of the tail.
# fmt: off
ACTIONS = (
    2, 13, 9, 0, 7, 9, 1, 16, 12, 9, 5, 12, 13, 7, 4, 8, 10, 6, 6, 1, 17, 16, 5, 3, 6, 2, 17, 16, 13, 7,
    17, 13, 11, 6, 1, 1, 14, 15, 16, 6, 10, 15, 6, 5, 13, 2, 2, 13, 5, 10, 11, 6, 2, 10, 6, 10, 4, 6, 10, 2,
    3, 4, 11, 2, 15, 6, 11, 6, 16, 17, 16, 12, 4, 1, 3, 15, 5, 10, 15, 1, 17, 17, 8, 4, 14, 17, 16, 10, 11, 3,
    3, 4, 8, 4, 7, 7, 8, 9, 7, 1, 4, 4, 11, 9, 11,
)
# fmt: on
PREFIX_FRAMES = 90
SET_STEP = 17
BACKGROUND_COLOUR = 0x0E
RIGHT = 3
GATE_EFFECT = 0.5
GATE_CAUSES = 4


@dataclass(frozen=True)
class RamV1:
    """One state per game; the named bytes, the background colour and one action are the causes."""

    name: str = "ram-v1"
    score_version: str = "v1"
    n_states: int = 1

    def adjustable(self) -> dict[str, int]:
        """None."""
        return {}

    def adjusted(self, name: str, values: Mapping[str, int]) -> "RamV1":
        """Nothing to adjust."""
        return self

    def parameters(self) -> dict[str, Any]:
        """Nothing can be chosen: ram-v1 is what was published."""
        return asdict(self)

    def exclusion(self, game: Game) -> str:
        """Why a game can't be asked about at all; empty if it can."""
        return "" if game.named_bytes else "no named bytes"

    def trace(self, game: Game, state: int) -> Trace:
        """The same actions for all games and states."""
        return Trace(ACTIONS, PREFIX_FRAMES)

    def candidates(self, game: Game, state: int) -> tuple[Trace, ...]:
        """That one, whatever becomes of it."""
        return (self.trace(game, state),)

    def require_live(self, rollouts: ExactRollouts) -> None:
        """Title screens are taken as they come."""

    def causes(self, game: Game, rollouts: ExactRollouts) -> tuple[Cause, ...]:
        """For every named byte in table order `set` and `occlude`, then the background colour, then the action."""
        named = [cause for byte in game.named_bytes for cause in _byte_causes(byte.address, rollouts.ram)]
        background = RegisterWrite("TIA", "COLUBK", BACKGROUND_COLOUR)
        return (
            *named,
            Cause(
                "tia[COLUBK]:set",
                background,
                removal=RegisterWrite("TIA", "COLUBK", 0),
                ram_address=None,
                vacuous=rollouts.register("TIA", "COLUBK") == BACKGROUND_COLOUR,
            ),
            Cause(
                "joystick:RIGHT",
                ActionWrite(0, RIGHT),
                removal=None,
                ram_address=None,
                vacuous=rollouts.trace.tail[0] == RIGHT,
            ),
        )

    def outputs(self, game: Game, rollouts: ExactRollouts, responses: Responses) -> tuple[Output, ...]:
        """The named byte with the largest effect (the first of equals), and the changed pixels.

        Raises:
            DegenerateTask: the gate, too few causes move the screen.
        """
        position = changed_pixels_output()
        n_movers = int((np.abs(responses.effects(position)) > GATE_EFFECT).sum())
        if n_movers < GATE_CAUSES:
            raise DegenerateTask(f"gate: {n_movers} causes change the screen, at least {GATE_CAUSES} are needed")
        contents = [content_output(byte.address) for byte in game.named_bytes]
        return max(contents, key=lambda each: float(np.abs(responses.effects(each)).max())), position

    def geometry(self, game: Game, rollouts: ExactRollouts, responses: Responses) -> SamplerGeometry | None:
        """The sampler's sprite and cell."""
        return sampler_geometry(rollouts, responses.reference.screen, game.named_bytes)

    @property
    def controls(self) -> tuple[str, ...]:
        """None of its own."""
        return ()

    def controls_on(
        self, game: Game, rollouts: ExactRollouts, responses: Responses, outputs: Sequence[Output]
    ) -> dict[str, np.ndarray]:
        """None of its own."""
        return {}

    @property
    def breaks_ties_at_random(self) -> bool:
        """Equal claims are removed in the order of the causes."""
        return False

    def removal_steps(self, n_causes: int) -> tuple[int, ...]:
        """After every removal."""
        return tuple(range(n_causes + 1))

    def reference_curves(
        self, removals: Removals, game: Game, trace: Trace, effects: np.ndarray
    ) -> dict[str, np.ndarray]:
        """None: the area under a curve is its score."""
        return {}


def _byte_causes(address: int, ram: UInt8[np.ndarray, " byte"]) -> tuple[Cause, Cause]:
    present = int(ram[address])
    absent = RamWrite(address, 0)
    changed = RamWrite(address, (present + SET_STEP) % 256)
    return (
        Cause(f"ram[{address}]:set", changed, removal=absent, ram_address=address, vacuous=False),
        Cause(f"ram[{address}]:occlude", absent, removal=absent, ram_address=address, vacuous=present == 0),
    )
