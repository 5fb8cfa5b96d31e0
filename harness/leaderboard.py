"""From records to the leaderboard: one row per method, and one per method and game."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from harness.controls import CONTROLS
from harness.manifest import Manifest, MethodEntry
from harness.scores_v2 import gain
from harness.statistics import board_value, drawn_games, interval
from harness.units import UNANSWERED
from oracle.output import REGIMES

# Scores whose board value is the mean over regimes of the mean over games, by score version.
AVERAGED = ("F_partial", "S", "M", "precision_at_3", "deletion_auc", "insertion_auc", "F_log")
AVERAGED_V2 = ("F_partial", "F_cross", "S", "S_log", "M", "precision_at_3", "deletion_diff", "insertion_diff", "F_log")
AVERAGED_OF = {"v1": AVERAGED, "v2": AVERAGED_V2}
# What is summed over the outputs of a regime and compared with the oracle, with its name on the board.
GAINS = {"deletion_diff": "deletion_gain", "insertion_diff": "insertion_gain"}
UNKNOWN = "unknown"
TASK = ["game", "state", "output"]
COLUMNS = ("F", "F_counted", *dict.fromkeys((*AVERAGED, *AVERAGED_V2)))
RECOVERS, HOLDS_UP, NO_SIGNAL = 0.85, 0.5, 0.05
# Two correlations that are both 1 may differ by this much.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Board:
    """The records of a run about one subject, summed up.

    Attributes:
        score_version: what it is graded with.
        leaderboard: one row per method, best first within its access class, controls last.
        per_game: one row per method and game, in the order of the run.
        excluded: reason by game (and state, where a protocol has several) that nobody is scored on.
        not_applicable: reason by game and regime that the explained network has no output for.
        degenerate: reason by game and regime with nothing to rank.
    """

    subject: str
    score_version: str
    leaderboard: pd.DataFrame
    per_game: pd.DataFrame
    excluded: dict[str, str]
    not_applicable: dict[str, str]
    degenerate: dict[str, str]


def build_boards(records: pd.DataFrame, manifest: Manifest) -> dict[str, Board]:
    """Sum up the records of a run, each subject for itself."""
    return {
        subject: _build_board(records[records["subject"] == subject], manifest, subject)
        for subject in manifest.settings.subjects
    }


def _build_board(records: pd.DataFrame, manifest: Manifest, subject: str) -> Board:
    entries = manifest.methods_on(subject)
    # Where there is no output, there is no task that anybody could have faced.
    tasks = records[records["output"] != ""]
    scored = tasks[~tasks["status"].isin(["excluded", "degenerate"])].copy()
    scored["F_counted"] = scored["F"].clip(lower=0.0) if _clips_negative(manifest, subject) else scored["F"]
    labels = [entry.label for entry in entries]
    values = GameValues(scored, labels)
    spreads = seed_spreads(scored, labels)
    draws = drawn_games(len(values.games), seed=manifest.settings.seed)
    n_tasks = len(scored.drop_duplicates(TASK))
    averaged = AVERAGED_OF[manifest.score_version]
    rows = [
        {
            **_method_row(entry, values, draws, averaged),
            **(_only_v2(entry.label, scored) if manifest.score_version == "v2" else {}),
            "F_seed_sd": spreads.get(entry.label, math.nan),
            **_counts(tasks[tasks["method"] == entry.label], n_tasks),
        }
        for entry in entries
    ]
    leaderboard, per_game = _ranked(pd.DataFrame(rows)), _per_game(entries, scored, values, averaged)
    for table in (leaderboard, per_game):
        table.insert(0, "subject", subject)
    return Board(
        subject=subject,
        score_version=manifest.score_version,
        leaderboard=leaderboard,
        per_game=per_game,
        excluded=_reasons(records, "excluded", manifest),
        not_applicable=_reasons(records[records["output"] == ""], "not_applicable", manifest),
        degenerate=_reasons(records, "degenerate", manifest),
    )


def _reasons(records: pd.DataFrame, status: str, manifest: Manifest) -> dict[str, str]:
    """Reasons by what they are about."""
    concerned = records[records["status"] == status]
    names = concerned["game"] + ("" if manifest.n_states == 1 else "/" + concerned["state"].astype(str))
    if status != "excluded":
        names = names + " " + concerned["regime"]
    return dict(zip(names, concerned["reason"], strict=True))


class GameValues:
    """Game values of every score, method and regime: the mean over seeds, then outputs, then states; NaN for none."""

    def __init__(self, scored: pd.DataFrame, methods: Sequence[str]) -> None:
        self.games = list(dict.fromkeys(scored["game"]))
        self._methods = list(methods)
        self._values = {name: np.full((len(methods), len(REGIMES), len(self.games)), np.nan) for name in COLUMNS}
        means = scored.groupby(["method", "regime", "game", "state", "output"], sort=False)[list(COLUMNS)].mean()
        for level in (["method", "regime", "game", "state"], ["method", "regime", "game"]):
            means = means.groupby(level, sort=False).mean()
        place = {game: index for index, game in enumerate(self.games)}
        for (method, regime, game), row in zip(means.index, means.to_numpy(), strict=True):
            for name, value in zip(COLUMNS, row, strict=True):
                self._values[name][self._methods.index(method), REGIMES.index(regime), place[game]] = value

    def of(self, method: str, score: str) -> Float[np.ndarray, "regime game"]:
        """Game values of one score of one method."""
        return np.asarray(self._values[score][self._methods.index(method)])


def seed_spreads(scored: pd.DataFrame, methods: Sequence[str]) -> dict[str, float]:
    """The standard deviation of the board's F between the seeds of a method, over n - 1; none for a single seed."""
    by_seed = {seed: GameValues(rows, methods) for seed, rows in scored.groupby("seed")}
    spreads = {}
    for method, rows in scored.groupby("method"):
        seeds = rows["seed"].unique()
        if len(seeds) > 1:
            values = [board_value(by_seed[seed].of(str(method), "F_counted")) for seed in seeds]
            spreads[str(method)] = float(np.std(values, ddof=1))
    return spreads


