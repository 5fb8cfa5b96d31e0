"""Game values of a board: from records to the arrays that its statistics are made of."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
from jaxtyping import Float

from harness.statistics import game_values, spread_over_seeds, spread_over_states
from oracle.output import REGIMES

# Scores whose board value is the mean over regimes of the mean over games, by score version.
AVERAGED = ("F_partial", "S", "M", "precision_at_3", "deletion_auc", "insertion_auc", "F_log")

AVERAGED_V2 = (
    *("F_partial", "F_cross", "S", "S_log", "M", "right"),
    *("precision_at_3", "deletion_diff", "insertion_diff", "F_log"),
)

AVERAGED_OF = {"v1": AVERAGED, "v2": AVERAGED_V2}

COLUMNS = ("F", "F_counted", *dict.fromkeys((*AVERAGED, *AVERAGED_V2)))

TASK = ["game", "state", "output"]


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
