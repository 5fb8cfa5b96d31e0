"""More gradient methods once more, from their formulas: on the machine in plain numbers, on networks with matrices.

Only what is drawn comes from torch: a replica of a random method needs the same draws. Reads as in `methods.py`.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from oracle.output import Output
from oracle.task import Question
from tests.naive.methods import Numbers, read_gradient, read_value, vanilla_gradient

SEED = 0
# Weights and biases of a network whose layers have ReLUs in between.
Layers = Sequence[tuple[np.ndarray, np.ndarray]]


def drawn_noise(n_samples: int, n_numbers: int) -> list[Numbers]:
    """Rows of standard normal numbers."""
    generator = torch.Generator().manual_seed(SEED)
    return torch.randn(n_samples, n_numbers, generator=generator, dtype=torch.float64).tolist()


def drawn_path(n_samples: int, n_rows: int) -> tuple[list[int], Numbers]:
    """Rows of the pool, and shares of the way from there to RAM."""
    generator = torch.Generator().manual_seed(SEED)
    rows = torch.randint(n_rows, (n_samples,), generator=generator).tolist()
    return rows, torch.rand(n_samples, 1, generator=generator, dtype=torch.float64).flatten().tolist()


def gradient_times_input(question: Question, output: Output) -> Numbers:
    """|byte * slope of the sampler read|."""
    ram = [float(value) for value in question.ram.tolist()]
    slopes = read_gradient(question, output, "sampler", ram)
    return [abs(value * slope) for value, slope in zip(ram, slopes, strict=True)]


def deep_lift(question: Question, output: Output) -> Numbers:
    """|read(ram) - read(0)|, all of it for the one byte that the read looks at: contributions add up to that."""
    ram = [float(value) for value in question.ram.tolist()]
    after = read_value(question, output, "sampler", ram)
    before = read_value(question, output, "sampler", [0.0] * len(ram))
    looked_at = output.ram_address
    if looked_at is None and question.geometry is not None:
        looked_at = question.geometry.address
    return [abs(after - before) if address == looked_at else 0.0 for address in range(len(ram))]


def smoothgrad(question: Question, output: Output, n_samples: int = 50, sigma: float = 8.0) -> Numbers:
    """|mean slope at RAM plus noise|."""
    ram = [float(value) for value in question.ram.tolist()]
    total = [0.0] * len(ram)
    for noise in drawn_noise(n_samples, len(ram)):
        noisy = [value + sigma * shift for value, shift in zip(ram, noise, strict=True)]
        for index, slope in enumerate(read_gradient(question, output, "sampler", noisy)):
            total[index] += slope
    return [abs(value) / n_samples for value in total]


def expected_gradients(question: Question, output: Output, n_samples: int = 64) -> Numbers:
    """|mean of (ram - row) * slope at row + share * (ram - row)|."""
    ram = [float(value) for value in question.ram.tolist()]
    pool = question.reference_pool.tolist()
    total = [0.0] * len(ram)
    for row, share in zip(*drawn_path(n_samples, len(pool)), strict=True):
        ways = [value - start for value, start in zip(ram, pool[row], strict=True)]
        point = [start + share * way for start, way in zip(pool[row], ways, strict=True)]
        for index, slope in enumerate(read_gradient(question, output, "sampler", point)):
            total[index] += ways[index] * slope
    return [abs(value) / n_samples for value in total]


REPLICAS: dict[str, Callable[[Question, Output], Numbers]] = {
    "gradient_times_input": gradient_times_input,
    "deep_lift": deep_lift,
    "smoothgrad": smoothgrad,
    "expected_gradients": expected_gradients,
    # The reads have no ReLU to guide.
    "guided_backprop": vanilla_gradient,
}


def _sums(layers: Layers, inputs: np.ndarray) -> list[np.ndarray]:
    """What goes into the ReLU behind every layer but the last."""
    sums = []
    for weights, biases in layers[:-1]:
        sums.append(weights @ inputs + biases)
        inputs = np.maximum(sums[-1], 0.0)
    return sums


def guided_gradient(layers: Layers, inputs: np.ndarray, output: int) -> np.ndarray:
    """Back from the output: a ReLU passes what is positive, where it was open."""
    gradient = layers[-1][0][output]
    for (weights, _), sums in zip(layers[-2::-1], _sums(layers, inputs)[::-1], strict=True):
        passed = [slope if value > 0 and slope > 0 else 0.0 for slope, value in zip(gradient, sums, strict=True)]
        gradient = np.array(passed) @ weights
    return gradient


def rescaled_gradient(layers: Layers, inputs: np.ndarray, output: int) -> np.ndarray:
    """Back from the output: a ReLU has the slope between what it gives for `inputs` and for zero."""
    gradient = layers[-1][0][output]
    here, there = _sums(layers, inputs), _sums(layers, np.zeros_like(inputs))
    for (weights, _), sums, references in zip(layers[-2::-1], here[::-1], there[::-1], strict=True):
        slopes = [
            (max(value, 0.0) - max(reference, 0.0)) / (value - reference)
            if abs(value - reference) > 1e-10
            else float(value > 0)
            for value, reference in zip(sums, references, strict=True)
        ]
        gradient = (gradient * np.array(slopes)) @ weights
    return gradient
