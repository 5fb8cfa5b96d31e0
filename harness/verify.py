"""`veritari verify`: the exactness of rollouts, checked for any games and any number of interventions."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from games.catalog import Game
from harness import work
from harness.guard import Report
from harness.pool import Job, Limits, run_jobs
from harness.runner import Progress

SIDES = ("recipe", "fresh")


def verify(
    games: Sequence[Game], *, protocol: str, n_interventions: int, seed: int, limits: Limits, progress: Progress
) -> pd.DataFrame:
    """One row per game: interventions compared, mismatches in RAM and screen, and which interventions they were."""
    with tempfile.TemporaryDirectory(prefix="veritari-") as scratch:
        answers = {
            (game.rom_id, side): Path(scratch) / f"{game.rom_id}-{side}.json" for game in games for side in SIDES
        }
        problems: dict[str, str] = {}
        progress.start("verifying", len(answers))
        # One pass per side, each in processes of its own: the two must not share what a poke may have poisoned.
        for side in SIDES:
            jobs = {
                Job(
                    work.digests,
                    (
                        work.Verification(protocol, game.rom_id, n_interventions, seed),
                        side,
                        str(answers[game.rom_id, side]),
                    ),
                ): game.rom_id
                for game in games
            }

            def done(job: Job, report: Report, jobs: dict[Job, str] = jobs) -> None:
                if report.status != "ok":
                    problems[jobs[job]] = report.text
                progress.advance()

            run_jobs(list(jobs), limits, done)
        rows = [_row(game.rom_id, answers, problems) for game in games]
    return pd.DataFrame(rows)


def _row(game: str, answers: dict[tuple[str, str], Path], problems: dict[str, str]) -> dict[str, object]:
    if game in problems:
        return {"game": game, "interventions": 0, "ram_mismatches": 0, "screen_mismatches": 0, "note": problems[game]}
    recipe, fresh = (json.loads(answers[game, side].read_text(encoding="utf-8")) for side in SIDES)
    ram = [index for index, (one, other) in enumerate(zip(recipe, fresh, strict=True)) if one[0] != other[0]]
    screen = [index for index, (one, other) in enumerate(zip(recipe, fresh, strict=True)) if one[1] != other[1]]
    found = {"RAM": ram, "screen": screen}
    return {
        "game": game,
        "interventions": len(recipe),
        "ram_mismatches": len(ram),
        "screen_mismatches": len(screen),
        "note": "; ".join(
            f"{what}: interventions {', '.join(map(str, which))}" for what, which in found.items() if which
        ),
    }
