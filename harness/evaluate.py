"""The main flow: measure the truth, ask the method, measure its curves, score. Each step is a file of its own.

This is how one method is graded on one game-state. A run (`harness.runner`) takes the same steps for many of them, in
worker processes and with every intermediate result on disk: the process that asks never sees effects.
"""

from collections.abc import Callable, Iterator

from games.catalog import Game
from harness.claims import ask
from harness.curves import CurveMeter, measure_curves
from harness.grading import Scores, grade, grounds_of
from harness.projection import on_causes
from harness.world import build_world
from methods.method import Method
from oracle.emulator import Emulator, Machine
from oracle.network import Network
from oracle.network_effects import measure_subject
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
    network: Network | None = None,
) -> Iterator[tuple[Output, Scores]]:
    """The scores of `method` on every output of one game-state: of the machine, or of a network that looks at it.

    The machine is a fresh Atari unless another one is given.
    """
    build = fresh_machine or (lambda: Emulator(game))
    answer_key = measure_subject(protocol, game, state, network, fresh_machine=build)
    question = answer_key.question
    world = build_world(ExactRollouts(build, question.trace), network)
    for row, output in enumerate(question.outputs):
        answer = ask(question, output, method, world=lambda: world, run_seed=seed, network=network)
        domain, signed = method.declaration.domain_on(question.subject), method.declaration.signed
        claim = on_causes(answer, answer_key.movement, domain=domain, signed=signed)
        curves = measure_curves(CurveMeter(world, output, question.causes), claim, protocol, run_seed=seed)
        yield output, grade(claim, grounds_of(answer_key, row, seed, curves), version=protocol.score_version)
