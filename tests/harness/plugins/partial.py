"""One method four times: answering everywhere, and in three ways only where it is easy.

`whole` claims the gradient of the sampler on Pong and something worthless on every other game.
"""

import torch

from methods.method import NotApplicable, method
from methods.reads import input_gradient

SHARED = {"domain": "ram", "family": "gradient", "access": "read", "source": "none"}
EASY = "pong"


@method("whole", **SHARED)
def whole(task, *, generator):
    """Answers everything, badly where it is hard."""
    return input_gradient(task.read, task.ram) if task.game == EASY else torch.rand(128, generator=generator)


@method("easy_only", **SHARED)
def easy_only(task, *, generator):
    """Declines what is hard."""
    if task.game != EASY:
        raise NotApplicable("easy_only: only Pong is easy")
    return input_gradient(task.read, task.ram)


@method("fails_where_hard", **SHARED)
def fails_where_hard(task, *, generator):
    """Raises where it is hard."""
    if task.game != EASY:
        raise RuntimeError("too hard")
    return input_gradient(task.read, task.ram)


@method("enormous_where_hard", **SHARED)
def enormous_where_hard(task, *, generator):
    """Finite numbers, but so large that sums overflow: an undefined score must not be left out of its mean."""
    if task.game != EASY:
        return torch.linspace(1.0, 1.7, 128, dtype=torch.float64) * 1e308
    return input_gradient(task.read, task.ram)
