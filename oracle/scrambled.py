"""The same state under another program: what the console would do if some bytes of its cartridge stood elsewhere.

For a report, not for scores: as Adebayo et al. 2018 (1810.03292) randomise the weights of a network, so the code of a
game is scrambled here. What explains the program should change with it.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict

from games.catalog import Game
from oracle.emulator import Emulator, Ram, Snapshot
from oracle.errors import InvalidState
from oracle.intervention import Intervention, RamWrite
from oracle.protocol import AuditProtocol
from oracle.responses import respond
from oracle.rollout import ExactRollouts
from oracle.state import Trace
from oracle.task import Question, SamplerGeometry

# Few: with more, most programs stop drawing a picture at all.
N_MOVED = 8
# The 6502 sees 4 KiB at once; larger cartridges switch between banks of that size.
BANK_BYTES = 4096
# The end of a bank holds the interrupt vectors, and the addresses that switch banks: the way into every program.
KEPT_BYTES = 16


def scrambled(rom: bytes, *, generator: np.random.Generator) -> bytes:
    """A cartridge with the same bytes, `N_MOVED` of them in each other's places; the end of every bank is kept.

    >>> code = bytes(range(256)) * 16
    >>> moved = scrambled(code, generator=np.random.default_rng(0))
    >>> sorted(moved) == sorted(code), moved[-KEPT_BYTES:] == code[-KEPT_BYTES:]
    (True, True)
    """
    code = np.frombuffer(rom, dtype=np.uint8).copy()
    bank = min(BANK_BYTES, len(code))
    free = np.flatnonzero(np.arange(len(code)) % bank < bank - KEPT_BYTES)
    places = generator.choice(free, N_MOVED, replace=False)
    code[places] = code[np.roll(places, 1)]
    return code.tobytes()


class ScrambledEmulator(Emulator):
    """An ALE interface with a scrambled cartridge of a game: the one place where a ROM may differ from its table.

    Starting it may print, hang or end the process, as any broken program may: run it in a process of its own, with a
    `scratch` folder that somebody else removes; without one it is the system's.
    """

    def __init__(self, game: Game, program: int, scratch: Path | None = None) -> None:
        self._program, self._scratch = program, scratch
        super().__init__(game)

    def _load(self, rom: Path) -> None:
        moved = scrambled(rom.read_bytes(), generator=np.random.default_rng(self._program))
        with tempfile.TemporaryDirectory(prefix="veritari-", dir=self._scratch) as folder:
            # ALE knows a game by the name of its file.
            file = Path(folder) / rom.name
            file.write_bytes(moved)
            super()._load(file)


class ScrambledRollouts(ExactRollouts):
    """Rollouts of another program from the RAM of the true one: the same bytes, read by other code.

    The program plays the prefix itself, so that its screen and registers are its own; then every rollout begins by
    writing the RAM of the true state.

    Raises:
        InvalidState, NotDeterministic: as `ExactRollouts`.
    """

    def __init__(self, game: Game, program: int, trace: Trace, ram: Ram, *, scratch: Path | None = None) -> None:
        super().__init__(lambda: ScrambledEmulator(game, program, scratch), trace)
        self.program = program
        self._true_ram = np.array(ram)
        self._writes = [RamWrite(address, int(value)) for address, value in enumerate(self._true_ram)]

    @property
    def ram(self) -> Ram:
        return np.array(self._true_ram)

    def run(self, interventions: Sequence[Intervention], tail: Sequence[int] | None = None) -> Snapshot:
        return super().run([*self._writes, *interventions], tail)

    def reference(self) -> Snapshot:
        """The reference run at the horizon.

        Raises:
            InvalidState: its screen has one colour only, or its game is over.
        """
        found = self.run([])
        if found.terminal or len(np.unique(found.screen)) == 1:
            raise InvalidState("scrambled program: expected a game that runs and draws, got none; try another one")
        return found


class OtherProgram(BaseModel):
    """A program that runs, with what it makes of a question: the effects of the same causes on the same outputs.

    Attributes:
        program: the seed that it was scrambled with.
        geometry: what the bilinear-sampler read renders under it.
        effects: y(do(cause)) - y(reference), one row per output, one column per cause.
    """

    model_config = ConfigDict(frozen=True)

    program: int
    geometry: SamplerGeometry | None
    effects: tuple[tuple[float, ...], ...]

    def question(self, asked: Question) -> Question:
        """`asked` as it is put under this program: the same state, causes and outputs."""
        return asked.model_copy(update={"geometry": self.geometry})

    def effects_on(self, output: int) -> Float[np.ndarray, " cause"]:
        """The effects on one output."""
        return np.array(self.effects[output])


def measure_program(
    protocol: AuditProtocol, game: Game, question: Question, rollouts: ScrambledRollouts
) -> OtherProgram:
    """Measure the effects of a question's causes under the program of `rollouts`.

    Raises:
        InvalidState: as `ScrambledRollouts.reference`.
    """
    responses = respond(rollouts, rollouts.reference(), question.causes)
    return OtherProgram(
        geometry=protocol.geometry(game, rollouts, responses),
        effects=tuple(tuple(responses.effects(output).tolist()) for output in question.outputs),
        program=rollouts.program,
    )
