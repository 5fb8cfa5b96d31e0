"""Which methods of a board can be told apart, what ranks are left possible, and whether their family matters."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from harness.comparison import Comparison, compare, family_of_pairs, rank_intervals
from harness.families import family_contrast
from harness.manifest import MethodEntry
from harness.sign_flip import drawn_signs
from harness.statistics import drawn_games

Values = Float[np.ndarray, "method regime game"]

# Controls that a method should be told from: chance, and knowing nothing of the output.
FLOORS = ("random", "hub")
CONTROL, UNKNOWN = "control", "unknown"
# The regimes of a comparison, as slices of the second axis of values.
ABOUT = {"both": slice(0, 2), "content": slice(0, 1), "position": slice(1, 2)}
SEPARATOR = "; "


class Contest:
    """The methods of one board, compared on one score of which more is better.

    A method that did not face every task, or has never said what it may use, is compared with nobody.
    """

    def __init__(self, entries: Sequence[MethodEntry], values: Values, complete: Sequence[str], *, seed: int) -> None:
        self._labels = [entry.label for entry in entries]
        self._entries = entries
        self._values = values
        self._contestants = [
            place
            for place, entry in enumerate(entries)
            if entry.access not in (CONTROL, UNKNOWN) and entry.label in complete
        ]
        floors = [place for place, label in enumerate(self._labels) if label in FLOORS]
        self._pairs = family_of_pairs(self._contestants, floors)
        self._draws = drawn_games(values.shape[2], seed=seed)
        signs = drawn_signs(values.shape[2], seed=seed)
        self._compared = {
            about: compare(values[:, regimes], self._pairs, self._draws, signs) for about, regimes in ABOUT.items()
        }

    def columns(self) -> pd.DataFrame:
        """Per method: its rank interval, and those that it can't be told from: floors, and methods of its access class.

        By F, the mean of both regimes.
        """
        both = self._compared["both"]
        ranks = self._rank_intervals(both)
        alike_in_class = [
            [other for other in alike if self._are_in_one_class(place, other)]
            for place, alike in enumerate(both.not_told_apart())
        ]
        rows = [
            {
                "method": label,
                "rank_low": ranks.get(place, (pd.NA, pd.NA))[0],
                "rank_high": ranks.get(place, (pd.NA, pd.NA))[1],
                "not_told_from": SEPARATOR.join(self._labels[other] for other in alike),
            }
            for place, (label, alike) in enumerate(zip(self._labels, alike_in_class, strict=True))
        ]
        types = {"method": "object", "rank_low": "Int64", "rank_high": "Int64", "not_told_from": "object"}
        return pd.DataFrame(rows, columns=list(types)).astype(types)

    def _are_in_one_class(self, place: int, other: int) -> bool:
        """A floor is in the class of every method."""
        classes = {self._entries[each].access for each in (place, other)} - {CONTROL}
        return len(classes) == 1

    def _rank_intervals(self, both: Comparison) -> dict[int, tuple[int, int]]:
        found: dict[int, tuple[int, int]] = {}
        for access in dict.fromkeys(self._entries[place].access for place in self._contestants):
            among = [place for place in self._contestants if self._entries[place].access == access]
            intervals = rank_intervals(both.is_better, among)
            found |= {place: (int(low), int(high)) for place, (low, high) in zip(among, intervals, strict=True)}
        return found

    def pairs(self) -> pd.DataFrame:
        """One row per pair and regime: the mean paired difference of F, its interval, p and Holm's p."""
        rows = []
        for about, compared in self._compared.items():
            for index, (first, second) in enumerate(compared.pairs.tolist()):
                limits = compared.intervals[index]
                rows.append(
                    {
                        "regime": about,
                        "method": self._labels[first],
                        "other": self._labels[second],
                        "n_games": int(compared.n_games[index]),
                        "difference": float(compared.differences[index]),
                        "low": limits.low,
                        "high": limits.high,
                        "interval": limits.kind,
                        "p": float(compared.p[index]),
                        "p_holm": float(compared.corrected[index]),
                        "told_apart": bool(compared.told_apart[first, second]),
                    }
                )
        return pd.DataFrame(rows, columns=PAIR_COLUMNS)

    def families(self) -> pd.DataFrame:
        """One row per pair of families and regime: the mean difference of their methods' F over games."""
        of_contestants = [self._entries[place].family for place in self._contestants]
        values = self._values[self._contestants]
        rows: list[dict[str, Any]] = []
        for pair in combinations(dict.fromkeys(of_contestants), 2):
            contrast = family_contrast(values, of_contestants, pair, self._draws)
            estimates = {"both": contrast.together, "content": contrast.by_regime[0], "position": contrast.by_regime[1]}
            rows += [
                {
                    "regime": about,
                    "family": pair[0],
                    "other": pair[1],
                    "n_games": estimate.n_games,
                    "difference": estimate.value,
                    "low": estimate.interval.low,
                    "high": estimate.interval.high,
                    "interval": estimate.interval.kind,
                }
                for about, estimate in estimates.items()
            ]
        return pd.DataFrame(rows, columns=FAMILY_COLUMNS)


_DIFFERENCE = ["n_games", "difference", "low", "high", "interval"]
PAIR_COLUMNS = ["regime", "method", "other", *_DIFFERENCE, "p", "p_holm", "told_apart"]
FAMILY_COLUMNS = ["regime", "family", "other", *_DIFFERENCE]
