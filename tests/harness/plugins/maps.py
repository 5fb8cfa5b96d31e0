"""Methods on networks: two whose map has nothing to do with the weights, and some that see other things."""

import os

import torch

from methods.method import method
from methods.reads import input_gradient, jacobian

SHARED = {"family": "gradient", "access": "read", "source": "none"}


@method("shows_input", domain="pixels", **SHARED)
def shows_input(task, *, generator):
    """The picture, whatever the network makes of it."""
    return task.frames


@method("shows_nothing", domain="pixels", **SHARED)
def shows_nothing(task, *, generator):
    """The same number for every pixel."""
    return torch.ones_like(task.frames)


@method("fails_on_networks", domain="ram", subjects=("machine", "network"), **SHARED)
def fails_on_networks(task, *, generator):
    """Answers on the machine only."""
    if task.subject == "network":
        raise ValueError("expected RAM, got a picture")
    return input_gradient(task.read, task.point)


@method("counts_questions", domain="pixels", **SHARED)
def counts_questions(task, *, generator):
    """Another answer each time, without drawing anything."""
    # A plugin's file is executed for each question: what is to last has to lie elsewhere.
    os.environ["VERITARI_TEST_COUNT"] = os.environ.get("VERITARI_TEST_COUNT", "") + "I"
    return task.frames + len(os.environ["VERITARI_TEST_COUNT"])


@method("compares_networks", domain="pixels", **SHARED)
def compares_networks(task, *, generator):
    """The gradient, if `read` is one number of `network`."""
    if task.read(task.point) not in task.network(task.point.unsqueeze(0)):
        raise ValueError("expected the read of this network, got that of another one")
    return input_gradient(task.read, task.point)


@method("measures_causes", domain="cause", family="perturbation", access="world", source="none", subjects=("network",))
def measures_causes(task, *, generator):
    """One number per cause: no map of pixels."""
    return torch.ones(len(task.causes))


@method("unsigned_gradient", domain="pixels", **SHARED)
def unsigned_gradient(task, *, generator):
    """The gradient with its signs, which are declared to mean nothing."""
    return jacobian(task.read, task.point)[0]


@method("enormous", domain="pixels", signed=True, **SHARED)
def enormous(task, *, generator):
    """Numbers whose sums overflow."""
    return torch.full_like(task.frames, 1e308, dtype=torch.float64)


@method("leaks_globals", domain="pixels", **SHARED)
def leaks_globals(task, *, generator):
    """Leaves torch in another state than it found it."""
    answer = torch.rand(task.frames.shape, generator=generator)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    return answer
