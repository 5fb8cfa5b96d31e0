"""Blocks of a response surface: what a worker measures at a time, and the file that it leaves.

Every number of a block's arrays is the same whoever measures it; what it cost stands in its JSON text.
"""

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from games.catalog import game
from harness.guard import NoRoom, Report, guarded
from oracle.archive import naming_damage, pack, unpack
from oracle.effects import AnswerKey, Measured, hash_of_run, reference_run
from oracle.emulator import Emulator
from oracle.errors import DamagedFile, NotDeterministic
from oracle.horizons import HorizonCurve, horizon_curve
from oracle.intervention import RamWrite
from oracle.rollout import ExactRollouts
from oracle.store import write_atomically
from oracle.surface import N_VALUES, Surface, measure_surface
from oracle.task import Question

ARRAYS = ("differences", "changed_bytes", "changed_pixels")


class Block(NamedTuple):
    """Some addresses of a surface, and the seconds that measuring them took."""

    surface: Surface
    seconds: float


def measure_block(key_path: str, addresses: tuple[int, ...], answer: str) -> Report:
    """Measure the surface of some bytes at the state of an answer key; writes a block, whole or not at all."""
    return guarded(lambda: _measure_block(Path(key_path), addresses, Path(answer)))


def _measure_block(key_path: Path, addresses: tuple[int, ...], answer: Path) -> str:
    standing = _standing_at(key_path)
    started = time.perf_counter()
    surface = measure_surface(standing.found, standing.question.outputs, addresses)
    costs = {
        "n_rollouts": surface.n_rollouts,
        "n_frames": surface.n_frames,
        "seconds": time.perf_counter() - started,
    }
    identity = {"reference_hash": standing.reference_hash, "addresses": list(addresses)}
    _keep(answer, pack({**identity, **costs}, {name: getattr(surface, name) for name in ARRAYS}))
    return ""


def read_block(path: Path, answer_key: AnswerKey, addresses: Sequence[int]) -> Block | None:
    """The block of these addresses; None if there is none.

    Raises:
        DamagedFile: the file is not what was written, or is about something else.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    values, arrays = unpack(content, str(path))
    with naming_damage(str(path)):
        identity = [values["reference_hash"], values["addresses"]]
        differences, *others = (arrays[name].shape for name in ARRAYS)
        shape = (len(addresses), N_VALUES)
        expected = (len(answer_key.question.outputs), *shape)
        if (identity, differences, others) != ([answer_key.reference_hash, list(addresses)], expected, [shape, shape]):
            raise DamagedFile(f"{path}: expected a block of this game-state, got another's; delete it")
        surface = Surface(**arrays, n_rollouts=values["n_rollouts"], n_frames=values["n_frames"])
        return Block(surface, values["seconds"])


def measure_horizons(key_path: str, interventions: tuple[RamWrite, ...], answer: str) -> Report:
    """Measure the effect of do-values at every frame; writes the array of a `HorizonCurve`."""
    return guarded(lambda: _measure_horizons(Path(key_path), interventions, Path(answer)))


def _measure_horizons(key_path: Path, interventions: tuple[RamWrite, ...], answer: Path) -> str:
    standing = _standing_at(key_path)
    curve = horizon_curve(standing.found, standing.question.outputs, interventions)
    _keep(answer, pack({}, {"effects": curve.effects}))
    return ""


def read_horizons(path: Path) -> HorizonCurve:
    """What `measure_horizons` has written."""
    return HorizonCurve(**unpack(path.read_bytes(), str(path))[1])


def _keep(answer: Path, content: bytes) -> None:
    try:
        write_atomically(answer, content)
    except OSError as error:
        raise NoRoom(error.strerror) from error


class _Standing(NamedTuple):
    question: Question
    reference_hash: str
    found: Measured


# A worker meets the blocks of one game-state one after the other: it boots, and plays the reference run, once.
@lru_cache(maxsize=1)
def _standing_at(key_path: Path) -> _Standing:
    answer_key = AnswerKey.from_bytes(key_path.read_bytes(), str(key_path))
    question = answer_key.question
    played = game(question.game)
    rollouts = ExactRollouts(lambda: Emulator(played), question.trace)
    reference = reference_run(rollouts)
    if hash_of_run(rollouts, reference) != answer_key.reference_hash:
        raise NotDeterministic(
            f"{key_path}: expected the reference run that its effects were measured against, got another; "
            "measure it anew with these versions"
        )
    return _Standing(question, answer_key.reference_hash, Measured(rollouts, reference))
