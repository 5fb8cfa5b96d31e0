"""Does a map depend on what a network has learned? Adebayo et al. 2018, "Sanity checks for saliency maps", 1810.03292.

Cascading randomisation: from the output back to the input, layer by layer, weights are replaced by random ones, and
each time the map is compared with that of the trained network. A map that stays as it was shows the input, or the
architecture, and not what was learned. It is a report, not a score: a map that changes need not be right.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from harness.findings import CurvePoint
from harness.scores import is_constant, spearman

# Similarities are means over this many draws of the weights: single ones scatter widely where a map is coarse.
N_DRAWS = 8
# A deep network is looked at in this many places; each costs `N_DRAWS` maps.
MOST_DEPTHS = 16
# The rank correlation of absolute values, with all weights random, from which a map does not count as one of the
# network. Far from 0: input and architecture alone make maps alike (a CAM lights up where the picture has something,
# strides leave a lattice in gradients; single games leave Grad-CAM++ 0.6), so only a map that stays is one of nothing.
# Of programs it is the limit on both sides: one tells about an output only where the effects are less alike than this.
STILL_ALIKE = 0.9

Map = Float[np.ndarray, "*input"]


@dataclass(frozen=True)
class Similarity:
    """Spearman's rank correlation of two maps, of their absolute values and with signs; 1 is the same order."""

    absolute: float
    signed: float


def parametrised_layers(network: torch.nn.Module) -> tuple[str, ...]:
    """The layers that have parameters of their own, from the output back to the input: as registered, reversed.

    The name of the network itself is empty.

    >>> parametrised_layers(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)))
    ('2', '0')
    """
    parts = [name for name, part in network.named_modules() if next(part.parameters(recurse=False), None) is not None]
    return tuple(reversed(parts))


def randomised(network: torch.nn.Module, n_layers: int, *, generator: torch.Generator) -> torch.nn.Module:
    """A copy of `network` whose top `n_layers` of `parametrised_layers` have other weights; buffers stay.

    A normal distribution with mean and deviation of the tensor itself, so that activations keep their scale. With the
    same seed the weights of a layer are the same, however many layers below it are redrawn as well.
    """
    changed = copy.deepcopy(network)
    with torch.no_grad():
        for name in parametrised_layers(changed)[:n_layers]:
            for parameter in changed.get_submodule(name).parameters(recurse=False):
                # Quantised weights are whole numbers and have no normal distribution.
                if parameter.is_floating_point():
                    parameter.copy_(_redrawn(parameter, generator))
    return changed


def _redrawn(values: Float[torch.Tensor, "*shape"], generator: torch.Generator) -> Float[torch.Tensor, "*shape"]:
    known = values.double()
    noise = torch.randn(known.shape, generator=generator, dtype=torch.float64)
    centre, deviation = known.mean(), known.std(correction=0)
    # Equal numbers have no deviation to draw from: noise as large as they are.
    return centre + deviation * noise if deviation > 0 else centre.abs() * noise


def depths(n_layers: int, most: int = MOST_DEPTHS) -> tuple[int, ...]:
    """How many layers are randomised at each point of a curve: 1, 2, ..., all; spread evenly where they are too many.

    The last point, which decides, has all of them, also where it is the only one.

    >>> depths(4), depths(100, most=4), depths(5, most=1)
    ((1, 2, 3, 4), (1, 34, 67, 100), (5,))
    """
    return tuple(np.linspace(n_layers, 1, min(n_layers, most)).round().astype(int)[::-1].tolist())


def similarity(first: Map, second: Map) -> Similarity:
    """How alike two maps are; a constant map has vanished: by definition it is like nothing (0), not even itself.

    >>> similarity(np.array([1.0, 2.0, -3.0]), np.array([-1.0, -2.0, 3.0]))
    Similarity(absolute=1.0, signed=-1.0)
    """
    left, right = (each.ravel().astype(np.float64) for each in (first, second))
    return Similarity(_rank_correlation(np.abs(left), np.abs(right)), _rank_correlation(left, right))


def _rank_correlation(left: Float[np.ndarray, " number"], right: Float[np.ndarray, " number"]) -> float:
    return 0.0 if is_constant(left) or is_constant(right) else spearman(left, right)


def curve_point(output: str, layer: str, trained: Map, maps: Sequence[Map]) -> CurvePoint:
    """The mean similarity of the map of the trained network with those of several draws of the weights."""
    found = [similarity(trained, each) for each in maps]
    absolute, signed = (float(np.mean([getattr(each, kind) for each in found])) for kind in ("absolute", "signed"))
    return CurvePoint(output, layer, absolute, signed)


def has_changed(absolute: float, known: Map, others: Sequence[Map]) -> bool:
    """Whether a claim depends on what was changed; `absolute` is its mean similarity with the `others` made then.

    Equal maps are told apart from unlike ones: a constant map has a similarity of 0 to itself.
    """
    return absolute < STILL_ALIKE and not all(np.array_equal(known, each) for each in others)
