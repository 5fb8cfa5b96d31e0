"""Seeded random questions for the tests of methods: no emulator, and a machine that is linear in its RAM."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from methods.method import Method, Subject
from methods.reads import NetworkRead, build_read
from oracle.intervention import ActionWrite, Cause, Intervention, RamWrite, RegisterWrite
from oracle.output import Output, changed_pixels_output, content_output
from oracle.state import Trace
from oracle.task import Question, Rollout, SamplerGeometry, Task

CONTENT, POSITION = 0, 1


@dataclass(frozen=True)
class Case:
    """Which question to draw, and which of its two outputs is explained."""

    seed: int
    output: int
    n_bytes: int = 128
    one_cause: bool = False
    with_geometry: bool = True
    subject: Subject = "machine"

    def __str__(self) -> str:
        """The name of the case in the list of tests."""
        shape = "one_cause" if self.one_cause else "all_causes" if self.with_geometry else "no_sprite"
        return f"{('content', 'position')[self.output]}-{self.n_bytes}-{shape}-{self.seed}"


CASES = (
    Case(0, CONTENT),
    Case(1, POSITION),
    Case(2, CONTENT, n_bytes=6),
    Case(3, POSITION, n_bytes=6),
    Case(4, CONTENT, one_cause=True),
    Case(5, POSITION, one_cause=True),
    Case(6, CONTENT, n_bytes=6, one_cause=True),
    Case(7, POSITION, n_bytes=6, one_cause=True),
    Case(8, POSITION, with_geometry=False),
)


@dataclass(frozen=True)
class NetworkCase:
    """A small convolutional network to draw, and the shape of its input: (C, H, W) or (T, C, H, W)."""

    seed: int
    input_shape: tuple[int, ...]
    inplace: bool = False
    subject: Subject = "network"

    def __str__(self) -> str:
        """The name of the case in the list of tests."""
        return f"network-{'x'.join(map(str, self.input_shape))}-{'inplace-' * self.inplace}{self.seed}"


NETWORK_CASES = (
    NetworkCase(0, (2, 12, 12)),
    NetworkCase(1, (1, 9, 16)),
    NetworkCase(2, (2, 12, 12), inplace=True),
    NetworkCase(3, (3, 2, 12, 10)),
)


class SmallNetwork(torch.nn.Module):
    """Two convolutions with ReLUs and a linear head with three outputs, frozen, with seeded weights."""

    def __init__(self, case: NetworkCase) -> None:
        super().__init__()
        n_channels, height, width = case.input_shape[-3:]
        n_frames = int(np.prod(case.input_shape[:-3]))
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(n_channels, 4, 3, padding=1),
            torch.nn.ReLU(inplace=case.inplace),
            torch.nn.Conv2d(4, 5, 3, stride=2, padding=1),
            torch.nn.ReLU(inplace=case.inplace),
        )
        self.head = torch.nn.Linear(5 * n_frames * -(-height // 2) * -(-width // 2), 3)
        generator = generator_of(case.seed)
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad=False).normal_(generator=generator)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(B, 3); frames are folded into the batch and join before the head."""
        pictures = inputs.flatten(0, 1) if inputs.ndim == 5 else inputs
        return self.head(self.features(pictures).reshape(len(inputs), -1))


def draw_question(case: Case) -> Question:
    """The question of a case: random RAM, causes of all three kinds (or one), a content and a position output."""
    generator = np.random.default_rng([case.seed, case.n_bytes])
    pool = generator.integers(0, 256, (4, case.n_bytes), dtype=np.uint8)
    return Question(
        protocol="ram-v1",
        subject="machine",
        game="random",
        state=0,
        trace=Trace(actions=(0,) * 20, frame=5),
        causes=_draw_causes(generator, pool[-1], one_cause=case.one_cause),
        outputs=(content_output(int(generator.integers(case.n_bytes))), changed_pixels_output()),
        geometry=_draw_geometry(generator, pool[-1]) if case.with_geometry else None,
        reference_pool=pool,
    )


