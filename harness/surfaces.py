"""Response surfaces of many game-states: planned, measured in blocks that are stored as they finish, and assembled.

A directory holds `manifest.json`, one `<game>-<state>.npz` per finished game-state and, while one is unfinished, its
answer key and blocks below `units/`. A command that is killed and continued, however often, ends in equal archives.
"""

import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

from harness import work
from harness.errors import BadRun, Interrupted
from harness.guard import Report
from harness.manifest import require_versions
from harness.pool import Job, Limits, run_jobs
from harness.run_directory import RunDirectory
from harness.runner import Progress
from harness.surface_blocks import Block, measure_block, read_block
from harness.surface_files import StateEntry, SurfaceManifest, archive_of, read_surface_manifest
from oracle.effects import AnswerKey
from oracle.errors import DamagedFile
from oracle.surface import joined

# About four seconds of work: what is lost, at most, per worker when the command is killed.
ADDRESSES_PER_BLOCK = 8
UNITS = "units"


class GameState(NamedTuple):
    """A game-state whose surface is measured; its name is that of its files."""

    game: str
    state: int

    @property
    def name(self) -> str:
        return f"{self.game}-{self.state}"


class BlockJob(NamedTuple):
    """A block that is to be measured."""

    where: GameState
    addresses: tuple[int, ...]


def begin_surfaces(path: Path, manifest: SurfaceManifest, store: Path, progress: Progress) -> SurfaceManifest:
    """Measure surfaces into a new directory; the manifest when all is done.

    Raises:
        BadRun: the directory is not empty.
    """
    files = RunDirectory(path)
    files.require_new()
    with files.locked():
        files.require_new()  # again: somebody else may have begun meanwhile
        return _finish(Surfaces(files, manifest, store, progress))


def resume_surfaces(path: Path, workers: int | None, store: Path, progress: Progress) -> SurfaceManifest:
    """Measure what is missing, or damaged, in a directory; what has failed is tried again.

    Raises:
        BadRun: not a directory of surfaces, or one that was begun with other versions.
    """
    manifest = read_surface_manifest(path)
    require_versions("surfaces", manifest.versions)
    manifest.workers = workers or manifest.workers
    files = RunDirectory(path)
    with files.locked():
        return _finish(Surfaces(files, manifest, store, progress))


def _finish(surfaces: "Surfaces") -> SurfaceManifest:
    try:
        surfaces.run()
    except KeyboardInterrupt as stop:
        path = shlex.quote(str(surfaces.files.path))
        raise Interrupted(
            f"interrupted; what was finished is kept: continue with: veritari oracle --resume {path}"
        ) from stop
    return surfaces.manifest


