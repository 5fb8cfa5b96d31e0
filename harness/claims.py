"""Put one task to one method: build what it may see, count what it uses, project its answer on the causes.

This runs in the process of the method, which never loads effects.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from jaxtyping import Float

from harness.projection import project
from harness.seeds import seed_of
from harness.units import Claim, task_id
from harness.world import World
from methods.method import BadMethod, Method
from methods.reads import NetworkRead, build_read
from oracle.errors import BudgetExceeded
from oracle.intervention import Intervention
from oracle.network import Network, byte_text, column_of
from oracle.output import Output
from oracle.task import Question, Task

DEFAULT_BUDGET = 4096
# torch has no public list of a module's hooks.
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
GLOBAL_HOOKS = tuple(f"_global{kind}" for kind in HOOKS)


class CountedRead(torch.nn.Module):
    """A read that counts the points at which its gradient was asked for."""

    def __init__(self, read: torch.nn.Module) -> None:
        super().__init__()
        self.read = read
        self.n_gradients = 0

    def forward(self, point: torch.Tensor) -> Float[torch.Tensor, "*batch output"]:
        value: torch.Tensor = self.read(point)
        if value.requires_grad:
            value.register_hook(self._count)
        return value

    @property
    def direct_jacobians(self) -> Callable[[torch.Tensor], torch.Tensor] | None:
        """That of the read, if it has one; counted as a gradient per output and point."""
        direct = getattr(self.read, "direct_jacobians", None)
        return None if direct is None else lambda points: self._counted(direct(points))

    def _counted(self, rows: Float[torch.Tensor, "output point byte"]) -> Float[torch.Tensor, "output point byte"]:
        self.n_gradients += rows.shape[0] * rows.shape[1]
        return rows

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

    def __call__(self, interventions: object) -> float:
        if self.n_rollouts >= self._budget:
            advice = "ask for fewer" if self._budget else "declare access='world' to use rollouts"
            raise BudgetExceeded(f"rollouts: expected at most {self._budget} per task, got one more; {advice}")
        wanted = _interventions(interventions)
        self.n_rollouts += 1
        return self._build().value(self._output, wanted)


def _interventions(given: object) -> tuple[Intervention, ...]:
    """What a method passes, if these are interventions: anything else would change nothing, in silence.

    Raises:
        BadMethod: it is something else.
    """
    wanted = tuple(given) if isinstance(given, Iterable) else None
    strange = [given] if wanted is None else [each for each in wanted if not isinstance(each, get_args(Intervention))]
    if wanted is None or strange:
        raise BadMethod(
            "task.rollout: expected a list of RamWrite, RegisterWrite or ActionWrite, such as [cause.intervention], "
            f"got {strange[0]!r:.100} {'in it' if wanted else 'for it'}; they are in oracle.intervention"
        )
    return wanted


def ask(
    question: Question,
    output: Output,
    method: Method,
    *,
    world: Callable[[], World],
    run_seed: int,
    network: Network | None = None,
) -> Claim:
    """What `method` says of one output of `question`: on its way to the judge, see `Claim`.

    `world` gives the machine if the method wants rollouts; `network` is the one that the question is about, built anew
    by the caller wherever answers must not depend on each other.

    Raises:
        BadMethod: its answer is not what the contract says, or it changed its task.
        NotApplicable: it has nothing to say about this task.
        Exception: whatever else the method raises.
    """
    read = CountedRead(_read(question, output, method, network))
    # A method that says it only reads must not measure: ranks are within one access class.
    budget = DEFAULT_BUDGET if method.declaration.access == "world" else 0
    rollout = CountedRollout(world, output, budget=budget)
    task = build_task(question, output, read, rollout, network)
    generator = torch.Generator().manual_seed(
        seed_of(
            *(run_seed, question.protocol, question.game, question.state, output.name, method.label),
            # The machine's own seeds are older than networks.
            *((question.network,) if question.network else ()),
        )
    )
    before = _kept(read, network)
    attribution = method.claim(task, generator=generator).numpy()
    _require_unchanged(task, question)
    _require_same("network" if network else "read", before, _kept(read, network))
    return Claim(
        task=task_id(question, output),
        method=method.label,
        status="ok",
        values=tuple(_answer_values(attribution, question, method.declaration.domain_on(question.subject))),
        n_rollouts=rollout.n_rollouts,
        n_gradients=read.n_gradients,
    )


def _read(question: Question, output: Output, method: Method, network: Network | None) -> torch.nn.Module:
    if network is None:
        return build_read(question, output, method.declaration.read)
    return NetworkRead(network.module, column_of(output), question.frames.shape)


def _answer_values(attribution: np.ndarray, question: Question, domain: str) -> list[float]:
    if domain == "pixels":
        flat: list[float] = attribution.ravel().tolist()
        return flat
    per_cause: list[float] = project(attribution, question.causes, per_cause=domain == "cause").tolist()
    return per_cause


def build_task(
    question: Question,
    output: Output,
    read: torch.nn.Module,
    rollout: CountedRollout,
    network: Network | None = None,
) -> Task:
    """What a method sees of one output: copies, so that it can't change what others see."""
    return Task(
        protocol=question.protocol,
        subject=question.subject,
        game=question.game,
        state=question.state,
        output=output.name,
        regime=output.regime,
        ram=torch.tensor(question.ram, dtype=torch.float64),
        # A frozen dataclass can be changed by force, and the question is put to others as well.
        causes=copy.deepcopy(question.causes),
        read=read,
        reference_pool=torch.tensor(question.reference_pool, dtype=torch.float64),
        rollout=rollout,
        frames=torch.tensor(question.frames) if network else None,
        network=network.module if network else None,
    )


