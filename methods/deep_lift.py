"""DeepLIFT with the rescale rule, from zero (an empty RAM, a black screen), by Captum."""

import torch
from captum.attr import DeepLift
from jaxtyping import Float

from methods.captum_calls import captum_batches, hookable
from methods.method import NotApplicable, method
from methods.reads import combined
from methods.relu_read import rectified
from oracle.task import Task


@method(
    "deep_lift",
    title="DeepLIFT",
    domain="ram",
    family="gradient",
    access="read",
    read="sampler",
    subjects=("machine", "network"),
    signed=True,
    source="Shrikumar, Greenside, Kundaje 2017, arXiv 1704.02685 (rescale rule)",
)
def deep_lift(task: Task, *, generator: torch.Generator) -> torch.Tensor:
    """The gradient in which every activation has the slope between what it gives at zero and here.

    On the machine times (ram - 0); on a network these multipliers alone. Captum hooks modules, and the sampler read has
    none at its corners, which would make this gradient times input in silence: its twin of ReLU modules is explained.
    A network needs a module of its own for every activation as well. It is declined where the contributions do not add
    up to read(input) - read(0), which is how an activation that Captum does not see shows.
    """
    multipliers = complete_multipliers(task)
    return combined(multipliers * task.ram if task.subject == "machine" else multipliers, task.subject)


def complete_multipliers(task: Task) -> Float[torch.Tensor, "output *input"]:
    """DeepLIFT's multipliers from zero, which make up the difference of each output.

    Raises:
        NotApplicable: they do not, or an activation is used twice.
    """
    with rectified(task.read) as read, hookable(read, once=True):
        explainer = DeepLift(read, multiply_by_inputs=False)
        multipliers = captum_batches(
            lambda points, outputs: explainer.attribute(points, torch.zeros_like(points), target=outputs),
            read,
            task.point,
        )
    _require_complete(task, multipliers * task.point)
    return multipliers


def _require_complete(task: Task, contributions: Float[torch.Tensor, "output *input"]) -> None:
    """Refuse contributions that do not add up to read(input) - read(0), to half of the digits that the read has.

    Raises:
        NotApplicable: saying what they add up to.
    """
    with torch.no_grad():
        values = task.read(torch.stack([task.point, torch.zeros_like(task.point)]))
    parts = contributions.double().flatten(1)
    claimed, measured = parts.sum(1), (values[0] - values[1]).double()
    tolerance = torch.finfo(values.dtype).eps ** 0.5 * (parts.abs().sum(1) + values.abs().amax(0))
    for total, difference, allowed in zip(claimed.tolist(), measured.tolist(), tolerance.tolist(), strict=True):
        if abs(total - difference) > allowed:
            raise NotApplicable(
                f"its contributions add up to {total:.6g}, but the output differs from that at zero by "
                f"{difference:.6g}: Captum misses a nonlinearity; use one module each, such as torch.nn.ReLU"
            )
