"""From records to the leaderboard: one row per method, and one per method and game."""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.controls import CONTROLS
from harness.manifest import Manifest, MethodEntry
from harness.statistics import board_value, drawn_games, interval
from harness.units import UNANSWERED
from oracle.output import REGIMES

# Scores whose board value is the mean over regimes of the mean over games.
AVERAGED = ("S", "M", "precision_at_3", "deletion_auc", "insertion_auc", "F_log")
RECOVERS, HOLDS_UP, NO_SIGNAL = 0.85, 0.5, 0.05


@dataclass(frozen=True)
class Board:
    """The records of a run, summed up.

    Attributes:
        leaderboard: one row per method, best first within its access class, controls last.
        per_game: one row per method and game, in the order of the run.
        excluded: reason by game (and state, where a protocol has several) that nobody is scored on.
    """

    leaderboard: pd.DataFrame
    per_game: pd.DataFrame
    excluded: dict[str, str]


def build_board(records: pd.DataFrame, manifest: Manifest) -> Board:
    """Sum up the records of a run."""
    scored = records[~records["status"].isin(["excluded", "degenerate"])].copy()
    clip = _clips_negative(manifest)
    scored["F_counted"] = scored["F"].clip(lower=0.0) if clip else scored["F"]
    unanswered = scored["status"].isin(UNANSWERED)
    # Nothing raises a mean by not answering: where a vanished claim has no score, an unanswered task counts as 0.
    scored.loc[unanswered, list(AVERAGED)] = scored.loc[unanswered, list(AVERAGED)].fillna(0.0)
    games = list(dict.fromkeys(scored["game"]))
    draws = drawn_games(len(games), seed=manifest.settings.seed) if games else np.zeros((0, 0), dtype=np.int64)
    rows = [_method_row(entry, scored[scored["method"] == entry.label], games, draws) for entry in manifest.methods]
    per_game = [
        row
        for entry in manifest.methods
        for row in _game_rows(entry, scored[scored["method"] == entry.label])
    ]
    excluded = records[records["status"] == "excluded"].drop_duplicates(["game", "state"])
    names = excluded["game"] + ("" if manifest.n_states == 1 else "/" + excluded["state"].astype(str))
    return Board(_ranked(pd.DataFrame(rows)), pd.DataFrame(per_game), dict(zip(names, excluded["reason"], strict=True)))


def _clips_negative(manifest: Manifest) -> bool:
    """The published audit counts a negative F as 0; later versions do not."""
    return manifest.score_version == "v1"


def _method_row(entry: MethodEntry, records: pd.DataFrame, games: list[str], draws: np.ndarray) -> dict[str, Any]:
    counted = _values(records, "F_counted", games)
    limits = interval(counted, draws)
    answered = records["status"] != "not_applicable"
    return {
        "method": entry.label,
        "title": entry.title,
        "family": entry.family,
        "access": entry.access,
        "F": float(board_value(counted)),
        "F_low": limits.low,
        "F_high": limits.high,
        "F_interval": limits.kind,
        "F_content": float(board_value(counted[:1])),
        "F_position": float(board_value(counted[1:])),
        "F_unclipped": float(board_value(_values(records, "F", games))),
        **{name: float(board_value(_values(records, name, games))) for name in AVERAGED},
        "n_games": int(records.loc[answered, "game"].nunique()),
        "coverage": float(answered.mean()) if len(records) else math.nan,
        "n_vanished": int(records["vanished"].sum()),
        "n_failed": int(records["status"].isin(UNANSWERED).sum()),
        "n_rollouts": int(records["n_rollouts"].sum()),
        "n_gradients": int(records["n_gradients"].sum()),
    }


def _values(records: pd.DataFrame, column: str, games: list[str]) -> np.ndarray:
    """Game values (regime, game): the mean over seeds, then outputs, then states; NaN where there is none."""
    values = np.full((len(REGIMES), len(games)), np.nan)
    outputs = records.groupby(["regime", "game", "state", "output"])[column].mean()
    means = outputs.groupby(["regime", "game", "state"]).mean().groupby(["regime", "game"]).mean()
    for (regime, game), value in means.items():  # type: ignore[misc]
        values[REGIMES.index(regime), games.index(game)] = value
    return values


