"""Put one task to one method: build what it may see, count what it uses, project its answer on the causes.

This runs in the process of the method, which never loads effects.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float

from harness.seeds import seed_of
from harness.units import Claim, TaskId
from harness.world import World
from methods.method import BadMethod, Method
from methods.reads import build_read
from oracle.errors import BudgetExceeded
from oracle.intervention import Cause, Intervention
from oracle.output import Output
from oracle.task import Question, Task

DEFAULT_BUDGET = 4096


class CountedRead(torch.nn.Module):
    """A read that counts the points at which its gradient was asked for."""

    def __init__(self, read: torch.nn.Module) -> None:
        super().__init__()
        self.read = read
        self.n_gradients = 0

    def forward(self, ram: Float[torch.Tensor, "*batch byte"]) -> Float[torch.Tensor, "*batch output"]:
        value: torch.Tensor = self.read(ram)
        if value.requires_grad:
            value.register_hook(self._count)
        return value

    def _count(self, gradient: torch.Tensor) -> None:
        self.n_gradients += gradient.numel() // gradient.shape[-1]


class CountedRollout:
    """y after interventions, measured on the machine by exact rollouts, up to a budget.

    The machine is built at the first call: a gradient method never needs one.
    """

    def __init__(self, build: Callable[[], World], output: Output, *, budget: int) -> None:
        self._build = build
        self._output = output
        self._budget = budget
        self.n_rollouts = 0

    def __call__(self, interventions: Sequence[Intervention]) -> float:
        if self.n_rollouts >= self._budget:
            advice = "ask for fewer" if self._budget else "declare access='world' to use rollouts"
            raise BudgetExceeded(f"rollouts: expected at most {self._budget} per task, got one more; {advice}")
        self.n_rollouts += 1
        return self._build().value(self._output, interventions)


def ask(question: Question, output: Output, method: Method, *, world: Callable[[], World], run_seed: int) -> Claim:
    """The claim of `method` on one output of `question`; `world` gives the machine if the method wants rollouts.

    Raises:
        BadMethod: its answer is not what the contract says, or it changed its task.
        NotApplicable: it has nothing to say about this task.
        Exception: whatever else the method raises.
    """
    read = CountedRead(build_read(question, output, method.declaration.read))
    # A method that says it only reads must not measure: ranks are within one access class.
    budget = DEFAULT_BUDGET if method.declaration.access == "world" else 0
    rollout = CountedRollout(world, output, budget=budget)
    task = build_task(question, output, read, rollout)
    generator = torch.Generator().manual_seed(
        seed_of(run_seed, question.protocol, question.game, question.state, output.name, method.label)
    )
    attribution = method.claim(task, generator=generator).numpy()
    _require_unchanged(task, question)
    return Claim(
        task=task_id(question, output),
        method=method.label,
        status="ok",
        values=tuple(project(attribution, question.causes, per_cause=method.declaration.domain == "cause").tolist()),
        n_rollouts=rollout.n_rollouts,
        n_gradients=read.n_gradients,
    )


def task_id(question: Question, output: Output) -> TaskId:
    """The identity of one output of a question."""
    return TaskId(game=question.game, state=question.state, output=output.name, regime=output.regime)


def build_task(question: Question, output: Output, read: torch.nn.Module, rollout: CountedRollout) -> Task:
    """What a method sees of one output: copies, so that it can't change what others see."""
    return Task(
        protocol=question.protocol,
        subject=question.subject,
        game=question.game,
        state=question.state,
        output=output.name,
        regime=output.regime,
        ram=torch.tensor(question.ram, dtype=torch.float64),
        causes=question.causes,
        read=read,
        reference_pool=torch.tensor(question.reference_pool, dtype=torch.float64),
        rollout=rollout,
    )


def project(
    attribution: Float[np.ndarray, " number"], causes: Sequence[Cause], *, per_cause: bool
) -> Float[np.ndarray, " cause"]:
    """|attribution| per cause: a byte's value goes to each of its causes; causes outside RAM get 0 from a RAM map."""
    if per_cause:
        return np.asarray(np.abs(attribution))
    sizes = np.abs(attribution)
    return np.array([0.0 if cause.ram_address is None else sizes[cause.ram_address] for cause in causes])


def _require_unchanged(task: Task, question: Question) -> None:
    same_ram = np.array_equal(task.ram.detach().numpy(), question.ram)
    if not (same_ram and np.array_equal(task.reference_pool.detach().numpy(), question.reference_pool)):
        raise BadMethod("task: expected its RAM and reference pool as they were, got changed ones; work on a copy")