def draw_task(case: Case | NetworkCase, method: Method) -> Task:
    """The task of a case as `method` sees it: with the read that it declares, or the network."""
    return draw_network_task(case) if isinstance(case, NetworkCase) else draw_machine_task(case, method)


def draw_network_task(case: NetworkCase) -> Task:
    """A network task: the second of three outputs, at a random input."""
    question = draw_question(Case(case.seed, CONTENT, n_bytes=6))
    network = SmallNetwork(case).eval()
    return Task(
        protocol=question.protocol,
        subject="network",
        game=question.game,
        state=question.state,
        output="second",
        regime="content",
        ram=torch.as_tensor(question.ram, dtype=torch.float64),
        causes=question.causes,
        read=NetworkRead(network, 1, case.input_shape),
        reference_pool=torch.as_tensor(question.reference_pool, dtype=torch.float64),
        rollout=_linear_rollout(question, question.outputs[CONTENT]),
        frames=torch.rand(case.input_shape, generator=generator_of(case.seed + 100)),
        network=network,
    )


def draw_machine_task(case: Case, method: Method) -> Task:
    """A machine task, with the read that the method declares."""
    question = draw_question(case)
    output = question.outputs[case.output]
    return Task(
        protocol=question.protocol,
        subject=question.subject,
        game=question.game,
        state=question.state,
        output=output.name,
        regime=output.regime,
        ram=torch.as_tensor(question.ram, dtype=torch.float64),
        causes=question.causes,
        read=build_read(question, output, method.declaration.read),
        reference_pool=torch.as_tensor(question.reference_pool, dtype=torch.float64),
        rollout=_linear_rollout(question, output),
    )


def generator_of(seed: int) -> torch.Generator:
    """A fresh generator."""
    return torch.Generator().manual_seed(seed)


def _draw_causes(generator: np.random.Generator, ram: np.ndarray, *, one_cause: bool) -> tuple[Cause, ...]:
    addresses = sorted(generator.choice(len(ram), size=min(5, len(ram)), replace=False).tolist())
    causes = []
    for address in addresses:
        written, absent = RamWrite(address, (int(ram[address]) + 17) % 256), RamWrite(address, 0)
        causes.append(Cause(f"ram[{address}]:set", written, absent, address, vacuous=False))
        causes.append(Cause(f"ram[{address}]:occlude", absent, absent, address, vacuous=bool(ram[address] == 0)))
    causes.append(Cause("tia[COLUBK]:set", RegisterWrite("TIA", "COLUBK", 14), None, None, vacuous=False))
    causes.append(Cause("joystick:RIGHT", ActionWrite(0, 3), None, None, vacuous=False))
    return tuple(causes[:1] if one_cause else causes)


def _draw_geometry(generator: np.random.Generator, ram: np.ndarray) -> SamplerGeometry:
    """A sprite of up to 12 distinct pixels in a box of 4 x 5, and a cell on it or one pixel beside it."""
    address = int(generator.integers(len(ram)))
    places = generator.choice(20, size=int(generator.integers(1, 13)), replace=False)
    offsets = tuple((int(place) // 5, int(place) % 5) for place in sorted(places))
    origin = int(generator.integers(200)), int(generator.integers(150))
    row, column = offsets[int(generator.integers(len(offsets)))]
    cell = origin[0] + row, origin[1] + column + int(generator.integers(-1, 2))
    return SamplerGeometry(address, int(ram[address]), cell, origin, offsets)


def _linear_rollout(question: Question, output: Output) -> Rollout:
    """The value of the content byte (0 on position) plus fixed weights times the changes that RAM writes make."""
    weights = np.random.default_rng(len(question.ram)).normal(size=len(question.ram))
    reference = 0.0 if output.ram_address is None else float(question.ram[output.ram_address])

    def rollout(interventions: Sequence[Intervention]) -> float:
        writes = [each for each in interventions if isinstance(each, RamWrite)]
        changes = [weights[each.address] * (each.value - int(question.ram[each.address])) for each in writes]
        return reference + float(sum(changes))

    return rollout