def _ranked(board: pd.DataFrame) -> pd.DataFrame:
    """Ranks within one access class; a method that did not face every task has none, nor has a control."""
    is_control = board["method"].isin(CONTROLS)
    in_contest = ~is_control & (board["coverage"] == 1.0)
    ranks = board[in_contest].groupby("access")["F"].rank(method="min", ascending=False)
    board.insert(0, "rank", ranks.reindex(board.index).astype("Int64"))
    order = board.assign(control=is_control, unranked=~in_contest, best=-board["F"])
    return board.loc[order.sort_values(["control", "unranked", "access", "best", "method"]).index].reset_index(drop=True)


def _game_rows(entry: MethodEntry, records: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for game, group in records.groupby("game", sort=False):
        counted, raw = (_values(group, column, [str(game)])[:, 0] for column in ("F_counted", "F"))
        row = {
            "method": entry.label,
            "game": game,
            "F": float(board_value(counted[:, np.newaxis])),
            "F_content": float(raw[0]),
            "F_position": float(raw[1]),
            **{name: float(board_value(_values(group, name, [str(game)]))) for name in AVERAGED},
        }
        rows.append({**row, "note": _note(entry, group, row)})
    return rows


def _note(entry: MethodEntry, records: pd.DataFrame, row: dict[str, Any]) -> str:
    """What the numbers of one game say, in words; empty where they say nothing remarkable."""
    position = records[records["regime"] == "position"]
    answered = position["status"] == "ok"
    zero = answered & position["vanished"] & (position["n_named"] == 0)
    words = {
        f"position {'gradient' if entry.family == 'gradient' else 'claim'} vanishes": bool(len(zero) and zero.all()),
        "recovers the true causes": row["F"] >= RECOVERS,
        "holds up on position": row["F_position"] >= HOLDS_UP and row["F_position"] >= row["F"],
        "no true-cause signal": row["F"] <= NO_SIGNAL,
    }
    troubles = records.loc[records["status"] != "ok", "status"].drop_duplicates()
    return "; ".join([*troubles.str.replace("_", " "), *(text for text, true in words.items() if true)])


def csv_text(frame: pd.DataFrame) -> str:
    """Full precision: nothing is rounded before it is printed."""
    return frame.to_csv(index=False, lineterminator="\n")


def json_text(board: Board, manifest: Manifest) -> str:
    """The leaderboard with what is needed to read it; undefined is null."""
    rows = [{name: _plain(value) for name, value in row.items()} for row in board.leaderboard.to_dict("records")]
    content = {
        "protocol": manifest.settings.protocol,
        "score_version": manifest.score_version,
        "subject": "machine",
        "seed": manifest.settings.seed,
        "methods": rows,
        "excluded": board.excluded,
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value


MARKDOWN_COLUMNS = {
    "rank": "#",
    "method": "method",
    "access": "access",
    "F": "F",
    "interval": "95 % interval",
    "F_content": "F content",
    "F_position": "F position",
    "F_unclipped": "F unclipped",
    "S": "S",
    "M": "M",
    "precision_at_3": "precision@3",
    "deletion_auc": "deletion AUC",
    "insertion_auc": "insertion AUC",
    "n_games": "games",
    "coverage": "coverage",
    "n_rollouts": "rollouts",
}


def printed(row: pd.Series, column: str) -> str:
    """One cell of a leaderboard as people read it."""
    if column == "interval":
        kind = "" if row["F_interval"] == "BCa" else f" ({row['F_interval']})"
        return "—" if row["F_interval"] == "none" else f"{row['F_low']:.3f} to {row['F_high']:.3f}{kind}"
    value = row[column]
    if value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "—"
    if column == "coverage":
        return f"{value:.0%}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def markdown_text(board: Board) -> str:
    """The leaderboard as a Markdown table."""
    lines = [
        "| " + " | ".join(MARKDOWN_COLUMNS.values()) + " |",
        "|" + "|".join("---" if name in ("method", "access") else "---:" for name in MARKDOWN_COLUMNS) + "|",
    ]
    for _, row in board.leaderboard.iterrows():
        cells = (printed(row, name).replace("|", "\\|").replace("<", "&lt;") for name in MARKDOWN_COLUMNS)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
