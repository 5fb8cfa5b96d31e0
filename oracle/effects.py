"""The answer key of one game-state: the measured effect of every cause on every output."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8
from pydantic import BaseModel, ConfigDict

from games.catalog import Game
from oracle.archive import naming_damage, pack, unpack
from oracle.emulator import Emulator, Machine, Snapshot, silenced_stderr
from oracle.errors import DegenerateTask, InvalidState, NotDeterministic
from oracle.intervention import Intervention
from oracle.movement import Movement
from oracle.output import Output, Regime
from oracle.protocol import AuditProtocol
from oracle.removals import Removals, Values, known_values
from oracle.responses import Responses, effects_of_causes, finals_of, respond
from oracle.rollout import ExactRollouts, replay
from oracle.state import Trace
from oracle.task import Question
from oracle.template import displacement, window_of

# Part of every store key: raise it with any change that could alter an effect.
ORACLE_VERSION = 4


class AnswerKey(BaseModel):
    """A question with its answer.

    Attributes:
        exclusion: why nothing of this game-state is scored; empty if it is.
        unmet: regimes that the explained network has no output for, with the reason.
        effects: of each cause on each output, in units of the output: y(do(u := v)) - y(reference), signed, where a
            cause has one do-value v; the mean of its absolute value where it has several.
        final_ram: RAM at the horizon after each do-value, those of a cause beside each other.
        footprints: pixels that each cause changes within the horizon, after any of its do-values.
        reference_value: y of the reference run, per output.
        controls: claims of the protocol's own controls, by name.
        reference_curves: what deletion and insertion are compared with, by name; see `oracle.removals`. Empty where
            a protocol compares with nothing.
        secondary: of outputs that are displacements, what else could be called position, by name: `changed_pixels` on
            the whole screen, and in the `window` where the sprite is looked for; NaN for other outputs.
        movement: of subject `network`, how each do-value moves the network's input; None for the machine.
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
    controls: dict[str, Float[np.ndarray, "output cause"]] = {}
    reference_curves: dict[str, Float[np.ndarray, "output curve ... step"]] = {}
    secondary: dict[str, Float[np.ndarray, "output cause"]] = {}
    movement: Movement | None = None
    final_ram: UInt8[np.ndarray, "rollout byte"]
    footprints: Bool[np.ndarray, "cause row column"]
    reference_ram: UInt8[np.ndarray, " byte"]
    reference_screen: UInt8[np.ndarray, "row column"]

    def to_bytes(self) -> bytes:
        """The archive of this answer key: plain values as JSON, arrays beside them."""
        values = json.loads(self.model_dump_json(exclude=_ARRAYS | set(_NAMED_ARRAYS) | {"movement"}))
        arrays = {name: getattr(self, name) for name in sorted(_ARRAYS - {"footprints"})}
        arrays["footprints"] = np.packbits(self.footprints, axis=2)
        for group in _NAMED_ARRAYS:
            arrays |= {f"{group}:{name}": array for name, array in sorted(getattr(self, group).items())}
        moved = self.movement.arrays() if self.movement else {}
        return pack(values, {**arrays, **moved, **self.question.arrays()})

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
            movement = Movement.from_arrays(arrays) if "moved_values" in arrays else None
            groups: dict[str, dict[str, np.ndarray]] = {group: {} for group in _NAMED_ARRAYS}
            for label in [label for label in arrays if ":" in label]:
                group, _, own = label.partition(":")
                groups[group][own] = arrays.pop(label)
            return cls(question=question, footprints=footprints, movement=movement, **groups, **values, **arrays)


_ARRAYS = {"effects", "reference_value", "final_ram", "footprints", "reference_ram", "reference_screen"}
# Of as many as a protocol has, by name.
_NAMED_ARRAYS = ("controls", "reference_curves", "secondary")


@dataclass(frozen=True)
class Measured:
    """One analysis state, measured so far."""

    rollouts: ExactRollouts
    reference: Snapshot


def measure(
    protocol: AuditProtocol, game: Game, state: int, fresh_machine: Callable[[], Machine] | None = None
) -> AnswerKey:
    """Measure one game-state: every do-value of every cause is run once, every output is read from its final snapshot.

    Raises:
        InvalidState: no candidate of the protocol is a valid state with something to explain.
        NotDeterministic: two reference runs differ.
    """
    return first_valid(protocol, game, state, fresh_machine, lambda found: _measure_at(protocol, game, state, found))


def first_valid(
    protocol: AuditProtocol,
    game: Game,
    state: int,
    fresh_machine: Callable[[], Machine] | None,
    measure_at: Callable[[Measured], AnswerKey],
) -> AnswerKey:
    """The answer key of the first candidate that is valid, live, and has something to explain.

    If there is none, that of the first which has nothing to explain, whose exclusion says so.

    Raises:
        InvalidState: no candidate is valid.
    """
    rejected: AnswerKey | None = None
    reasons: dict[str, None] = {}
    for trace in protocol.candidates(game, state):
        try:
            rollouts = ExactRollouts(fresh_machine or (lambda: Emulator(game)), trace)
            protocol.require_live(rollouts)
            found = measure_at(Measured(rollouts, reference_run(rollouts)))
        except InvalidState as invalid:
            reasons[str(invalid)] = None
            continue
        if not found.exclusion:
            return found
        rejected = rejected or found
    if rejected is None:
        raise InvalidState("; ".join(reasons))
    return rejected


