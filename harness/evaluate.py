"""The main flow: measure the truth, ask the method, measure its curves, score. Each step is a file of its own.

This is how one method is graded on one game-state. A run (`harness.runner`) takes the same steps for many of them, in
worker processes and with every intermediate result on disk: the process that asks never sees effects.
"""

from collections.abc import Callable, Iterator

import numpy as np

from games.catalog import Game
from harness.claims import ask
from harness.curves import CurveMeter, measure_curves
from harness.grading import Scores, grade
from harness.world import build_world
from methods.method import Method
from oracle.effects import measure
from oracle.emulator import Emulator, Machine
from oracle.output import Output
from oracle.protocol import AuditProtocol
from oracle.rollout import ExactRollouts


def evaluate(
    method: Method,
    *,
    protocol: AuditProtocol,
    game: Game,
    state: int,
    seed: int,
    fresh_machine: Callable[[], Machine] | None = None,
) -> Iterator[tuple[Output, Scores]]:
    """The scores of `method` on every output of one game-state; of a fresh Atari unless another machine is given."""
    build = fresh_machine or (lambda: Emulator(game))
    answer_key = measure(protocol, game, state, build)
    question = answer_key.question
    world = build_world(ExactRollouts(build, question.trace))
    for output, effect in zip(question.outputs, np.abs(answer_key.effects), strict=True):
        claim = ask(question, output, method, world=lambda: world, run_seed=seed)
        curves = measure_curves(CurveMeter(world, output, question.causes), claim)
        yield output, grade(claim, effect, curves, version=protocol.score_version, seed=seed)
