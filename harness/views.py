"""What `veritari show` shows: leaderboard, a method's games, and the drill-down of one game."""

import math
import shlex

import pandas as pd

from games.errors import unknown_name
from harness.api import Run
from harness.board_texts import board_headings, printed
from harness.leaderboard import Board, joined
from harness.terminal import print_table, print_text
from oracle.protocol import is_custom

GAME_COLUMNS = ["subject", "game", "F", "F_content", "F_position", "F_partial", "S", "M", "note"]


def protocol_title(name: str) -> str:
    """A protocol as it heads a table: one with other parameters than its own is called custom.

    >>> protocol_title("ram-v2(horizon=30)")
    'custom ram-v2(horizon=30)'
    """
    return f"custom {name}" if is_custom(name) else name


def boards_of(run: Run, subject: str) -> list[Board]:
    """The boards of one subject, or of all where it is empty.

    Raises:
        UnknownName: the run is not about this subject.
    """
    if subject and subject not in run.manifest.settings.subjects:
        raise unknown_name("subject of this run", subject, run.manifest.settings.subjects)
    return [board for board in run.boards.values() if subject in ("", board.subject)]


def leaderboard_view(run: Run, board: Board) -> pd.DataFrame:
    """A leaderboard as printed, with the seconds per task that equal runs do not share."""
    rows = [row for _, row in board.leaderboard.iterrows()]
    view = pd.DataFrame(
        {heading: [printed(row, name) for row in rows] for name, heading in board_headings(board).items()}
    )
    view["seconds/task"] = [
        f"{seconds:.3f}" if not math.isnan(seconds) else "—"
        for seconds in run.seconds_per_task(board.subject, board.leaderboard["method"])
    ]
    return view


def print_leaderboards(run: Run, subject: str = "") -> None:
    """The leaderboard of each subject, or of one; what is excluded, what failed, what is still to do.

    Raises:
        UnknownName: the run is not about this subject.
    """
    settings = run.manifest.settings
    for board in boards_of(run, subject):
        about = " ".join(part for part in (board.subject, run.manifest.network_of(board.subject)) if part)
        print_table(
            leaderboard_view(run, board),
            title=f"{protocol_title(settings.protocol)}, {about}, games {settings.games}, seed {settings.seed}",
            n_key_columns=2,
        )
        if board.subject == "network":
            print_text(_network_legend(board))
        print_text(_reach_in_words(board))
        for line in _undecided(board):
            print_text(line)
        left_out = {
            "excluded": board.excluded,
            "not applicable": board.not_applicable,
            "degenerate": board.degenerate,
            "declined": _declined(run, board.subject),
        }
        for what, reasons in left_out.items():
            for name, reason in reasons.items():
                print_text(f"{what}: {board.subject} {name}: {reason}")
    failures = run.failures
    if len(failures):
        print_text(f"{len(failures)} failures, see {run.path / 'failures.csv'}; the first: {_first_failure(failures)}")
    if not run.is_finished:
        print_text(f"unfinished: continue with: veritari run --resume {shlex.quote(str(run.path))}")


def _reach_in_words(board: Board) -> str:
    reach = board.reach
    return (
        f"{reach['games_with_a_state']} of {reach['games']} games have a valid state ({reach['valid_states']} of "
        f"{reach['states']} states), {reach['games_with_content']} a content output, {reach['games_with_position']} a "
        f"position output"
    )


def _undecided(board: Board) -> list[str]:
    """Whom the methods can't be told from; nothing where there are too few games to tell anybody apart."""
    if board.comparisons["p"].isna().all():
        return []
    rows = board.leaderboard[board.leaderboard["rank"].notna()]
    return [
        f"not told apart: {row['method']} from {row['not_told_from']}"
        for _, row in rows.iterrows()
        if row["not_told_from"]
    ]


def _network_legend(board: Board) -> str:
    """What a newcomer would else read out of F."""
    uniform = board.leaderboard.set_index("method")["F"].to_dict()["uniform"]
    return (
        f"a map of ones (uniform) has F = {uniform:.3f} here: what moves many pixels matters more; "
        "F partial is what a map knows beyond that"
    )


def _declined(run: Run, subject: str) -> dict[str, str]:
    """Reasons by method of tasks that it did not take on, each reason once with its number of tasks."""
    records = run.records
    declined = records[
        (records["subject"] == subject) & (records["status"] == "not_applicable") & (records["output"] != "")
    ]
    counts = declined.groupby(["method", "reason"], sort=False, as_index=False).size()
    return {f"{row['method']!s}, {row['size']} tasks": str(row["reason"]) for _, row in counts.iterrows()}


def _first_failure(failures: pd.DataFrame) -> str:
    first = failures.iloc[0]
    return (
        " ".join(
            str(part) for part in (first["method"], first["subject"], first["game"], first["output"], first["status"])
        )
        + f": {first['reason']}"
    )


def method_view(run: Run, method: str, subject: str = "") -> pd.DataFrame:
    """One row per subject and game of a method.

    Raises:
        UnknownName: the run has no such method or subject.
    """
    per_game = joined(board.per_game for board in boards_of(run, subject))
    known = [entry.label for entry in run.manifest.methods]
    if method not in known:
        raise unknown_name("method of this run", method, known)
    return per_game[per_game["method"] == method][GAME_COLUMNS].reset_index(drop=True)
