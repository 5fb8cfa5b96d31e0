"""A machine that stands at an analysis state, with its reference run: where methods and curves run rollouts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import UInt8

from games.catalog import game
from oracle.emulator import Emulator
from oracle.intervention import Intervention
from oracle.output import Output
from oracle.rollout import ExactRollouts
from oracle.state import Trace
from oracle.task import Question

# A worker meets the units of one game-state one after the other; two fit where two of them overlap.
WORLDS_KEPT = 2


@dataclass(frozen=True)
class World:
    """Exact rollouts from one state, and the screen of its reference run at the horizon."""

    rollouts: ExactRollouts
    reference_screen: UInt8[np.ndarray, "row column"]

    def value(self, output: Output, interventions: Sequence[Intervention]) -> float:
        """y(do(interventions))."""
        final = self.rollouts.run(interventions)
        changed = final.screen != self.reference_screen
        return float(output.values(final.ram[np.newaxis], changed[np.newaxis])[0])


def build_world(rollouts: ExactRollouts) -> World:
    """The world of an analysis state."""
    return World(rollouts, rollouts.run([]).screen)


def world_of(question: Question) -> World:
    """The world of a question's game-state, kept between calls: booting it takes longer than a rollout."""
    return _kept_world(question.game, question.trace)


@lru_cache(maxsize=WORLDS_KEPT)
def _kept_world(rom_id: str, trace: Trace) -> World:
    return build_world(ExactRollouts(lambda: Emulator(game(rom_id)), trace))
