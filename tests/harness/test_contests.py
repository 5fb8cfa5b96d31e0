"""The contest of a board: who can be told apart, which ranks are possible, whether families differ."""

import numpy as np
import pandas as pd
import pytest

from harness.comparison import compare, family_of_pairs
from harness.contests import FAMILY_COLUMNS, PAIR_COLUMNS, Contest
from harness.manifest import MethodEntry
from harness.sign_flip import drawn_signs
from harness.statistics import drawn_games, interval

N_GAMES = 14
NAN = float("nan")


def entry(label, access="read", family="gradient"):
    """A method of a run."""
    spec = {"spec": label, "label": label, "title": label, "domain": "ram", "source": ""}
    return MethodEntry(**spec, access=access, family=family)


def control(label):
    """A control of a run."""
    return entry(label, "control", "control")


def games(mean, *, seed, spread=0.05):
    """Values of both regimes on all games, around a mean."""
    return mean + spread * np.random.default_rng(seed).standard_normal((2, N_GAMES))


ENTRIES = (
    entry("best"),
    entry("like_best"),
    entry("worst"),
    entry("measures", "world", "perturbation"),
    entry("broken", "unknown", "unknown"),
    control("oracle"),
    control("random"),
    control("hub"),
)
MEANS = (0.8, 0.8, 0.1, 0.9, 0.0, 1.0, 0.0, 0.1)
VALUES = np.stack([games(mean, seed=place) for place, mean in enumerate(MEANS)])
COMPLETE = ("best", "like_best", "worst", "measures", "broken")


@pytest.fixture(scope="module")
def contest():
    """Four contestants, of which two are alike, and two floors."""
    return Contest(ENTRIES, VALUES, COMPLETE, seed=3)


def column(contest, name):
    """A column of the board, by method."""
    table = contest.columns()
    return dict(zip(table["method"], table[name], strict=True))


def test_ranks_are_within_a_class_of_access(contest):
    """Two alike share ranks 1 and 2, the third is third; the one that measures is alone; others have none."""
    found = {method: (low, column(contest, "rank_high")[method]) for method, low in column(contest, "rank_low").items()}
    assert {"best": (1, 2), "like_best": (1, 2), "worst": (3, 3), "measures": (1, 1)} == {
        method: limits for method, limits in found.items() if limits[0] is not pd.NA
    }


def test_who_can_not_be_told_from_whom(contest):
    """Only those of the same mean; a floor that is no better than a method is named too."""
    found = column(contest, "not_told_from")
    assert ("like_best", "best", "hub", "") == tuple(
        found[method] for method in ("best", "like_best", "worst", "measures")
    )
    # A floor is told from those that were compared with it; nobody is compared with oracle or a broken plugin.
    assert ("", "worst", "", "") == tuple(found[method] for method in ("random", "hub", "oracle", "broken"))


def test_pairs_are_those_of_the_statistics(contest):
    """Every pair of contestants and every contestant against each floor, per regime, with the module's own numbers."""
    table = contest.pairs()
    assert PAIR_COLUMNS == list(table.columns)
    pairs = family_of_pairs([0, 1, 2, 3], [6, 7])
    assert [3 * len(pairs), 14] == [len(table), len(pairs)]
    draws, signs = drawn_games(N_GAMES, seed=3), drawn_signs(N_GAMES, seed=3)
    for about, regimes in (("both", [0, 1]), ("content", [0]), ("position", [1])):
        rows = table[table["regime"] == about]
        expected = compare(VALUES[:, regimes], pairs, draws, signs)
        assert expected.differences.tolist() == rows["difference"].tolist()
        assert expected.p.tolist() == rows["p"].tolist()
        assert expected.corrected.tolist() == rows["p_holm"].tolist()
        assert [each.low for each in expected.intervals] == rows["low"].tolist()
    best_worst = table[(table["regime"] == "both") & (table["method"] == "best") & (table["other"] == "worst")]
    assert [(True, N_GAMES)] == list(zip(best_worst["told_apart"], best_worst["n_games"], strict=True))


def test_families_are_compared_by_their_means(contest):
    """The family of three against that of one: the mean of the three in each game, less the one, per regime."""
    table = contest.families().set_index("regime")
    assert FAMILY_COLUMNS == ["regime", *table.columns]
    assert ({"gradient"}, {"perturbation"}) == (set(table["family"]), set(table["other"]))
    paired = VALUES[:3].mean(axis=0) - VALUES[3]
    draws = drawn_games(N_GAMES, seed=3)
    for about, rows in (("both", paired), ("content", paired[:1]), ("position", paired[1:])):
        assert pytest.approx(rows.mean(), abs=1e-12) == table["difference"][about]
        limits = interval(rows, draws)
        assert pytest.approx((limits.low, limits.high)) == (table["low"][about], table["high"][about])


def test_who_did_not_face_all_is_compared_with_nobody():
    """Its games would be others: no rank interval, and no pair."""
    found = Contest(ENTRIES, VALUES, [label for label in COMPLETE if label != "worst"], seed=3)
    assert pd.NA is column(found, "rank_low")["worst"]
    assert "worst" not in set(found.pairs()["method"]) | set(found.pairs()["other"])


def test_a_board_of_few_games_tells_nobody_apart():
    """Under six games there is no p, and every rank is possible."""
    few = Contest(ENTRIES, VALUES[:, :, :5], COMPLETE, seed=3)
    assert few.pairs()["p"].isna().all()
    assert {(1, 3), (1, 1)} == {
        (low, high)
        for low, high in zip(few.columns()["rank_low"], few.columns()["rank_high"], strict=True)
        if low is not pd.NA
    }


def test_a_board_without_contestants_has_empty_tables():
    """Controls alone have nobody to be compared with."""
    found = Contest(ENTRIES[5:], VALUES[5:], (), seed=3)
    assert (0, 0) == (len(found.pairs()), len(found.families()))
    assert ["oracle", "random", "hub"] == found.columns()["method"].tolist()
