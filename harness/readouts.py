"""Train the readouts of many games, and tell what they can read."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from games.catalog import Game
from harness import work
from harness.errors import CannotWrite, WrongUsage
from harness.guard import Report
from harness.pool import Job, Limits, run_jobs
from harness.runner import Progress
from oracle.output import REGIMES
from oracle.readout import has_readout, read_card, weights_path


def train_readouts(
    games: Sequence[Game], *, seed: int, n_frames: int, folder: Path, limits: Limits, progress: Progress
) -> dict[str, str]:
    """Train one readout per game into `folder`; the reasons of those that failed, by game.

    Raises:
        WrongUsage: no game has named bytes to read.
        CannotWrite: the folder can't be written.
    """
    named = [game for game in games if game.named_bytes]
    if not named:
        raise WrongUsage("games: expected one with named bytes, got none; there is nothing to read out")
    _require_writable(folder)
    jobs = {Job(work.train_readout, (game.rom_id, seed, n_frames, str(folder))): game for game in named}
    failures: dict[str, str] = {}
    progress.start("training readouts", len(jobs))

    def done(job: Job, report: Report) -> None:
        if report.status == "no_room":
            raise CannotWrite(f"{folder}: expected room to write, got {report.text}; choose another --folder")
        if report.status != "ok":
            failures[jobs[job].rom_id] = report.text
        progress.advance()

    run_jobs(list(jobs), limits, done)
    return failures


def _require_writable(folder: Path) -> None:
    """Found out now, and not after the first training."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CannotWrite(
            f"{folder}: expected a folder that can be written, got {error.strerror}; choose another --folder"
        ) from error


def readouts_table(games: Sequence[Game], folder: Path) -> pd.DataFrame:
    """One row per game with a readout: the explained byte and its R2 per regime, size and origin."""
    rows = []
    for game in games:
        if not has_readout(game.rom_id, folder):
            continue
        card = read_card(game.rom_id, folder)
        best = {regime: card.best(regime) for regime in REGIMES}
        row: dict[str, str | float] = {"game": game.rom_id}
        for regime, byte in best.items():
            chosen = card.chosen(regime)
            named = f"ram[{byte.address}] {byte.name}" if byte else ""
            row[regime] = named if chosen or not byte else f"none (best: {named})"
            row[f"R2_{regime}"] = byte.r2 if byte and byte.r2 is not None else float("nan")
        rows.append(
            {
                **row,
                "read_well": card.n_read_well,
                "named": len(card.bytes),
                "kB": weights_path(game.rom_id, folder).stat().st_size / 1000,
                "seed": card.seed,
                "frames": card.n_frames,
                "unlike_first": card.n_frames_unlike_first,
                "boots": card.n_boots,
            }
        )
    return pd.DataFrame(rows)


def bytes_table(game: Game, folder: Path) -> pd.DataFrame:
    """One row per named byte of a game: how well it is read."""
    card = read_card(game.rom_id, folder)
    explained = {byte.address: regime for regime in REGIMES if (byte := card.chosen(regime))}
    return pd.DataFrame(
        [
            {
                "byte": f"ram[{byte.address}]",
                "name": byte.name,
                "R2": float("nan") if byte.r2 is None else byte.r2,
                "explained_as": explained.get(byte.address, ""),
            }
            for byte in card.bytes
        ]
    )
