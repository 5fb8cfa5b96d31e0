"""One row per method and game, with a note in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.board_values import GameValues
from harness.manifest import MethodEntry
from harness.statistics import board_value

RECOVERS, HOLDS_UP, NO_SIGNAL = 0.85, 0.5, 0.05

# Two correlations that are both 1 may differ by this much.
ROUNDING = 1e-12


def per_game_table(
    entries: Sequence[MethodEntry], scored: pd.DataFrame, values: GameValues, averaged: Sequence[str]
) -> pd.DataFrame:
    """The table of a board: scores as on the board, but of one game; F of each regime as it is, never clipped."""
    remarks = _remarks(scored)
    rows = []
    for entry in entries:
        played = set(scored.loc[scored["method"] == entry.label, "game"])
        for index, game in enumerate(values.games):
            if game in played:
                row = _game_row(entry, game, values, index, averaged)
                remark = remarks.get((entry.label, game), Remark())
                # Scores say something about answers only.
                words = remark.troubles or _notes(entry, row, remark)
                rows.append({**row, "note": "; ".join(words)})
    return pd.DataFrame(rows, columns=["method", "game", "F", "F_content", "F_position", *averaged, "note"])


def _game_row(entry: MethodEntry, game: str, values: GameValues, index: int, averaged: Sequence[str]) -> dict[str, Any]:
    column = slice(index, index + 1)
    raw = values.of(entry.label, "F")[:, index]
    return {
        "method": entry.label,
        "game": game,
        "F": float(board_value(values.of(entry.label, "F_counted")[:, column])),
        "F_content": float(raw[0]),
        "F_position": float(raw[1]),
        **{name: float(board_value(values.of(entry.label, name)[:, column])) for name in averaged},
    }


@dataclass(frozen=True)
class Remark:
    """What a note says beside the scores: statuses other than ok, and whether every position claim is exactly zero."""

    troubles: tuple[str, ...] = ()
    position_is_zero: bool = False


def _remarks(scored: pd.DataFrame) -> dict[tuple[str, str], Remark]:
    keys = ["method", "game"]
    troubled = scored[scored["status"] != "ok"]
    troubles = {key: tuple(sorted(set(group))) for key, group in troubled.groupby(keys)["status"]}
    position = scored[scored["regime"] == "position"]
    # A claim that names nothing is zero; one that names all causes alike has vanished too, but is not zero.
    is_zero = (position["status"] == "ok") & position["vanished"] & (position["n_named"] == 0)
    zero = is_zero.groupby([position[name] for name in keys]).all()
    return {
        key: Remark(tuple(status.replace("_", " ") for status in troubles.get(key, ())), bool(zero.get(key, False)))
        for key in {*troubles, *zero.index}
    }


def _notes(entry: MethodEntry, row: dict[str, Any], remark: Remark) -> list[str]:
    """What the numbers of one game say, in words; empty where they say nothing remarkable.

    On a network, where a map of ones has a fair F, only what a claim knows beyond movement is praised.
    """
    # Undefined for the machine.
    is_beyond = math.isnan(row["F_partial"]) or row["F_partial"] >= HOLDS_UP
    words = {
        f"position {'gradient' if entry.family == 'gradient' else 'claim'} vanishes": remark.position_is_zero,
        "recovers the true causes": is_beyond and row["F"] >= RECOVERS,
        "holds up on position": is_beyond and row["F_position"] >= max(HOLDS_UP, row["F"] - ROUNDING),
        "no true-cause signal": row["F"] <= NO_SIGNAL,
        "no more than movement": row["F"] > NO_SIGNAL and row["F_partial"] <= NO_SIGNAL,
    }
    return [text for text, true in words.items() if true]