@dataclass
class Surfaces:
    """Measures what a manifest asks for and its directory does not have yet."""

    files: RunDirectory
    manifest: SurfaceManifest
    store: Path
    progress: Progress

    def run(self) -> None:
        """Answer keys, then blocks; may be killed at any moment and called again."""
        started = time.perf_counter()
        self.files.begin()
        self._write_manifest()
        try:
            missing = [where for where in self._game_states() if self._is_missing(where)]
            self._measure_keys([where for where in missing if self._answer_key(where) is None])
            self._measure_blocks([where for where in missing if self._key_path(where).exists()])
            with suppress(OSError):  # not empty: something has failed
                (self.files.path / UNITS).rmdir()
        finally:
            self.manifest.ended = datetime.now(UTC).isoformat(timespec="seconds")
            self.manifest.wall_seconds += time.perf_counter() - started
            self._write_manifest()

    def _game_states(self) -> Iterator[GameState]:
        for game in self.manifest.games:
            for state in range(self.manifest.n_states):
                if not game.exclusions:
                    yield GameState(game.rom_id, state)

    def _is_missing(self, where: GameState) -> bool:
        entry = self.manifest.states.get(where.name)
        if entry is not None and entry.status == "excluded":
            return False
        if entry is None or entry.status != "ok":
            return True
        path = self._archive_path(where)
        # Zip's own checksums leave out some bytes.
        if not path.exists() or sha256(path.read_bytes()).hexdigest() != entry.sha256:
            self.progress.warn(
                f"{path}: expected the archive that was written, got another or none; it is measured again"
            )
            return True
        # Left there if the process was killed in between.
        shutil.rmtree(self._units(where), ignore_errors=True)
        return False

    # --- answer keys --------------------------------------------------------------------------------------------

    def _measure_keys(self, missing: Sequence[GameState]) -> None:
        with tempfile.TemporaryDirectory(prefix="veritari-") as scratch:
            jobs = {}
            for where in missing:
                what = work.GameState(self.manifest.protocol, where.game, where.state)
                answer = str(Path(scratch) / f"{where.name}.npz")
                jobs[Job(work.measure_state, (what, str(self.store), answer))] = where

            def done(job: Job, report: Report) -> None:
                where, answer = jobs[job], Path(job.arguments[-1])
                if report.status == "ok":
                    self._keep_key(where, answer.read_bytes(), report.text)
                else:
                    self._fail(where, report, "effects")

            self._run("measuring effects", list(jobs), done)

    def _keep_key(self, where: GameState, archive: bytes, warning: str) -> None:
        if warning:
            self.progress.warn(warning)
        exclusion = AnswerKey.from_bytes(archive, str(self._key_path(where))).exclusion
        if exclusion:
            self._note(StateEntry(game=where.game, state=where.state, status="excluded", reason=exclusion))
        else:
            self._write(self._key_path(where), archive)

    def _answer_key(self, where: GameState) -> AnswerKey | None:
        path = self._key_path(where)
        try:
            return AnswerKey.from_bytes(path.read_bytes(), str(path)) if path.exists() else None
        except DamagedFile as error:
            self.progress.warn(f"{error}; it is measured again")
            path.unlink()
            return None

    # --- blocks -------------------------------------------------------------------------------------------------

    def _measure_blocks(self, states: Sequence[GameState]) -> None:
        waiting = {where: self._missing_blocks(where) for where in states}
        jobs = {
            self._block_job(where, addresses): BlockJob(where, addresses)
            for where in states
            for addresses in waiting[where]
        }
        for where in [each for each in states if not waiting[each]]:
            self._assemble(where)

        def done(job: Job, report: Report) -> None:
            where, addresses = jobs[job]
            if report.status != "ok":
                self._fail(where, report, f"bytes {addresses[0]} to {addresses[-1]}")
                return
            waiting[where].remove(addresses)
            if not waiting[where]:
                self._assemble(where)

        self._run("measuring surfaces", list(jobs), done)

    def _blocks(self) -> list[tuple[int, ...]]:
        chosen = self.manifest.addresses
        starts = range(0, len(chosen), ADDRESSES_PER_BLOCK)
        return [chosen[start : start + ADDRESSES_PER_BLOCK] for start in starts]

    def _block_job(self, where: GameState, addresses: tuple[int, ...]) -> Job:
        answer = str(self._block_path(where, addresses))
        return Job(measure_block, (str(self._key_path(where)), addresses, answer))

    def _missing_blocks(self, where: GameState) -> list[tuple[int, ...]]:
        answer_key = self._answer_key(where)
        return [each for each in self._blocks() if answer_key is None or self._block(where, answer_key, each) is None]

    def _block(self, where: GameState, answer_key: AnswerKey, addresses: tuple[int, ...]) -> Block | None:
        path = self._block_path(where, addresses)
        try:
            return read_block(path, answer_key, addresses)
        except DamagedFile as error:
            self.progress.warn(f"{error}; it is measured again")
            path.unlink()
            return None

    def _assemble(self, where: GameState) -> None:
        """Join the blocks of a game-state to its archive; only when that is noted do they go."""
        answer_key = self._answer_key(where)
        found = [self._block(where, answer_key, addresses) for addresses in self._blocks()] if answer_key else []
        blocks = [block for block in found if block is not None]
        if answer_key is None or len(blocks) < len(self._blocks()):
            raise BadRun(
                f"{self.files.path}: expected all blocks of {where.name}, some are gone; continue with --resume"
            )
        surface = joined([block.surface for block in blocks])
        md5 = next(game.rom_md5 for game in self.manifest.games if game.rom_id == where.game)
        archive = archive_of(answer_key, surface, self.manifest.addresses, md5, self.manifest.versions["ale-py"])
        self._write(self._archive_path(where), archive)
        self._note(
            StateEntry(
                game=where.game,
                state=where.state,
                status="ok",
                outputs=tuple(output.name for output in answer_key.question.outputs),
                n_rollouts=surface.n_rollouts,
                n_frames=surface.n_frames,
                seconds=sum(block.seconds for block in blocks),
                n_bytes=len(archive),
                sha256=sha256(archive).hexdigest(),
            )
        )
        shutil.rmtree(self._units(where))

    # --- common -------------------------------------------------------------------------------------------------

    def _run(self, what: str, jobs: Sequence[Job], done: Callable[[Job, Report], None]) -> None:
        limits = Limits(self.manifest.workers, self.manifest.timeout_seconds, self.manifest.memory_gib)
        self.progress.start(what, len(jobs))

        def on_done(job: Job, report: Report) -> None:
            if report.status == "no_room":
                raise self.files.no_room(report.text)
            done(job, report)
            self.progress.advance()

        run_jobs(jobs, limits, on_done)

    def _fail(self, where: GameState, report: Report, what: str) -> None:
        known: dict[str, Literal["excluded", "timeout"]] = {"excluded": "excluded", "timeout": "timeout"}
        status = known.get(report.status, "failed")
        reason = report.text if status == "excluded" else f"{what}: {report.text}"
        self._note(StateEntry(game=where.game, state=where.state, status=status, reason=reason))

    def _note(self, entry: StateEntry) -> None:
        self.manifest.states[GameState(entry.game, entry.state).name] = entry
        self._write_manifest()

    def _write_manifest(self) -> None:
        self.files.write("manifest.json", self.manifest.model_dump_json(indent=2) + "\n")

    def _write(self, path: Path, content: bytes) -> None:
        self.files.write(str(path.relative_to(self.files.path)), content)

    def _units(self, where: GameState) -> Path:
        return self.files.path / UNITS / where.name

    def _key_path(self, where: GameState) -> Path:
        return self._units(where) / "effects.npz"

    def _block_path(self, where: GameState, addresses: tuple[int, ...]) -> Path:
        return self._units(where) / f"{addresses[0]:03d}-{addresses[-1]:03d}.npz"

    def _archive_path(self, where: GameState) -> Path:
        return self.files.path / f"{where.name}.npz"