def _clips_negative(manifest: Manifest, subject: str) -> bool:
    """The published audit, which knew no networks, counts a negative F as 0."""
    return manifest.score_version == "v1" and subject == "machine"


def _method_row(entry: MethodEntry, values: GameValues, draws: np.ndarray, averaged: Sequence[str]) -> dict[str, Any]:
    counted = values.of(entry.label, "F_counted")
    limits = interval(counted, draws)
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
        "F_unclipped": float(board_value(values.of(entry.label, "F"))),
        **{name: float(board_value(values.of(entry.label, name))) for name in averaged},
    }


def _only_v2(method: str, scored: pd.DataFrame) -> dict[str, float]:
    """What a claim gains on removal beside the oracle, and F on content where a byte's own value lasts or does not."""
    rows = {label: scored[scored["method"] == label] for label in (method, "oracle")}
    content = rows[method][rows[method]["regime"] == "content"]
    return {
        **{name: _gain_on_board(rows[method], rows["oracle"], column) for column, name in GAINS.items()},
        "F_content_alive": _mean_over_games(content[content["self_alive"]]),
        "F_content_overwritten": _mean_over_games(content[~content["self_alive"]]),
    }


def _gain_on_board(rows: pd.DataFrame, oracle: pd.DataFrame, column: str) -> float:
    """The mean over regimes of the gain over all outputs of the regime."""
    gains = []
    for regime in REGIMES:
        mine, ceiling = (each[each["regime"] == regime].groupby(TASK)[column].mean() for each in (rows, oracle))
        both = pd.concat([mine, ceiling], axis=1, keys=["method", "oracle"])
        gains.append(gain(both["method"].to_numpy(), both["oracle"].to_numpy()))
    return float(board_value(np.array(gains).reshape(-1, 1)))


def _mean_over_games(rows: pd.DataFrame) -> float:
    """F: the mean over seeds, outputs, states and games, in this order; NaN without any."""
    means = rows.groupby(["game", "state", "output"])["F"].mean()
    for level in (["game", "state"], ["game"]):
        means = means.groupby(level).mean()
    return float(means.mean()) if len(means) else math.nan


def _counts(records: pd.DataFrame, n_tasks: int) -> dict[str, Any]:
    """How much of the board a method has faced, and what it cost. `n_tasks` is what all methods together have faced.

    Tasks count once, however many seeds they were asked with; failures and costs count each time.
    """
    status = records["status"]
    faced = records[~status.isin(["excluded", "degenerate", "not_applicable"])]
    answered = (status == "ok").groupby([records[name] for name in TASK]).mean().sum()
    return {
        "n_games": int(faced["game"].nunique()),
        "n_tasks": len(faced.drop_duplicates(TASK)),
        "coverage": float(answered) / n_tasks if n_tasks else math.nan,
        "n_vanished": int(records["vanished"].sum()),
        "n_failed": int(status.isin(UNANSWERED).sum()),
        "n_not_applicable": int((status == "not_applicable").sum()),
        "n_degenerate": int((status == "degenerate").sum()),
        "n_seeds": int(records["seed"].nunique()),
        "n_rollouts": int(records["n_rollouts"].sum()),
        "n_gradients": int(records["n_gradients"].sum()),
    }


def _ranked(board: pd.DataFrame) -> pd.DataFrame:
    """Ranks within one access class; a method that did not face every task has none, nor has a control."""
    is_control = board["method"].isin(CONTROLS)
    # A broken plugin has never said what it may use, so it is in no contest.
    faced_all = board["n_tasks"] == board["n_tasks"].max()
    applies = board["n_not_applicable"] == 0
    in_contest = ~is_control & faced_all & applies & (board["access"] != UNKNOWN) & (board["n_tasks"] > 0)
    ranks = board[in_contest].groupby("access")["F"].rank(method="min", ascending=False)
    board.insert(0, "rank", ranks.reindex(board.index).astype("Int64"))
    order = board.assign(control=is_control, unranked=~in_contest, best=-board["F"])
    return board.loc[order.sort_values(["control", "unranked", "access", "best", "method"]).index].reset_index(
        drop=True
    )


def _per_game(
    entries: Sequence[MethodEntry], scored: pd.DataFrame, values: GameValues, averaged: Sequence[str]
) -> pd.DataFrame:
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


def joined(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The tables of all subjects beneath each other; the column `subject` keeps them apart."""
    return pd.concat(list(tables), ignore_index=True)
