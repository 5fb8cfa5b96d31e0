"""One run on disk. Every file is written whole or not at all, so a run can be read and continued at any moment."""

import io
import json
import shlex
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout
from pydantic import ValidationError

from harness.errors import BadRun, CannotWrite, DirectoryBusy
from harness.manifest import Manifest, read_manifest
from harness.units import Claim, Curves, OracleOutcome, map_name, slug
from oracle.archive import pack, unpack
from oracle.effects import AnswerKey
from oracle.errors import DamagedFile
from oracle.store import PARTIAL, write_atomically

TIMINGS = "timings.jsonl"
LOCK = ".lock"
# Written after all tables: where it is, they are.
CHECKSUMS = "tables.sha256"

Unit = TypeVar("Unit", OracleOutcome, Claim, Curves)


class RunDirectory:
    """Paths and files of a run; see `results/README.md` for the format."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory: one writer at a time.

        Raises:
            DirectoryBusy: somebody else writes it.
            BadRun: it can't be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / LOCK)
            lock.acquire(timeout=0)
        except Timeout as error:
            raise DirectoryBusy(
                f"{self.path}: expected to be its only writer, another run is; wait or choose --out"
            ) from error
        except OSError as error:
            raise BadRun(
                f"{self.path}: expected a directory that can be written, got {error.strerror}; choose --out"
            ) from error
        try:
            yield
        finally:
            lock.release()

    def require_new(self) -> None:
        """Refuse a directory that has something in it.

        Raises:
            BadRun: it has.
        """
        taken = self.path.is_dir() and any(each.name != LOCK for each in self.path.iterdir())
        if taken or (self.path.exists() and not self.path.is_dir()):
            path = shlex.quote(str(self.path))
            raise BadRun(
                f"{self.path}: expected a new or empty directory for --out; to continue a run use --resume {path}"
            )

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace `manifest.json`."""
        self.write("manifest.json", manifest.model_dump_json(indent=2) + "\n")

    def manifest(self) -> Manifest:
        """The run's manifest.

        Raises:
            BadRun: missing, damaged or of another format.
        """
        return read_manifest(self.path / "manifest.json")

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file below the directory, whole or not at all.

        Raises:
            CannotWrite: no room, or no permission; what was written before is kept.
        """
        with self._room():
            write_atomically(self.path / name, content.encode() if isinstance(content, str) else content)

    @contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.no_room(error.strerror or type(error).__name__) from error

    def no_room(self, reason: str) -> CannotWrite:
        """The error for a file of this run that can't be written."""
        return CannotWrite(
            f"{self.path}: expected room to write, got {reason}; nothing is lost: "
            f"make room and continue with --resume {shlex.quote(str(self.path))}"
        )

    def begin(self) -> None:
        """Make ready to work: the run counts as unfinished, and what a killed process left half-written goes."""
        with self._room():
            (self.path / CHECKSUMS).unlink(missing_ok=True)
            for path in self.path.rglob(f"*{PARTIAL}"):
                path.unlink()

    def answer_key_path(self, subject: str, game: str, state: int) -> Path:
        """The archive of one game-state."""
        return self.path / "oracle" / f"{subject}-{game}-{state}.npz"

    def write_answer_key(self, outcome: OracleOutcome, archive: bytes) -> None:
        """Keep the archive of one game-state."""
        path = self.answer_key_path(outcome.subject, outcome.game, outcome.state)
        self.write(str(path.relative_to(self.path)), archive)

    def answer_key(self, subject: str, game: str, state: int) -> AnswerKey:
        """The measured effects of one game-state.

        Raises:
            DamagedFile: the archive is missing, or not what was written.
        """
        path = self.answer_key_path(subject, game, state)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DamagedFile(f"{path}: expected the answer key of {game}, got {error.strerror}") from error
        return AnswerKey.from_bytes(content, str(path))

    def write_map(self, claim: Claim, pixels: np.ndarray) -> None:
        """Keep the pixel map behind a claim, in float32."""
        self.write(map_name(claim), pack({"method": claim.method}, {"map": pixels.astype(np.float32)}))

    def pixel_map(self, claim: Claim) -> np.ndarray | None:
        """The pixel map behind a claim; None where there is none.

        Raises:
            DamagedFile: it is not what was written.
        """
        path = self.path / map_name(claim)
        return unpack(path.read_bytes(), str(path))[1]["map"] if path.exists() else None

    def write_unit(self, unit: OracleOutcome | Claim | Curves) -> None:
        """Store a finished unit."""
        self.write(f"units/{unit.filename}", unit.model_dump_json())

    def unit(self, expected: Unit) -> Unit | None:
        """The stored unit with the identity of `expected`; None if there is none, or a damaged one."""
        try:
            stored = type(expected).model_validate_json(self.unit_path(expected).read_bytes())
        except (OSError, ValidationError):
            return None
        return stored if stored.identity == expected.identity else None

    def unit_path(self, unit: OracleOutcome | Claim | Curves) -> Path:
        """Where a unit is or would be stored."""
        return self.path / "units" / unit.filename

    def add_timing(self, filename: str, seconds: float) -> None:
        """Append to the timings, which are kept apart because they alone differ between equal runs."""
        with self._room(), (self.path / TIMINGS).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"unit": filename, "seconds": seconds}) + "\n")

    def timings(self) -> pd.DataFrame:
        """Seconds per unit, of all attempts. Timings are a comfort: what is damaged is left out."""
        rows = [*self._written_timings(), *self._new_timings()]
        frame = pd.DataFrame(rows, columns=["unit", "seconds"]).astype({"unit": "str", "seconds": "float64"})
        return frame.drop_duplicates("unit", keep="last").sort_values("unit", ignore_index=True)

    def _written_timings(self) -> list[dict[Hashable, Any]]:
        try:
            return pd.read_parquet(self.path / "timings.parquet").to_dict("records")
        except (OSError, ValueError):
            return []

    def _new_timings(self) -> Iterator[dict[str, Any]]:
        path = self.path / TIMINGS
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
            with suppress(ValueError):
                yield json.loads(line)

    def finish_timings(self) -> None:
        """Fold the timings of this attempt into `timings.parquet`."""
        buffer = io.BytesIO()
        self.timings().to_parquet(buffer, index=False)
        self.write("timings.parquet", buffer.getvalue())
        (self.path / TIMINGS).unlink(missing_ok=True)

    def seconds_per_task(self, subject: str, methods: Iterable[str]) -> list[float]:
        """Mean seconds of each method's claims on one subject; NaN where it has none."""
        timings = self.timings()
        starts = (f"claims/{slug(method)}/{subject}-" for method in methods)
        return [float(timings.loc[timings["unit"].str.startswith(start), "seconds"].mean()) for start in starts]
