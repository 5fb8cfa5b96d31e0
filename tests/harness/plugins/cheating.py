"""Methods that take what is not theirs, or leave what is."""

import os
import random
import time

import numpy as np
import torch

from games.catalog import game
from methods.method import NotApplicable, method
from methods.reads import input_gradient
from oracle.emulator import Emulator
from oracle.protocol import protocol
from oracle.rollout import replay

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


@method("measures_uncounted", access="read", **SHARED)
def measures_uncounted(task, *, generator):
    """Goes round the counter, to the machine behind it."""
    world = task.rollout._build()
    world.rollouts.run([task.causes[0].intervention])
    return task.ram


@method("replays", access="read", **SHARED)
def replays(task, *, generator):
    """Measures on a machine of its own, without any rollout that is counted."""
    trace = protocol(task.protocol).trace(game(task.game), task.state)
    replay(lambda: Emulator(game(task.game)), trace, [task.causes[0].intervention])
    return task.ram


@method("changes_causes", access="read", **SHARED)
def changes_causes(task, *, generator):
    """Changes what it is compared on, by force."""
    object.__setattr__(task.causes[0], "label", "mine")
    return task.ram


@method("changes_read", access="read", **SHARED)
def changes_read(task, *, generator):
    """Changes a weight of the read."""
    for weight in task.read.buffers():
        weight.add_(1.0)
    return task.ram


@method("hooks_read", access="read", **SHARED)
def hooks_read(task, *, generator):
    """Leaves a hook on the read."""
    task.read.register_forward_hook(lambda *_: None)
    return task.ram


@method("hooks_everything", access="read", **SHARED)
def hooks_everything(task, *, generator, kind: str = "forward_hook"):
    """Leaves a hook on every module that there is."""
    getattr(torch.nn.modules.module, f"register_module_{kind}")(lambda *_: None)
    return task.ram


@method("hooks_network", access="read", subjects=("network",), **SHARED)
def hooks_network(task, *, generator):
    """Leaves a hook on a layer of the network."""
    task.network.head.register_forward_pre_hook(lambda *_: None)
    return torch.zeros_like(task.frames)


@method("changes_frames", access="read", subjects=("network",), **SHARED)
def changes_frames(task, *, generator):
    """Changes what the network sees."""
    task.frames.zero_()
    return torch.zeros_like(task.frames)


@method("changes_weights", access="read", subjects=("network",), **SHARED)
def changes_weights(task, *, generator):
    """Changes what the network has learned."""
    task.network.head.weight.data.zero_()
    return torch.zeros_like(task.frames)


SEEDS = {"torch": torch.manual_seed, "numpy.random": np.random.seed, "random": random.seed}


@method("seeds_globals", access="read", **SHARED)
def seeds_globals(task, *, generator, which: str = "torch"):
    """A good answer, after seeding a global generator for all."""
    SEEDS[which](0)
    return input_gradient(task.read, task.ram)


@method("asks_the_clock", access="read", **SHARED)
def asks_the_clock(task, *, generator):
    """Another answer every time."""
    return task.ram * time.monotonic_ns()


@method("asks_the_kernel", access="read", **SHARED)
def asks_the_kernel(task, *, generator):
    """Random numbers that nobody can draw again."""
    return torch.tensor(list(os.urandom(128)), dtype=torch.float64)


@method("draws", access="read", **SHARED)
def draws(task, *, generator):
    """Another answer for every seed, without a word of that."""
    return torch.rand(128, generator=generator)


@method("declares_too_much", access="read", seeded=True, **SHARED)
def declares_too_much(task, *, generator):
    """Says that it draws, and does not."""
    return input_gradient(task.read, task.ram)


@method("hesitates", access="read", **SHARED)
def hesitates(task, *, generator, fails: bool = False):
    """Does not answer the first question that a process asks."""
    # A plugin's file is executed for each question: what is to last has to lie elsewhere.
    if os.environ.setdefault("VERITARI_TEST_FIRST", task.output) == task.output:
        raise ValueError("what?") if fails else NotApplicable("not in the mood")
    return task.ram


@method("mistakes_its_domain", access="read", **SHARED)
def mistakes_its_domain(task, *, generator):
    """Declares one number per byte, and gives one per cause."""
    return torch.ones(len(task.causes))


@method("repeats_ram", domain="ram", family="perturbation", access="world", source="none")
def repeats_ram(task, *, generator):
    """Measures, and then claims what RAM holds."""
    task.rollout([])
    return task.ram
