"""Methods that take more memory than there is."""

import torch

from methods.method import method

SHARED = {"domain": "ram", "family": "gradient", "access": "read", "source": "none"}


@method("eats_lists", **SHARED)
def eats_lists(task, *, generator):
    """Memory of Python."""
    eaten = []
    while True:
        eaten.append([0] * 50_000_000)


@method("eats_tensors", **SHARED)
def eats_tensors(task, *, generator):
    """Memory of torch."""
    eaten = []
    while True:
        eaten.append(torch.ones(50_000_000))
