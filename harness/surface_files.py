"""The files of response surfaces: the manifest, and one archive per game-state."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from harness.errors import BadRun
from harness.manifest import GameEntry
from oracle.archive import pack
from oracle.effects import AnswerKey
from oracle.intervention import RamWrite
from oracle.surface import Surface

SURFACE_FORMAT = 1


class StateEntry(BaseModel):
    """How one game-state went; `n_bytes` and `sha256` are those of its archive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    game: str
    state: int
    status: Literal["ok", "excluded", "failed", "timeout"]
    reason: str = ""
    outputs: tuple[str, ...] = ()
    n_rollouts: int = 0
    n_frames: int = 0
    seconds: float = 0.0
    n_bytes: int = 0
    sha256: str = ""


class SurfaceManifest(BaseModel):
    """The content of `manifest.json`: everything that decides the numbers, and what is done.

    `states` has the finished game-states by name, such as `pong-0`. Seconds are those of all workers together.
    """

    model_config = ConfigDict(extra="forbid")

    surface_format: Literal[1]
    protocol: str
    parameters: dict[str, Any]
    n_states: int
    games: tuple[GameEntry, ...]
    addresses: tuple[int, ...]
    versions: dict[str, str]
    git_commit: str
    git_dirty: bool
    machine: dict[str, Any]
    workers: int
    timeout_seconds: float
    memory_gib: float
    started: str
    ended: str = ""
    wall_seconds: float = 0.0
    states: dict[str, StateEntry] = {}


def read_surface_manifest(folder: Path) -> SurfaceManifest:
    """The manifest in a directory of surfaces.

    Raises:
        BadRun: there is none, or it is another's.
    """
    path = folder / "manifest.json"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadRun(
            f"{folder}: expected a directory of surfaces with a manifest.json, got {error.strerror}; check the path"
        ) from error
    try:
        return SurfaceManifest.model_validate_json(content)
    except ValueError as error:
        raise BadRun(
            f"{path}: expected a manifest of surfaces, got a damaged or another one; check the path"
        ) from error


def archive_of(answer_key: AnswerKey, surface: Surface, addresses: Sequence[int], rom_md5: str, ale_py: str) -> bytes:
    """The archive of one game-state: arrays, and a JSON text that says what they are. Nothing in it depends on time.

    `effect:NAME` is y(do) - y(reference) of the output NAME, one row per entry of `addresses`, one column per value;
    `changed_bytes` and `changed_pixels` count what differs from the reference run. `ram` is the RAM at f*.
    """
    question = answer_key.question
    references = answer_key.reference_value.tolist()
    values = {
        "surface_format": SURFACE_FORMAT,
        "protocol": question.protocol,
        "game": question.game,
        "state": question.state,
        "frame": question.trace.frame,
        "horizon": len(question.trace.tail),
        "actions": list(question.trace.actions),
        "rom_md5": rom_md5,
        "ale_py": ale_py,
        "reference_hash": answer_key.reference_hash,
        "outputs": [
            {**asdict(output), "array": _array(output.name), "reference_value": reference}
            for output, reference in zip(question.outputs, references, strict=True)
        ],
        "do_values": {
            cause.label: [do.value for do in cause.interventions if isinstance(do, RamWrite)]
            for cause in question.causes
            if cause.ram_address in addresses
        },
        "n_rollouts": surface.n_rollouts,
    }
    arrays = {_array(output.name): rows for output, rows in zip(question.outputs, surface.differences, strict=True)}
    return pack(
        values,
        {
            "addresses": np.array(addresses, dtype=np.int32),
            "ram": question.ram,
            **arrays,
            "changed_bytes": surface.changed_bytes,
            "changed_pixels": surface.changed_pixels,
        },
    )


def _array(output: str) -> str:
    return f"effect:{output}"


def surfaces_table(manifest: SurfaceManifest) -> pd.DataFrame:
    """One row per game-state: outputs, what it cost, and the size of its archive."""
    columns = ["game", "state", "status", "outputs", "rollouts", "seconds", "kilobytes", "reason"]
    excluded = [
        (entry.rom_id, 0, "excluded", "", 0, 0.0, 0.0, reason)
        for entry in manifest.games
        for reason in entry.exclusions.values()
    ]
    measured = [
        (
            *(each.game, each.state, each.status, " ".join(each.outputs), each.n_rollouts, each.seconds),
            *(each.n_bytes / 1000, each.reason),
        )
        for each in manifest.states.values()
    ]
    return pd.DataFrame([*measured, *excluded], columns=columns).sort_values(["game", "state"], ignore_index=True)
