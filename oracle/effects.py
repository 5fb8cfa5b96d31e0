"""The answer key of one game-state: the measured effect of every cause on every output."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32, UInt8
from pydantic import BaseModel, ConfigDict

from games.catalog import Game
from oracle.archive import naming_damage, pack, unpack
from oracle.emulator import Emulator, Machine, Snapshot, silenced_stderr
from oracle.errors import DegenerateTask, InvalidState, NotDeterministic
from oracle.output import Output, Regime
from oracle.protocol import AuditProtocol
from oracle.responses import Responses, respond
from oracle.rollout import ExactRollouts, replay
from oracle.task import Question, SamplerGeometry

# Part of every store key: raise it with any change that could alter an effect.
ORACLE_VERSION = 3


class AnswerKey(BaseModel):
    """A question with its answer.

    Attributes:
        exclusion: why nothing of this game-state is scored; empty if it is.
        unmet: regimes that the explained network has no output for, with the reason.
        effects: y(do(cause)) - y(reference), signed, in units of each output.
        final_ram: RAM at the horizon after each cause.
        footprints: pixels that each cause changes within the horizon.
        reference_value: y of the reference run, per output.
        moved: of subject `network`, x(do(cause)) - x(reference) in the network's input; empty for the machine.
        reference_ram, reference_screen: the reference run at the horizon.
        reference_hash: SHA-256 over the reference run; equal hashes, equal worlds.
        flags: what else happened while a cause was measured, see `Responses`.
        n_frames, n_rollouts: what measuring it cost.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    question: Question
    exclusion: str
    unmet: tuple[tuple[Regime, str], ...] = ()
    reference_hash: str
    n_frames: int
    n_rollouts: int
    flags: tuple[str, ...]
    effects: Float[np.ndarray, "output cause"]
    reference_value: Float[np.ndarray, " output"]
    moved: Float32[np.ndarray, "cause *input"]
    final_ram: UInt8[np.ndarray, "cause byte"]
    footprints: Bool[np.ndarray, "cause row column"]
    reference_ram: UInt8[np.ndarray, " byte"]
    reference_screen: UInt8[np.ndarray, "row column"]

    @property
    def movement(self) -> Float[np.ndarray, " cause"] | None:
        """How much each cause moves the network's input, sum of |dx|; None for the machine."""
        if self.question.subject == "machine":
            return None
        return np.asarray(np.abs(self.moved, dtype=np.float64).reshape(len(self.moved), -1).sum(axis=1))

    def to_bytes(self) -> bytes:
        """The archive of this answer key: plain values as JSON, arrays beside them."""
        values = json.loads(self.model_dump_json(exclude=_ARRAYS))
        arrays = {name: getattr(self, name) for name in sorted(_ARRAYS - {"footprints"})}
        packed = np.packbits(self.footprints, axis=2)
        return pack(values, {**arrays, "footprints": packed, **self.question.arrays()})

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> "AnswerKey":
        """The answer key of an archive; `name` is used in errors.

        Raises:
            DamagedFile: not an archive of ours.
        """
        values, arrays = unpack(content, name)
        with naming_damage(name):
            seen = {name: arrays.pop(name) for name in ("reference_pool", "frames")}
            question = Question(**values.pop("question"), **seen)
            columns = arrays["reference_screen"].shape[1]
            footprints = np.unpackbits(arrays.pop("footprints"), axis=2, count=columns).astype(np.bool_)
            return cls(question=question, footprints=footprints, **values, **arrays)


_ARRAYS = {"effects", "reference_value", "moved", "final_ram", "footprints", "reference_ram", "reference_screen"}


def measure(
    protocol: AuditProtocol, game: Game, state: int, fresh_machine: Callable[[], Machine] | None = None
) -> AnswerKey:
    """Measure one game-state: every cause is run once, every output is read from its final snapshot.

    Raises:
        InvalidState: the prefix or the reference tail reaches game over.
        NotDeterministic: two reference runs differ.
    """
    rollouts = ExactRollouts(fresh_machine or (lambda: Emulator(game)), protocol.trace(game, state))
    reference = reference_run(rollouts)
    causes = protocol.causes(game, rollouts)
    responses = respond(rollouts, reference, causes)
    outputs, exclusion = _outputs(protocol, game, responses)
    question = Question(
        protocol=protocol.name,
        subject="machine",
        game=game.rom_id,
        state=state,
        trace=rollouts.trace,
        causes=causes,
        outputs=outputs,
        geometry=_geometry(protocol, game, rollouts, responses) if outputs else None,
        reference_pool=rollouts.prefix_ram,
    )
    return AnswerKey(
        question=question,
        exclusion=exclusion,
        reference_hash=hash_of_run(rollouts, reference),
        n_frames=rollouts.n_frames,
        n_rollouts=rollouts.n_rollouts,
        reference_ram=reference.ram,
        reference_screen=reference.screen,
        final_ram=responses.final_ram,
        footprints=responses.changed,
        flags=responses.flags,
        moved=np.zeros((len(causes), 0), np.float32),
        **_answers(outputs, responses),
    )


def reference_run(rollouts: ExactRollouts) -> Snapshot:
    """The reference run at the horizon, played twice: by the exact recipe, and straight through on a fresh interface.

    Raises:
        NotDeterministic: the two differ in RAM or screen.
        InvalidState: it reaches game over, after which actions do nothing.
    """
    first = rollouts.run([])
    second = replay(rollouts.fresh_machine, rollouts.trace, [])
    for what, one, other in (("RAM", first.ram, second.ram), ("screen", first.screen, second.screen)):
        if not np.array_equal(one, other):
            raise NotDeterministic(
                f"two reference runs: expected the same {what}, got {int((one != other).sum())} differences; "
                "this game-state can't be measured"
            )
    if first.terminal:
        raise InvalidState(
            f"reference tail: expected a game that runs to frame {len(rollouts.trace.actions)}, got game over"
        )
    return first


def _outputs(protocol: AuditProtocol, game: Game, responses: Responses) -> tuple[tuple[Output, ...], str]:
    try:
        return protocol.outputs(game, responses), ""
    except DegenerateTask as rejection:
        return (), str(rejection)


def _geometry(
    protocol: AuditProtocol, game: Game, rollouts: ExactRollouts, responses: Responses
) -> SamplerGeometry | None:
    with silenced_stderr():
        return protocol.geometry(game, rollouts, responses)


def _answers(outputs: tuple[Output, ...], responses: Responses) -> dict[str, Any]:
    n_causes = len(responses.final_ram)
    effects = [responses.effects(output) for output in outputs]
    references = [responses.reference_value(output) for output in outputs]
    return {
        "effects": np.array(effects, dtype=np.float64).reshape(len(outputs), n_causes),
        "reference_value": np.array(references, dtype=np.float64),
    }


def hash_of_run(rollouts: ExactRollouts, reference: Snapshot) -> str:
    """SHA-256 over the RAM of the prefix, and RAM and screen at the horizon."""
    digest = hashlib.sha256(rollouts.prefix_ram.tobytes())
    digest.update(reference.ram.tobytes())
    digest.update(reference.screen.tobytes())
    return digest.hexdigest()
