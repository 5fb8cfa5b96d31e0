"""What every registered method must keep, whoever wrote it: a newly registered one is tested here by itself."""

import contextlib
import random
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from methods.method import expected_shape
from methods.registry import registered, resolve
from oracle.task import Task
from tests.methods.tasks import CASES, NETWORK_CASES, draw_task, generator_of

METHODS = {name: resolve(name) for name in registered()}
EVERY = list(METHODS)
# Every method on every case of the subjects that it explains.
TASKS = [
    (name, case)
    for name in EVERY
    for case in (*CASES, *NETWORK_CASES)
    if case.subject in METHODS[name].declaration.subjects
]
# Methods that must ask the read: a failing read is theirs to report.
READING = [(name, case) for name, case in TASKS if METHODS[name].declaration.access == "read"]

every_method = pytest.mark.parametrize("name", EVERY)
every_task = pytest.mark.parametrize(("name", "case"), TASKS, ids=str)


class ReadFailedError(Exception):
    """What the broken read raises."""


class FailingRead(torch.nn.Module):
    """A read that works `n_good` times and then fails."""

    def __init__(self, read: torch.nn.Module, n_good: int) -> None:
        super().__init__()
        self.read = read
        self._n_left = n_good

    def forward(self, ram: torch.Tensor) -> torch.Tensor:
        """The read, or the failure."""
        if self._n_left == 0:
            raise ReadFailedError("the read failed")
        self._n_left -= 1
        return self.read(ram)


class FailingGradient(torch.autograd.Function):
    """The identity, with a gradient that fails."""

    @staticmethod
    def forward(context, values: torch.Tensor) -> torch.Tensor:
        """A copy of the values."""
        return values.clone()

    @staticmethod
    def backward(context, gradient: torch.Tensor) -> torch.Tensor:
        """The failure."""
        raise ReadFailedError("the read failed")


class UnreadableGradient(torch.nn.Module):
    """A read whose values are fine and whose gradient fails."""

    def __init__(self, read: torch.nn.Module) -> None:
        super().__init__()
        self.read = read

    def forward(self, ram: torch.Tensor) -> torch.Tensor:
        """The read."""
        return FailingGradient.apply(self.read(ram))


BROKEN_READS = {
    "first_call": lambda read: FailingRead(read, 0),
    "second_call": lambda read: FailingRead(read, 1),
    "fourth_call": lambda read: FailingRead(read, 3),
    "gradient": UnreadableGradient,
}
every_break = pytest.mark.parametrize("broken", BROKEN_READS)


def claim(name: str, task: Task, seed: int = 11) -> torch.Tensor:
    """What the method claims of the task, with a fresh generator."""
    return METHODS[name].claim(task, generator=generator_of(seed))


def tensors_of(task: Task) -> dict[str, tuple]:
    """All that a method could change in a task's tensors: bytes, flags, gradients."""
    named = {"ram": task.ram, "reference_pool": task.reference_pool} | dict(task.read.state_dict())
    named |= {"frames": task.frames} if task.frames is not None else {}
    return {
        name: (tensor.numpy().tobytes(), tensor.dtype, tensor.shape, tensor.requires_grad, tensor.grad)
        for name, tensor in named.items()
    }


