"""Tasks with worlds to measure: where anything may depend on anything, sums of a few bytes, and the toy machine."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.claims import CountedRollout, build_task
from harness.world import build_world
from methods.reads import build_read
from oracle.effects import AnswerKey, measure
from oracle.intervention import Cause, Intervention, RamWrite
from oracle.output import Output
from oracle.rollout import ExactRollouts
from oracle.task import Question, Rollout, Task
from tests.methods.tasks import CONTENT, Case, draw_question
from tests.toy import ToyMachine, toy_game, toy_protocol


class Recorder:
    """A rollout that remembers what it was asked."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self.asked: list[frozenset[Intervention]] = []

    def __call__(self, interventions: Sequence[Intervention]) -> float:
        self.asked.append(frozenset(interventions))
        return self._rollout(interventions)


def tangled_rollout(question: Question) -> Rollout:
    """A world without any rule: every set of changed bytes has a number of its own."""

    def rollout(interventions: Sequence[Intervention]) -> float:
        changed = [write for write in interventions if int(question.ram[write.address]) != write.value]
        text = repr(sorted((write.address, write.value) for write in changed))
        return float(np.random.default_rng(zlib.crc32(text.encode())).normal(scale=50.0))

    return rollout


def tied_rollout(question: Question) -> Rollout:
    """A world in which only the number of changed bytes matters: all bytes are equals."""
    return lambda interventions: float(
        sum(int(question.ram[write.address]) != write.value for write in interventions) ** 2
    )


def question_of(n_bytes: int, seed: int = 0) -> Question:
    """A question with causes on all of its bytes, whose values are neither 0 nor within a step of 8 of the ends."""
    question = draw_question(Case(seed, CONTENT, n_bytes=n_bytes))
    pool = np.clip(question.reference_pool, 8, 247)
    absent = [RamWrite(address, 0) for address in range(n_bytes)]
    causes = [
        Cause(f"ram[{address}]:occlude", write, write, address, vacuous=False) for address, write in enumerate(absent)
    ]
    return question.model_copy(update={"causes": tuple(causes), "reference_pool": pool})


def game_task(n_bytes: int, pay: Callable[[np.ndarray], float]) -> Task:
    """A task whose y is what `pay` says of the bytes that keep their value: one 0 or 1 per byte."""
    question = question_of(n_bytes)

    def rollout(interventions: Sequence[Intervention]) -> float:
        kept = np.ones(n_bytes)
        for write in interventions:
            kept[write.address] = float(write.value == question.ram[write.address])
        return float(pay(kept))

    return task_of(question, rollout)


def task_of(question: Question, rollout: Rollout, output: int = CONTENT) -> Task:
    """One output of a question as methods see it, with this world."""
    explained = question.outputs[output]
    read = build_read(question, explained, "sampler")
    counted = CountedRollout(lambda: RolledOut(rollout), explained, budget=4096)
    return build_task(question, explained, read, counted)


@dataclass(frozen=True)
class RolledOut:
    """A rollout in the place of a machine."""

    rollout: Rollout

    def value(self, output: Output, interventions: Sequence[Intervention]) -> float:
        return self.rollout(interventions)


def recorded(task: Task) -> tuple[Task, Recorder]:
    """The same task, and what its rollout will be asked."""
    recorder = Recorder(task.rollout)
    return replace(task, rollout=recorder), recorder


def toy_key() -> AnswerKey:
    """The toy's question and its measured effects."""
    return measure(toy_protocol(), toy_game(), 0, ToyMachine)


def measured_task(key: AnswerKey, rollouts: ExactRollouts, output: int) -> Task:
    """One output of a measured question, on its own machine."""
    world = build_world(rollouts)
    return task_of(key.question, lambda interventions: world.value(key.question.outputs[output], interventions), output)


def toy_task(output: int = CONTENT) -> Task:
    """One output of the toy."""
    key = toy_key()
    return measured_task(key, ExactRollouts(ToyMachine, key.question.trace), output)
