"""The gradient times the input, by Captum: what each byte adds to the output if the read were linear."""

import torch
from captum.attr import InputXGradient

from methods.captum_calls import captum_rows
from methods.method import method
from methods.reads import combined
from oracle.task import Task


@method(
    "gradient_times_input",
    title="Gradient times input",
    domain="ram",
    family="gradient",
    access="read",
    read="sampler",
    source="Shrikumar, Greenside, Shcherbina, Kundaje 2016, arXiv 1605.01713",
)
def gradient_times_input(task: Task, *, generator: torch.Generator) -> torch.Tensor:
    """|d read / d byte times byte|.

    Not offered on networks: there a method that multiplies by the input returns its multipliers, and these are
    `vanilla_gradient`.
    """
    explainer = InputXGradient(task.read)
    rows = captum_rows(lambda ram, output: explainer.attribute(ram, target=output), task.read, task.ram)
    return combined(rows, task.subject)
