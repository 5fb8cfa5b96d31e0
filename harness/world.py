"""A machine that stands at an analysis state, with what its outputs need: where methods and curves run rollouts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import UInt8

from games.catalog import game
from harness.networks import network_for
from oracle.emulator import Emulator
from oracle.intervention import Intervention
from oracle.network import N_FRAMES, Network
from oracle.output import Finals, Output
from oracle.rollout import ExactRollouts
from oracle.scrambled import ScrambledRollouts
from oracle.state import Trace
from oracle.task import Question

# A worker meets the units of one game-state one after the other; two fit where two of them overlap.
WORLDS_KEPT = 2


@runtime_checkable
class World(Protocol):
    """Where y can be measured."""

    def value(self, output: Output, interventions: Sequence[Intervention]) -> float:
        """y(do(interventions))."""


@dataclass(frozen=True)
class MachineWorld:
    """Exact rollouts from one state, and the screen of its reference run at the horizon."""

    rollouts: ExactRollouts
    reference_screen: UInt8[np.ndarray, "row column"]

    def value(self, output: Output, interventions: Sequence[Intervention]) -> float:
        final = self.rollouts.run(interventions)
        finals = Finals(final.ram[np.newaxis], final.screen[np.newaxis], self.reference_screen)
        return float(output.values(finals)[0])


@dataclass(frozen=True)
class NetworkWorld:
    """Exact rollouts from one state, and the network that looks at them."""

    rollouts: ExactRollouts
    network: Network

    def value(self, output: Output, interventions: Sequence[Intervention]) -> float:
        seen = self.network.look(self.rollouts.film(interventions, N_FRAMES).frames)
        return float(self.network.values(seen)[self.network.outputs.index(output)])


def build_world(rollouts: ExactRollouts, network: Network | None = None) -> World:
    """The world of an analysis state, of the machine or of a network that looks at it."""
    return NetworkWorld(rollouts, network) if network else MachineWorld(rollouts, rollouts.run([]).screen)


def world_of(question: Question, program: int | None = None, *, scratch: Path | None = None) -> World:
    """The world of a question's game-state, kept between calls: booting it takes longer than a rollout.

    With `program` it is the same state under a scrambled program, whose file lies below `scratch` while it is loaded.
    """
    key = (question.game, question.trace, question.network, question.network_sha256, program)
    if key not in _kept_worlds:
        while len(_kept_worlds) >= WORLDS_KEPT:
            _kept_worlds.pop(next(iter(_kept_worlds)))
        _kept_worlds[key] = build_world(_rollouts(question, program, scratch), network_for(question))
    return _kept_worlds[key]


def _rollouts(question: Question, program: int | None, scratch: Path | None) -> ExactRollouts:
    played = game(question.game)
    if program is None:
        return ExactRollouts(lambda: Emulator(played), question.trace)
    return ScrambledRollouts(played, program, question.trace, question.ram, scratch=scratch)


# Oldest first.
_kept_worlds: dict[tuple[str, Trace, str, str, int | None], World] = {}