def _require_unchanged(task: Task, question: Question) -> None:
    same_ram = np.array_equal(task.ram.detach().numpy(), question.ram)
    if not (same_ram and np.array_equal(task.reference_pool.detach().numpy(), question.reference_pool)):
        raise BadMethod("task: expected its RAM and reference pool as they were, got changed ones; work on a copy")
    if task.causes != question.causes:
        raise BadMethod("task: expected its causes as they were, got changed ones; work on a copy")
    if task.frames is not None and not np.array_equal(task.frames.detach().numpy(), question.frames):
        raise BadMethod("task: expected its frames as they were, got changed ones; work on a copy")


@dataclass(frozen=True)
class _Kept:
    """What the modules of a task must have as before: the bytes of their weights, and their own hooks."""

    weights: dict[str, bytes]
    hooks: dict[str, int]


def _kept(read: torch.nn.Module, network: Network | None) -> _Kept:
    shown = network.module if network else read
    tensors = {name: value for name, value in shown.state_dict().items() if isinstance(value, torch.Tensor)}
    hooks = hooked(shown)
    hooks |= {
        # The parts of the read that are not shown.
        "task.read": sum(hooked(read).values()) - sum(hooks.values()),
        "all modules": sum(len(getattr(torch.nn.modules.module, kind)) for kind in GLOBAL_HOOKS),
    }
    return _Kept({name: byte_text(value) for name, value in tensors.items()}, hooks)


def _require_same(what: str, before: _Kept, now: _Kept) -> None:
    """No weight changed and no hook left: also a method that is asked about its own copy has to clean up."""
    if changed := [name for name, value in now.weights.items() if value != before.weights.get(name)]:
        raise BadMethod(f"{what}: expected its weights as they were, got others in {', '.join(changed)}; put them back")
    if left := [name for name, count in now.hooks.items() if count != before.hooks.get(name, 0)]:
        raise BadMethod(f"{what}: expected no hooks left, got some on {', '.join(left)}; remove them in a finally")


def hooked(module: torch.nn.Module) -> dict[str, int]:
    """How many hooks the parts of a module have, by name; those without are left out."""
    counts = {
        name or type(part).__name__: sum(len(getattr(part, kind)) for kind in HOOKS)
        for name, part in module.named_modules()
    }
    return {name: count for name, count in counts.items() if count}
