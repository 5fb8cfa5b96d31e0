"""Networks of users: one that works, one without weights, one that can't be built."""

import os
import time

import torch

from oracle.network import preprocess


class Shifted(torch.nn.Module):
    """A linear layer and a parameter that belongs to the network itself."""

    def __init__(self):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.tensor([0.5]))
        self.linear = torch.nn.Linear(2 * 84 * 84, 1)
        with torch.no_grad():
            self.linear.weight.copy_(torch.linspace(-1.0, 2.0, 2 * 84 * 84))

    def forward(self, seen):
        """One number."""
        return self.linear(seen.flatten(1)) + self.shift


def shifted():
    """Two layers with weights."""
    return Shifted(), preprocess, ["player_x"]


class Mean(torch.nn.Module):
    """The mean pixel."""

    def forward(self, seen):
        """One number."""
        return seen.flatten(1).mean(1, keepdim=True)


def weightless():
    """Nothing to randomise."""
    return Mean(), preprocess, ["brightness"]


def broken():
    """Raises."""
    raise RuntimeError("no weights on this disk")


class Undefined(torch.nn.Module):
    """NaN, whatever it sees."""

    def forward(self, seen):
        """One number that is none."""
        return seen.flatten(1).sum(1, keepdim=True) * torch.nan


def undefined():
    """Says NaN."""
    return Undefined(), preprocess, ["value"]


def without_weights():
    """All weights are zero."""
    network = torch.nn.Sequential(torch.nn.Conv2d(2, 1, 3), torch.nn.Flatten(), torch.nn.Linear(82 * 82, 1))
    for parameter in network.parameters():
        torch.nn.init.zeros_(parameter)
    return network, preprocess, ["value"]


def hangs():
    """Never comes back."""
    time.sleep(1000)


def leaves():
    """Ends its process."""
    os._exit(0)


def convolutions(game):
    """A network as agents have it, in half precision, with ReLUs in place and seeded weights."""
    network = torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 8, stride=4),
        torch.nn.ReLU(inplace=True),
        torch.nn.Conv2d(4, 4, 4, stride=2),
        torch.nn.ReLU(inplace=True),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 9 * 9, 2),
    )
    return network.half(), preprocess, ["left", f"{game}_x"]


def only_pong(game):
    """There are weights for Pong only."""
    if game != "pong":
        raise FileNotFoundError(f"{game}.pt")
    return convolutions(game)
