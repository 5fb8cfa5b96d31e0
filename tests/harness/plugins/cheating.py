"""Methods that take what is not theirs."""

from methods.method import NotApplicable, method
from methods.reads import input_gradient

SHARED = {"domain": "ram", "family": "gradient", "source": "none"}


@method("changes_ram", access="read", **SHARED)
def changes_ram(task, *, generator):
    """Changes the question while it answers."""
    answer = input_gradient(task.read, task.ram)
    task.ram[0] += 1
    return answer


@method("changes_pool", access="read", **SHARED)
def changes_pool(task, *, generator):
    """Changes the reference pool while it answers."""
    task.reference_pool.zero_()
    return input_gradient(task.read, task.ram)


@method("measures_undeclared", access="read", **SHARED)
def measures_undeclared(task, *, generator):
    """Says that it only reads, and measures."""
    task.rollout([task.causes[0].intervention])
    return task.ram


@method("measures_too_much", access="world", **SHARED)
def measures_too_much(task, *, generator):
    """One rollout over the budget of 4096; for one output only, because they take seconds."""
    if task.regime == "position":
        raise NotApplicable("measures_too_much: measures content only")
    for _ in range(4097):
        task.rollout([])
    return task.ram
