"""The effect of one RAM byte, drawn out: over all of its values, or over the frames after its do-values.

Both are measured on the spot, at a state of a run, in a worker process.
"""

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from games.errors import VeritariError, unknown_name
from harness.api import Run
from harness.errors import WrongUsage
from harness.guard import Report
from harness.pool import Job, Limits, run_job
from harness.surface_blocks import measure_block, measure_horizons, read_block, read_horizons
from harness.units import OracleOutcome
from oracle.effects import AnswerKey
from oracle.intervention import N_BYTES, RamWrite
from oracle.surface import N_VALUES

LIMITS = Limits(workers=1, timeout_seconds=120.0, memory_gib=4.0)
CAUSE = re.compile(r"ram\[(\d+)\](:\w+)?")


@dataclass(frozen=True)
class Wanted:
    """Which curves: of a cause, at a state of a game; of one output, or of all where it is empty."""

    game: str
    state: int
    cause: str
    output: str = ""


@dataclass(frozen=True)
class CurveView:
    """One output's curve.

    Attributes:
        horizon_frames: the horizon of the protocol, at which `response` is read.
        points: of `response`, a row per value: `value`, `y`, `effect` (y less that of the reference run) and `role`
            (`present` value, `do-value` of the protocol, or empty); of `horizon`, a row per frame: `frame`, `effect`
            (the mean size over the do-values) and `role` (`horizon` of the protocol, or empty).
    """

    game: str
    state: int
    cause: str
    curve: str
    output: str
    regime: str
    reference_value: float
    horizon_frames: int
    points: pd.DataFrame


def response_curves(run: Run, wanted: Wanted) -> list[CurveView]:
    """y at the horizon against all 256 values of a byte.

    Raises:
        UnknownName: the run has no such game or output.
        WrongUsage: nor such a state, or the cause is no RAM byte.
    """
    answer_key, address = _found(run, wanted), _address(wanted.cause)
    with tempfile.TemporaryDirectory(prefix="veritari-") as scratch:
        answer = Path(scratch) / "block.npz"
        _measured(Job(measure_block, (_key_path(run, wanted), (address,), str(answer))), wanted)
        block = read_block(answer, answer_key, (address,))
    if block is None:
        raise VeritariError(f"{wanted.cause}: expected a measured curve, got none; try again")
    roles = _roles(answer_key, wanted.cause)

    def points(row: int) -> pd.DataFrame:
        effects = block.surface.differences[row, 0]
        y = effects + answer_key.reference_value[row]
        return pd.DataFrame({"value": np.arange(N_VALUES), "y": y, "effect": effects, "role": roles})

    return _views(answer_key, wanted, "response", points)


def horizon_curves(run: Run, wanted: Wanted) -> list[CurveView]:
    """The effect of a cause at every frame after its do-values.

    Raises:
        UnknownName: the run has no such game or output.
        WrongUsage: nor such a state, or the cause is no RAM byte, or one without do-values.
    """
    answer_key = _found(run, wanted)
    interventions = _do_values(answer_key, wanted.cause)
    if not interventions:
        labels = [cause.label for cause in answer_key.question.causes if cause.ram_address is not None]
        raise unknown_name(f"cause of {wanted.game} with do-values", wanted.cause, labels)
    with tempfile.TemporaryDirectory(prefix="veritari-") as scratch:
        answer = Path(scratch) / "horizons.npz"
        _measured(Job(measure_horizons, (_key_path(run, wanted), interventions, str(answer))), wanted)
        curve = read_horizons(answer)
    frames = np.arange(1, curve.n_frames + 1)
    roles = np.where(frames == len(answer_key.question.trace.tail), "horizon", "")

    def points(row: int) -> pd.DataFrame:
        return pd.DataFrame({"frame": frames, "effect": curve.effects[row], "role": roles})

    return _views(answer_key, wanted, "horizon", points)


CURVES: dict[str, Callable[[Run, Wanted], list[CurveView]]] = {"response": response_curves, "horizon": horizon_curves}


def _found(run: Run, wanted: Wanted) -> AnswerKey:
    """The answer key of the state that is wanted, when everything else that is wanted is there too."""
    manifest = run.manifest
    _address(wanted.cause)
    known = [entry.rom_id for entry in manifest.games]
    if wanted.game not in known:
        raise unknown_name("game of this run", wanted.game, known)
    if not 0 <= wanted.state < manifest.n_states:
        raise WrongUsage(f"--state: expected 0..{manifest.n_states - 1}, got {wanted.state}; correct it")
    if "machine" not in manifest.settings.subjects:
        raise WrongUsage("--curve: expected a run about the machine, got network only; curves are of the machine")
    if not run.directory.answer_key_path("machine", wanted.game, wanted.state).exists():
        outcome = OracleOutcome(subject="machine", game=wanted.game, state=wanted.state, status="ok")
        stored = run.directory.unit(outcome)
        reason = next(entry.exclusions.get("machine", "") for entry in manifest.games if entry.rom_id == wanted.game)
        reason = (stored.reason if stored else reason) or "it is not measured yet"
        raise WrongUsage(f"{wanted.game}: expected a state with effects, got none ({reason}); choose another --game")
    answer_key = run.directory.answer_key("machine", wanted.game, wanted.state)
    outputs = [output.name for output in answer_key.question.outputs]
    if wanted.output and wanted.output not in outputs:
        raise unknown_name(f"output of {wanted.game} at this state", wanted.output, outputs)
    return answer_key


def _address(cause: str) -> int:
    found = CAUSE.fullmatch(cause)
    if found is None or int(found[1]) >= N_BYTES:
        raise WrongUsage(f"--cause: expected a RAM byte from 'ram[0]' to 'ram[127]', got {cause}; curves are of bytes")
    return int(found[1])


def _do_values(answer_key: AnswerKey, cause: str) -> tuple[RamWrite, ...]:
    """Those of the cause with this label; of a byte without more, those of all its causes."""
    address, causes = _address(cause), answer_key.question.causes
    mine = [each for each in causes if each.label == cause]
    if not mine and ":" not in cause:
        mine = [each for each in causes if each.ram_address == address]
    writes = [do for each in mine for do in each.interventions if isinstance(do, RamWrite)]
    return tuple(dict.fromkeys(writes))


def _roles(answer_key: AnswerKey, cause: str) -> list[str]:
    roles = [""] * N_VALUES
    for do in _do_values(answer_key, cause):
        roles[do.value] = "do-value"
    roles[answer_key.question.ram[_address(cause)]] = "present"
    return roles


def _key_path(run: Run, wanted: Wanted) -> str:
    return str(run.directory.answer_key_path("machine", wanted.game, wanted.state))


def _measured(job: Job, wanted: Wanted) -> Report:
    report = run_job(job, LIMITS)
    if report.status != "ok":
        raise VeritariError(f"{wanted.game} {wanted.cause}: expected a measured curve, got: {report.text}")
    return report


def _views(answer_key: AnswerKey, wanted: Wanted, curve: str, points: Callable[[int], pd.DataFrame]) -> list[CurveView]:
    question = answer_key.question
    return [
        CurveView(
            game=question.game,
            state=question.state,
            cause=wanted.cause,
            curve=curve,
            output=output.name,
            regime=output.regime,
            reference_value=float(answer_key.reference_value[row]),
            horizon_frames=len(question.trace.tail),
            points=points(row),
        )
        for row, output in enumerate(question.outputs)
        if wanted.output in ("", output.name)
    ]
