"""From records to the leaderboard: one row per method, and one per method and game."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from harness.board_values import AVERAGED_OF, TASK, GameValues
from harness.contests import UNKNOWN, Contest
from harness.controls import CONTROLS
from harness.manifest import Manifest, MethodEntry
from harness.per_game import per_game_table
from harness.scores_v2 import gain
from harness.statistics import (
    Interval,
    board_value,
    drawn_games,
    intervals,
)
from harness.units import UNANSWERED
from oracle.output import REGIMES

# A claim is right if F, S and M all reach this.
RIGHT = 0.5
# What is summed over the outputs of a regime and compared with the oracle, with its name on the board.
GAINS = {"deletion_diff": "deletion_gain", "insertion_diff": "insertion_gain"}


@dataclass(frozen=True)
class Board:
    """The records of a run about one subject, summed up.

    Attributes:
        score_version: what it is graded with.
        leaderboard: one row per method, best first within its access class, controls last.
        per_game: one row per method and game, in the order of the run.
        comparisons: one row per pair of methods and regime: how far apart they are, and whether that is chance.
        families: the same of families of methods.
        reach: how many games and states there are, are valid, and have an output of each regime.
        excluded: reason by game (and state, where a protocol has several) that nobody is scored on.
        not_applicable: reason by game and regime that the explained network has no output for.
        degenerate: reason by game and regime with nothing to rank.
    """

    subject: str
    score_version: str
    leaderboard: pd.DataFrame
    per_game: pd.DataFrame
    comparisons: pd.DataFrame
    families: pd.DataFrame
    reach: dict[str, int]
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
    scored["right"] = (scored[["F", "S", "M"]] >= RIGHT).all(axis=1).astype(np.float64)
    labels = [entry.label for entry in entries]
    values = GameValues(scored, labels)
    spreads = values.spreads("F_counted")
    draws = drawn_games(len(values.games), seed=manifest.settings.seed)
    limits = intervals(values.of_all("F_counted"), draws)
    n_tasks = len(scored.drop_duplicates(TASK))
    averaged = AVERAGED_OF[manifest.score_version]
    rows = [
        {
            **_method_row(entry, values, limits[place], averaged),
            **(_only_v2(entry.label, scored, subject) if manifest.score_version == "v2" else {}),
            **spreads[entry.label],
            **_counts(tasks[tasks["method"] == entry.label], n_tasks),
        }
        for place, entry in enumerate(entries)
    ]
    board, per_game = pd.DataFrame(rows), per_game_table(entries, scored, values, averaged)
    complete = board.loc[_faced_all(board), "method"].tolist()
    contest = Contest(entries, values.of_all("F_counted"), complete, seed=manifest.settings.seed)
    leaderboard = _ranked(board).merge(contest.columns(), on="method", how="left")
    comparisons, families = contest.pairs(), contest.families()
    for table in (leaderboard, per_game, comparisons, families):
        table.insert(0, "subject", subject)
    return Board(
        subject=subject,
        score_version=manifest.score_version,
        leaderboard=leaderboard,
        per_game=per_game,
        comparisons=comparisons,
        families=families,
        reach=_reach(tasks, manifest),
        excluded=_reasons(records, "excluded", manifest),
        not_applicable=_reasons(records[records["output"] == ""], "not_applicable", manifest),
        degenerate=_reasons(records, "degenerate", manifest),
    )


def _reach(tasks: pd.DataFrame, manifest: Manifest) -> dict[str, int]:
    """`tasks` are the records that have an output."""
    valid = tasks[tasks["status"] != "excluded"]
    by_regime = {regime: valid[valid["regime"] == regime] for regime in REGIMES}
    return {
        "games": len(manifest.games),
        "states": len(manifest.games) * manifest.n_states,
        "games_with_a_state": int(valid["game"].nunique()),
        "valid_states": len(valid.drop_duplicates(TASK[:2])),
        **{f"games_with_{regime}": int(rows["game"].nunique()) for regime, rows in by_regime.items()},
        **{f"states_with_{regime}": len(rows.drop_duplicates(TASK[:2])) for regime, rows in by_regime.items()},
    }


def _reasons(records: pd.DataFrame, status: str, manifest: Manifest) -> dict[str, str]:
    """Reasons by what they are about."""
    concerned = records[records["status"] == status]
    names = concerned["game"] + ("" if manifest.n_states == 1 else "/" + concerned["state"].astype(str))
    if status != "excluded":
        names = names + " " + concerned["regime"]
    return dict(zip(names, concerned["reason"], strict=True))


def _clips_negative(manifest: Manifest, subject: str) -> bool:
    """The published audit, which knew no networks, counts a negative F as 0."""
    return manifest.score_version == "v1" and subject == "machine"


def _method_row(entry: MethodEntry, values: GameValues, limits: Interval, averaged: Sequence[str]) -> dict[str, Any]:
    counted = values.of(entry.label, "F_counted")
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


def _only_v2(method: str, scored: pd.DataFrame, subject: str) -> dict[str, float]:
    """What a claim gains on removal beside the oracle, and F on content where a byte's own value lasts or does not.

    What a network says is no byte of its own.
    """
    rows = {label: scored[scored["method"] == label] for label in (method, "oracle")}
    content = rows[method][(rows[method]["regime"] == "content") & (subject == "machine")]
    return {
        **{name: value for gained in GAINS.items() for name, value in _gains(*gained, rows[method], rows["oracle"])},
        "F_content_alive": _mean_over_games(content[content["self_alive"]]),
        "F_content_overwritten": _mean_over_games(content[~content["self_alive"]]),
    }


def _gains(column: str, name: str, rows: pd.DataFrame, oracle: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """The mean gain over the regimes that the board has, NaN if one of them is undefined; then each regime's."""
    by_regime = {}
    for regime in REGIMES:
        mine, ceiling = (each[each["regime"] == regime].groupby(TASK)[column].mean() for each in (rows, oracle))
        both = pd.concat([mine, ceiling], axis=1, keys=["method", "oracle"])
        by_regime[regime] = gain(both["method"].to_numpy(), both["oracle"].to_numpy())
    present = [by_regime[regime] for regime in REGIMES if (oracle["regime"] == regime).any()]
    yield name, float(np.mean(present)) if present else math.nan
    for regime, value in by_regime.items():
        yield f"{name}_{regime}", value


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
    in_contest = ~is_control & _faced_all(board) & (board["access"] != UNKNOWN)
    ranks = board[in_contest].groupby("access")["F"].rank(method="min", ascending=False)
    board.insert(0, "rank", ranks.reindex(board.index).astype("Int64"))
    order = board.assign(control=is_control, unranked=~in_contest, best=-board["F"])
    return board.loc[order.sort_values(["control", "unranked", "access", "best", "method"]).index].reset_index(
        drop=True
    )


def _faced_all(board: pd.DataFrame) -> Bool[np.ndarray, " row"]:
    """Methods that faced every task that any method faced."""
    faced = board["n_tasks"].to_numpy()
    return np.asarray((faced == faced.max()) & (faced > 0) & (board["n_not_applicable"].to_numpy() == 0))


def joined(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The tables of all subjects beneath each other; the column `subject` keeps them apart."""
    return pd.concat(list(tables), ignore_index=True)