def live_trace(
    protocol: AuditProtocol, game: Game, state: int, fresh_machine: Callable[[], Machine] | None = None
) -> Trace:
    """The first candidate that leads to a live state, whether or not there is something to explain.

    Raises:
        InvalidState: there is none.
    """
    reasons: dict[str, None] = {}
    for trace in protocol.candidates(game, state):
        try:
            protocol.require_live(ExactRollouts(fresh_machine or (lambda: Emulator(game)), trace))
        except InvalidState as invalid:
            reasons[str(invalid)] = None
        else:
            return trace
    raise InvalidState("; ".join(reasons))


def _measure_at(protocol: AuditProtocol, game: Game, state: int, found: Measured) -> AnswerKey:
    rollouts, reference = found.rollouts, found.reference
    causes = protocol.causes(game, rollouts)
    responses = respond(rollouts, reference, causes)
    with silenced_stderr():
        outputs, exclusion = _outputs(protocol, game, rollouts, responses)
        question = Question(
            protocol=protocol.name,
            subject="machine",
            game=game.rom_id,
            state=state,
            trace=rollouts.trace,
            causes=causes,
            outputs=outputs,
            geometry=protocol.geometry(game, rollouts, responses) if outputs else None,
            reference_pool=rollouts.prefix_ram,
        )
        answers = _answers(outputs, responses)
        controls = protocol.controls_on(game, rollouts, responses, outputs)
        seen = np.stack([output.values(responses.finals) for output in outputs], axis=1) if outputs else None
        known = {} if seen is None else known_values(causes, seen, answers["reference_value"])
        removals = Removals(_values(rollouts, reference, outputs), causes, known)
        curves = protocol.reference_curves(removals, game, rollouts.trace, np.abs(answers["effects"]))
    return AnswerKey(
        question=question,
        exclusion=exclusion,
        reference_hash=hash_of_run(rollouts, reference),
        n_frames=rollouts.n_frames,
        n_rollouts=rollouts.n_rollouts,
        reference_ram=reference.ram,
        reference_screen=reference.screen,
        final_ram=responses.finals.ram,
        footprints=responses.changed,
        flags=_with_lost_sprites(responses, outputs),
        secondary=_secondary(responses, outputs),
        controls=controls,
        reference_curves=curves,
        **answers,
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


def _outputs(
    protocol: AuditProtocol, game: Game, rollouts: ExactRollouts, responses: Responses
) -> tuple[tuple[Output, ...], str]:
    try:
        return protocol.outputs(game, rollouts, responses), ""
    except DegenerateTask as rejection:
        return (), str(rejection)


def _values(rollouts: ExactRollouts, reference: Snapshot, outputs: Sequence[Output]) -> Values:
    """y of every output after some interventions."""

    def values(interventions: Sequence[Intervention]) -> Float[np.ndarray, " output"]:
        finals = finals_of([rollouts.run(interventions)], reference)
        return np.array([output.values(finals)[0] for output in outputs])

    return values


def _with_lost_sprites(responses: Responses, outputs: Sequence[Output]) -> tuple[str, ...]:
    """The flags of the causes; `lost` where any do-value leaves a sprite nowhere to be found."""
    lost = np.zeros(len(responses.owners), dtype=np.bool_)
    for output in outputs:
        if output.template is not None:
            lost |= displacement(output.template, responses.finals.screens)[1]
    loses = set(responses.owners[lost].tolist())
    return tuple(f"{flags} lost".lstrip() if cause in loses else flags for cause, flags in enumerate(responses.flags))


def _secondary(responses: Responses, outputs: Sequence[Output]) -> dict[str, np.ndarray]:
    if all(output.template is None for output in outputs):
        return {}
    undefined = np.full(len(responses.flags), np.nan)
    changed = responses.finals.changed
    everywhere = np.array([undefined if each.template is None else _n_changed(responses, changed) for each in outputs])
    nearby = [
        undefined if each.template is None else _n_changed(responses, changed[:, *window_of(each.template)])
        for each in outputs
    ]
    return {"changed_pixels": everywhere, "window": np.array(nearby)}


def _n_changed(responses: Responses, changed: Bool[np.ndarray, "rollout row column"]) -> Float[np.ndarray, " cause"]:
    return effects_of_causes(changed.sum(axis=(1, 2), dtype=np.float64), responses.owners)


def _answers(outputs: tuple[Output, ...], responses: Responses) -> dict[str, Any]:
    n_causes = len(responses.flags)
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
