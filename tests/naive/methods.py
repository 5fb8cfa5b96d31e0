"""The reads of protocol ram-v1 and the built-in methods once more: loops over plain numbers, from the formulas.

Slow on purpose, and without torch: what the fast code does with tensors, autograd and Captum is written out here by
hand, with the one-sided conventions of the published audit: the derivative of |t| at 0 is 0, max(0, z) passes the
gradient at z = 0, and a clamp passes it inside its closed interval.
"""

from collections.abc import Callable

from oracle.output import Output
from oracle.task import Question, SamplerGeometry

Numbers = list[float]


def one_hot_value(ram: Numbers, address: int) -> float:
    """The content read: the byte itself."""
    return ram[address]


def one_hot_gradient(ram: Numbers, address: int) -> Numbers:
    """The content read's gradient: 1 at the byte, 0 elsewhere."""
    return [1.0 if index == address else 0.0 for index in range(len(ram))]


def tent(distance: float) -> float:
    """tri(t) = max(0, 1 - |t|)."""
    return max(0.0, 1.0 - abs(distance))


def tent_slope(distance: float) -> float:
    """The slope of tri: the outer corners pass the gradient, the tip has none."""
    if 1.0 - abs(distance) < 0.0 or distance == 0.0:
        return 0.0
    return -1.0 if distance > 0.0 else 1.0


def _distances(ram: Numbers, geometry: SamplerGeometry) -> list[tuple[float, float]]:
    """Per sprite pixel: how far it is drawn from the cell, in rows and in columns."""
    cell_row, cell_column = geometry.cell
    first_row, first_column = geometry.origin
    drawn_column = first_column + ram[geometry.address] - geometry.value
    return [(cell_row - first_row - row, cell_column - drawn_column - column) for row, column in geometry.offsets]


def _unclamped(ram: Numbers, geometry: SamplerGeometry) -> float:
    total = 0.0
    for rows, columns in _distances(ram, geometry):
        total += tent(rows) * tent(columns)
    return total


def sampler_value(ram: Numbers, geometry: SamplerGeometry) -> float:
    """occ(v), clamped to 0..1."""
    return min(1.0, max(0.0, _unclamped(ram, geometry)))


def sampler_gradient_of(ram: Numbers, geometry: SamplerGeometry) -> Numbers:
    """The slope of occ: only the position byte moves the sprite, and a larger byte shortens the distance in columns."""
    slope = 0.0
    if 0.0 <= _unclamped(ram, geometry) <= 1.0:
        for rows, columns in _distances(ram, geometry):
            slope += tent(rows) * tent_slope(columns) * -1.0
    return [slope if index == geometry.address else 0.0 for index in range(len(ram))]


def hard_value(ram: Numbers, geometry: SamplerGeometry) -> float:
    """The sampler at the nearest whole numbers (halves to even)."""
    return sampler_value([float(round(value)) for value in ram], geometry)


def read_value(question: Question, output: Output, kind: str, ram: Numbers) -> float:
    """The read of `output` at `ram`."""
    if output.ram_address is not None:
        return one_hot_value(ram, output.ram_address)
    if question.geometry is None:
        return 0.0
    return hard_value(ram, question.geometry) if kind == "hard" else sampler_value(ram, question.geometry)


def read_gradient(question: Question, output: Output, kind: str, ram: Numbers) -> Numbers:
    """The gradient of that read."""
    if output.ram_address is not None:
        return one_hot_gradient(ram, output.ram_address)
    if question.geometry is None or kind == "hard":
        return [0.0] * len(ram)
    return sampler_gradient_of(ram, question.geometry)


def vanilla_gradient(question: Question, output: Output) -> Numbers:
    """|gradient| of the hard read."""
    return [abs(slope) for slope in read_gradient(question, output, "hard", question.ram.tolist())]


def sampler_gradient(question: Question, output: Output) -> Numbers:
    """|gradient| of the sampler read."""
    return [abs(slope) for slope in read_gradient(question, output, "sampler", question.ram.tolist())]


def integrated_gradients(question: Question, output: Output, n_steps: int = 64) -> Numbers:
    """|ram_i * mean of the gradient at the midpoints (k + 1/2) / n of the way from RAM of 0|."""
    ram = [float(value) for value in question.ram.tolist()]
    total = [0.0] * len(ram)
    for step in range(n_steps):
        share = (step + 0.5) / n_steps
        slopes = read_gradient(question, output, "sampler", [share * value for value in ram])
        for index, slope in enumerate(slopes):
            total[index] += slope / n_steps
    return [abs(value * slope) for value, slope in zip(ram, total, strict=True)]


# One row per built-in method that explains the machine, by its registered name.
REPLICAS: dict[str, Callable[[Question, Output], Numbers]] = {
    "vanilla_gradient": vanilla_gradient,
    "sampler_gradient": sampler_gradient,
    "integrated_gradients": integrated_gradients,
}