def hooks_of(read: torch.nn.Module) -> list:
    """All hooks on a read and its parts."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return [hook for part in read.modules() for kind in kinds for hook in getattr(part, kind).values()]


def global_random_states() -> list[object]:
    """The states of the three generators that belong to nobody."""
    algorithm, keys, *rest = np.random.get_state()  # noqa: NPY002 - that it stays untouched is the point
    return [torch.get_rng_state().tolist(), random.getstate(), algorithm, keys.tolist(), *rest]


@every_task
def test_answer(name, case):
    """A claim has one float64 number per byte, cause or pixel, all finite, on 128 and 6 bytes, many causes and one."""
    task = draw_task(case, METHODS[name])
    answer = claim(name, task)
    assert expected_shape(METHODS[name].declaration, task) == answer.shape
    assert torch.float64 == answer.dtype
    assert answer.numel() == torch.isfinite(answer).sum().item()
    assert not answer.requires_grad


@every_task
def test_same_generator_same_answer(name, case):
    """The same generator seed gives the same claim, bit by bit, whatever the global generators stand at."""
    first = claim(name, draw_task(case, METHODS[name]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        second = claim(name, draw_task(case, METHODS[name]))
    assert first.numpy().tobytes() == second.numpy().tobytes()


@every_task
def test_task_is_left_as_it_was(name, case):
    """The tensors of the task are byte-identical after a claim, as are its training flag and gradients."""
    task = draw_task(case, METHODS[name])
    before, training = tensors_of(task), task.read.training
    claim(name, task)
    assert before == tensors_of(task)
    assert training == task.read.training


@every_task
def test_no_hooks_are_left(name, case):
    """No hook is left on the read after a claim."""
    task = draw_task(case, METHODS[name])
    claim(name, task)
    assert [] == hooks_of(task.read)


@pytest.mark.usefixtures("no_type_checks")
@every_task
def test_global_generators_are_untouched(name, case):
    """A claim leaves the global generators of torch, numpy and Python where they were."""
    task, before = draw_task(case, METHODS[name]), global_random_states()
    claim(name, task)
    assert before == global_random_states()


@every_task
def test_gradient_mode_is_untouched(name, case):
    """A claim leaves torch's gradient mode on."""
    claim(name, draw_task(case, METHODS[name]))
    assert torch.is_grad_enabled()


@pytest.mark.usefixtures("no_type_checks")
@every_task
@every_break
def test_an_error_leaves_nothing_behind(name, case, broken):
    """When the read fails in the middle, no hook stays on it, and tensors and global generators are as before."""
    task = draw_task(case, METHODS[name])
    task = replace(task, read=BROKEN_READS[broken](task.read))
    before, states = tensors_of(task), global_random_states()
    # A method that asks the read less often, or not for gradients, never meets the failure: no error of its own.
    with contextlib.suppress(ReadFailedError):
        claim(name, task)
    assert [] == hooks_of(task.read)
    assert before == tensors_of(task)
    assert states == global_random_states()


@pytest.mark.parametrize(("name", "case"), READING, ids=str)
def test_a_failing_read_is_reported(name, case):
    """A method that lives on the read passes the read's error on and does not answer instead."""
    task = draw_task(case, METHODS[name])
    task = replace(task, read=FailingRead(task.read, 0))
    with pytest.raises(ReadFailedError, match="the read failed"):
        claim(name, task)


@every_method
def test_declaration(name):
    """A registered method declares the name it is registered under, a title and a source."""
    declaration = METHODS[name].declaration
    assert name == declaration.name
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", declaration.name)
    assert declaration.source.strip()
    assert declaration.title.strip()
    assert set(declaration.subjects) <= {"machine", "network"}
    assert declaration.subjects


@every_method
def test_label(name):
    """The label of a method with its defaults is its name, and resolves to an equal method."""
    assert name == METHODS[name].label
    assert METHODS[name] == resolve(METHODS[name].label)


@every_method
def test_label_with_parameters(name):
    """The label of a method with other parameters resolves to an equal method with those parameters."""
    others = {
        parameter: f"{default}other" if isinstance(default, str) else default + 1
        for parameter, default in METHODS[name].defaults().items()
        if isinstance(default, int | float | str) and not isinstance(default, bool)
    }
    changed = METHODS[name].with_parameters(**others)
    assert METHODS[name].parameters() | others == changed.parameters()
    assert changed.label == resolve(changed.label).label
    assert changed.parameters() == resolve(changed.label).parameters()
    # One more entry in parentheses than the default's label has, if there is anything to change.
    assert bool(others) == (changed.label != name)
