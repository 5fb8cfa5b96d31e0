"""Leaderboards as CSV, JSON and Markdown, and how people read one cell."""

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from harness.leaderboard import Board
from harness.manifest import Manifest


def csv_text(frame: pd.DataFrame) -> str:
    """Full precision: nothing is rounded before it is printed."""
    return frame.to_csv(index=False, lineterminator="\n")


def json_text(boards: Iterable[Board], manifest: Manifest) -> str:
    """The leaderboards with what is needed to read them; undefined is null."""
    content = {
        "protocol": manifest.settings.protocol,
        "score_version": manifest.score_version,
        "seed": manifest.settings.seed,
        "boards": [
            {
                "subject": board.subject,
                "network": manifest.network_of(board.subject),
                "methods": [
                    {name: plain_number(value) for name, value in row.items()}
                    for row in board.leaderboard.to_dict("records")
                ],
                "reach": board.reach,
                "excluded": board.excluded,
                "not_applicable": board.not_applicable,
                "degenerate": board.degenerate,
            }
            for board in boards
        ],
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def plain_number(value: Any) -> Any:
    """A value as JSON has it: Python's own number, null for undefined."""
    if value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value


MARKDOWN_COLUMNS = {
    "rank": "#",
    "method": "method",
    "access": "access",
    "F": "F",
    "interval": "95 % interval",
    "ranks": "ranks",
    "F_partial": "F partial",
    "F_seed_sd": "sd of seeds",
    "F_content": "F content",
    "F_position": "F position",
    "F_unclipped": "F unclipped",
    "F_cross": "F cross",
    "F_log": "F log",
    "S": "S",
    "M": "M",
    "right": "right",
    "precision_at_3": "precision@3",
    "deletion_auc": "deletion AUC",
    "insertion_auc": "insertion AUC",
    "deletion_gain": "deletion gain",
    "insertion_gain": "insertion gain",
    "n_games": "games",
    "coverage": "coverage",
    "n_failed": "failed",
    "n_rollouts": "rollouts",
}


# Columns that mean something for one subject only, and for one version of the scores only.
ONLY_FOR = {"F_unclipped": "machine", "F_partial": "network", "F_cross": "machine"}
ONLY_IN = {
    **dict.fromkeys(("F_unclipped", "deletion_auc", "insertion_auc"), "v1"),
    **dict.fromkeys(("F_cross", "F_log", "S_log", "right"), "v2"),
    **dict.fromkeys(("deletion_gain", "insertion_gain", "deletion_diff", "insertion_diff"), "v2"),
}


def headings(subject: str, version: str = "v1", *, several_seeds: bool = False) -> dict[str, str]:
    """The columns of a printed leaderboard with their headings."""
    return {
        name: text
        for name, text in MARKDOWN_COLUMNS.items()
        if ONLY_FOR.get(name, subject) == subject
        and ONLY_IN.get(name, version) == version
        and (several_seeds or name != "F_seed_sd")
    }


def board_headings(board: Board) -> dict[str, str]:
    """The same for one board: the spread of seeds only where there are several."""
    several_seeds = bool((board.leaderboard["n_seeds"] > 1).any())
    return headings(board.subject, board.score_version, several_seeds=several_seeds)


def printed(row: pd.Series, column: str) -> str:
    """One cell of a leaderboard as people read it."""
    if column == "interval":
        kind = "" if row["F_interval"] == "BCa" else f" ({row['F_interval']})"
        return "—" if row["F_interval"] == "none" else f"{row['F_low']:.3f} to {row['F_high']:.3f}{kind}"
    if column == "ranks":
        return "—" if row["rank_low"] is pd.NA else f"{row['rank_low']} to {row['rank_high']}"
    value = row[column]
    if value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "—"
    if column == "coverage":
        return f"{value:.0%}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def markdown_text(boards: Iterable[Board]) -> str:
    """The leaderboards as Markdown tables, each under its heading."""
    return "\n".join(f"### Subject {board.subject}\n\n{_markdown_table(board)}" for board in boards)


def _markdown_table(board: Board) -> str:
    columns = board_headings(board)
    lines = [
        "| " + " | ".join(columns.values()) + " |",
        "|" + "|".join("---" if name in ("method", "access") else "---:" for name in columns) + "|",
    ]
    for _, row in board.leaderboard.iterrows():
        cells = (_markdown_cell(printed(row, name)) for name in columns)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _markdown_cell(text: str) -> str:
    """Labels are other people's text: it must neither end its line or cell nor be taken for HTML."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
