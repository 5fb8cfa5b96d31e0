"""From records to the leaderboard: one row per method, and one per method and game."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from harness.contests import UNKNOWN, Contest
from harness.controls import CONTROLS
from harness.manifest import Manifest, MethodEntry
from harness.scores_v2 import gain
from harness.statistics import (
    Interval,
    board_value,
    drawn_games,
    game_values,
    intervals,
    spread_over_seeds,
    spread_over_states,
)
from harness.units import UNANSWERED
from oracle.output import REGIMES

# Scores whose board value is the mean over regimes of the mean over games, by score version.
AVERAGED = ("F_partial", "S", "M", "precision_at_3", "deletion_auc", "insertion_auc", "F_log")
AVERAGED_V2 = ("F_partial", "F_cross", "S", "S_log", "M", "precision_at_3", "deletion_diff", "insertion_diff", "F_log")
AVERAGED_OF = {"v1": AVERAGED, "v2": AVERAGED_V2}
# What is summed over the outputs of a regime and compared with the oracle, with its name on the board.
GAINS = {"deletion_diff": "deletion_gain", "insertion_diff": "insertion_gain"}
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
            **(_only_v2(entry.label, scored) if manifest.score_version == "v2" else {}),
            **spreads[entry.label],
            **_counts(tasks[tasks["method"] == entry.label], n_tasks),
        }
        for place, entry in enumerate(entries)
    ]
    board, per_game = pd.DataFrame(rows), _per_game(entries, scored, values, averaged)
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


class GameValues:
    """Game values of every score, method and regime: the mean over seeds, then outputs, then states; NaN for none."""

    def __init__(self, scored: pd.DataFrame, methods: Sequence[str]) -> None:
        self.games = list(dict.fromkeys(scored["game"]))
        self._methods = list(methods)
        self._scores = {name: score_arrays(scored, self._methods, self.games, name) for name in COLUMNS}

    def of(self, method: str, score: str) -> Float[np.ndarray, "regime game"]:
        """Game values of one score of one method."""
        return np.asarray(self.of_all(score)[self._methods.index(method)])

    @cache  # noqa: B019  # lives as long as its board is built
    def of_all(self, score: str) -> Float[np.ndarray, "method regime game"]:
        """Game values of one score of all methods."""
        return np.stack([game_values(each) for each in self._scores[score]], axis=1)

    def spreads(self, score: str) -> dict[str, dict[str, float]]:
        """Per method, the standard deviation of its board value between states, and between its seeds."""
        between = {
            "state_sd": spread_over_states(self._scores[score]),
            "seed_sd": spread_over_seeds(self._scores[score]),
        }
        return {
            method: {f"{score.partition('_')[0]}_{name}": float(values[place]) for name, values in between.items()}
            for place, method in enumerate(self._methods)
        }


def score_arrays(
    scored: pd.DataFrame, methods: Sequence[str], games: Sequence[str], column: str
) -> list[Float[np.ndarray, "method game state output seed"]]:
    """One array per regime of the scores in a column; NaN for what is missing."""
    states, seeds = (sorted(scored[name].unique()) for name in ("state", "seed"))
    arrays = []
    for regime in REGIMES:
        rows = scored[scored["regime"] == regime]
        # The k-th output of a game-state: which byte that is says nothing across games.
        known = rows.drop_duplicates(TASK)
        places = dict(
            zip(known[TASK].itertuples(index=False, name=None), known.groupby(TASK[:2]).cumcount(), strict=True)
        )
        outputs = [places[task] for task in rows[TASK].itertuples(index=False, name=None)]
        shape = (len(methods), len(games), max(len(states), 1), max(outputs, default=0) + 1, max(len(seeds), 1))
        values = np.full(shape, np.nan)
        index = [
            pd.Index(names).get_indexer(pd.Index(rows[name]))
            for names, name in ((methods, "method"), (games, "game"), (states, "state"))
        ]
        values[(*index, outputs, pd.Index(seeds).get_indexer(pd.Index(rows["seed"])))] = rows[column]
        arrays.append(values)
    return arrays


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
