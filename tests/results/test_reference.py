"""The committed reference leaderboard: what this code computes, and consistent within itself."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from games.catalog import game_sets
from harness.api import Run, run
from harness.board_values import AVERAGED

ROOT = Path(__file__).parent.parent.parent
REFERENCE = ROOT / "results" / "ram-v1"
SCORES = ["F", "F_content", "F_position", *AVERAGED]


@pytest.fixture(scope="module")
def per_game() -> pd.DataFrame:
    """The committed table of games."""
    return pd.read_csv(REFERENCE / "per_game.csv", keep_default_na=True).fillna({"note": ""})


@pytest.fixture(scope="module")
def leaderboard() -> pd.DataFrame:
    """The committed leaderboard."""
    return pd.read_csv(REFERENCE / "leaderboard.csv", index_col=["subject", "method"])


@pytest.fixture(scope="module")
def core_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The core games, run now with the default methods."""
    folder = tmp_path_factory.mktemp("reference")
    return run(games="core", workers=2, out=folder / "run", store=folder / "store")


@pytest.mark.ale
def test_core_games_score_as_committed(core_run: Run, per_game: pd.DataFrame) -> None:
    """A new run of the core games gives the committed rows, undefined where they are undefined.

    The machine's to 1e-9; a network's to 1e-4, since convolutions differ between processors.
    """
    assert_as_committed(core_run, per_game)


def assert_as_committed(computed_run: Run, per_game: pd.DataFrame) -> None:
    """Every row of the run is the committed one."""
    computed = computed_run.per_game.set_index(["subject", "method", "game"])
    committed = per_game.set_index(["subject", "method", "game"]).loc[computed.index]
    for subject, tolerance in (("machine", 1e-9), ("network", 1e-4)):
        expected, found = (table.loc[subject, SCORES].to_numpy() for table in (committed, computed))
        np.testing.assert_allclose(expected, found, rtol=0, atol=tolerance)
    assert committed["note"].tolist() == computed["note"].tolist()


@pytest.mark.ale
def test_every_method_scores_as_committed(tmp_path: Path, per_game: pd.DataFrame) -> None:
    """A new run of all methods on one game gives the committed rows, of those that draw as well."""
    assert_as_committed(run(games="pong", methods="all", workers=2, out=tmp_path, store=tmp_path.parent), per_game)


@pytest.mark.ale
def test_oracle_is_perfect_on_every_scored_task(core_run: Run) -> None:
    """The oracle control has F = 1 on every task of the core games."""
    oracle = core_run.records[core_run.records["method"] == "oracle"]
    # 6 games with a content and a position output each, of the machine and of its network.
    assert [("ok", 1.0)] * 24 == [
        (status, round(f, 12)) for status, f in zip(oracle["status"], oracle["F"], strict=True)
    ]


@pytest.mark.ale
def test_position_gradients_vanish_only_without_a_sampler(core_run: Run) -> None:
    """Vanilla gradient's position claims are exactly zero everywhere, the sampler gradient's are not."""
    claims = core_run.claims[(core_run.claims["regime"] == "position") & (core_run.claims["subject"] == "machine")]
    largest = claims.groupby(["method", "game"])["claim"].max()
    assert {0.0} == set(largest["vanilla_gradient"])
    # One sprite per game has its position byte; the cell may lie where moving it changes nothing.
    assert {0.0, 1.0} >= set(largest["sampler_gradient"])
    assert largest["sampler_gradient"].sum() >= 4.0


def test_every_scored_game_stands_in_the_table(per_game: pd.DataFrame) -> None:
    """Each method of the reference has a row for each of the 42 scored games, in the order of the set."""
    for _, rows in per_game.groupby(["subject", "method"]):
        assert list(game_sets()["scored"]) == rows["game"].tolist()


@pytest.mark.parametrize("column", ["F_content", "F_position"])
def test_board_value_is_the_mean_of_the_games(column: str, per_game: pd.DataFrame, leaderboard: pd.DataFrame) -> None:
    """A regime's board value is the mean over its games, with a negative F counted as 0 on the machine (v1)."""
    is_machine = per_game["subject"] == "machine"
    counted = per_game[column].where(~is_machine, per_game[column].clip(lower=0.0))
    expected = per_game.assign(counted=counted).groupby(["subject", "method"])["counted"].mean()
    np.testing.assert_allclose(expected.loc[leaderboard.index], leaderboard[column], rtol=0, atol=1e-12)


def test_faithfulness_is_the_mean_of_its_regimes(leaderboard: pd.DataFrame) -> None:
    """F is the mean of the board values of content and position, and lies in its own interval."""
    expected = (leaderboard["F_content"] + leaderboard["F_position"]) / 2
    np.testing.assert_allclose(expected, leaderboard["F"], rtol=0, atol=1e-12)
    assert ((leaderboard["F_low"] <= leaderboard["F"]) & (leaderboard["F"] <= leaderboard["F_high"])).all()


def test_json_and_csv_say_the_same(leaderboard: pd.DataFrame) -> None:
    """leaderboard.json has the rows of leaderboard.csv, number for number."""
    boards = json.loads((REFERENCE / "leaderboard.json").read_text(encoding="utf-8"))["boards"]
    for score in ("F", "S"):
        rows = {(board["subject"], row["method"]): row[score] for board in boards for row in board["methods"]}
        assert leaderboard[score].to_dict() == rows


def test_readme_shows_the_reference() -> None:
    """The README's table is the committed one, character for character."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = (REFERENCE / "leaderboard.md").read_text(encoding="utf-8")
    assert table == readme.partition("written by make reference -->\n")[2].partition("<!-- end of leaderboard -->")[0]
