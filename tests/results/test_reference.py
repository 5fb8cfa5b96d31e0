"""The committed reference leaderboard: what this code computes, and consistent within itself."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.reference import what_changed
from games.catalog import game_sets
from harness.api import Run, run
from harness.board_values import AVERAGED_OF

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "results"
VERSIONS = {"ram-v1": "v1", "ram-v2": "v2"}


@pytest.fixture(scope="module", params=list(VERSIONS))
def protocol(request: pytest.FixtureRequest) -> str:
    """A protocol with committed results."""
    return str(request.param)


def per_game_of(protocol: str) -> pd.DataFrame:
    """The committed table of games."""
    return pd.read_csv(RESULTS / protocol / "per_game.csv", keep_default_na=True).fillna({"note": ""})


@pytest.fixture(scope="module")
def per_game(protocol: str) -> pd.DataFrame:
    """The committed table of games of a protocol."""
    return per_game_of(protocol)


@pytest.fixture(scope="module")
def leaderboard(protocol: str) -> pd.DataFrame:
    """The committed leaderboard."""
    return pd.read_csv(RESULTS / protocol / "leaderboard.csv", index_col=["subject", "method"])


@pytest.fixture(scope="module")
def core_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The core games, run now with the default methods."""
    folder = tmp_path_factory.mktemp("reference")
    return run(protocol="ram-v1", games="core", workers=2, out=folder / "run", store=folder / "store")


@pytest.mark.ale
def test_core_games_score_as_committed(core_run: Run) -> None:
    """A new run of the core games gives the committed rows, undefined where they are undefined.

    The machine's to 1e-9; a network's to 1e-4, since convolutions differ between processors.
    """
    assert_as_committed(core_run, "ram-v1")


@pytest.mark.ale
def test_a_game_scores_as_committed_under_ram_v2(tmp_path: Path) -> None:
    """A new run of ram-v2, the default, on one game gives the committed rows."""
    assert_as_committed(run(games="pong", workers=2, out=tmp_path / "run", store=tmp_path / "store"), "ram-v2")


def assert_as_committed(computed_run: Run, protocol: str) -> None:
    """Every row of the run is the committed one."""
    computed = computed_run.per_game.set_index(["subject", "method", "game"])
    scores = ["F", "F_content", "F_position", *AVERAGED_OF[VERSIONS[protocol]]]
    committed = per_game_of(protocol).set_index(["subject", "method", "game"]).loc[computed.index]
    for subject, tolerance in (("machine", 1e-9), ("network", 1e-4)):
        expected, found = (table.loc[subject, scores].to_numpy() for table in (committed, computed))
        np.testing.assert_allclose(expected, found, rtol=0, atol=tolerance)
    assert committed["note"].tolist() == computed["note"].tolist()


@pytest.mark.ale
def test_every_method_scores_as_committed(tmp_path: Path) -> None:
    """A new run of all methods on one game gives the committed rows, of those that draw as well."""
    settings = {"protocol": "ram-v1", "games": "pong", "methods": "all", "workers": 2}
    assert_as_committed(run(**settings, out=tmp_path / "run", store=tmp_path / "store"), "ram-v1")


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
def test_board_value_is_the_mean_of_the_games(
    column: str, protocol: str, per_game: pd.DataFrame, leaderboard: pd.DataFrame
) -> None:
    """A regime's board value is the mean over its games; under v1 a negative F counts as 0 on the machine."""
    clips = (per_game["subject"] == "machine") & (protocol == "ram-v1")
    counted = per_game[column].where(~clips, per_game[column].clip(lower=0.0))
    expected = per_game.assign(counted=counted).groupby(["subject", "method"])["counted"].mean()
    np.testing.assert_allclose(expected.loc[leaderboard.index], leaderboard[column], rtol=0, atol=1e-12)


def test_faithfulness_is_the_mean_of_its_regimes(leaderboard: pd.DataFrame) -> None:
    """F is the mean of the board values of content and position, and lies in its own interval."""
    expected = (leaderboard["F_content"] + leaderboard["F_position"]) / 2
    np.testing.assert_allclose(expected, leaderboard["F"], rtol=0, atol=1e-12)
    assert ((leaderboard["F_low"] <= leaderboard["F"]) & (leaderboard["F"] <= leaderboard["F_high"])).all()


def test_json_and_csv_say_the_same(protocol: str, leaderboard: pd.DataFrame) -> None:
    """leaderboard.json has the rows of leaderboard.csv, number for number."""
    boards = json.loads((RESULTS / protocol / "leaderboard.json").read_text(encoding="utf-8"))["boards"]
    for score in ("F", "S"):
        rows = {(board["subject"], row["method"]): row[score] for board in boards for row in board["methods"]}
        assert leaderboard[score].to_dict() == rows


def test_readme_shows_the_reference() -> None:
    """The README's table is ram-v2's, character for character, and its paragraph is made of both."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("written by make reference -->\n")[2].partition("<!-- end of leaderboard -->")[0]
    table = (RESULTS / "ram-v2" / "leaderboard.md").read_text(encoding="utf-8")
    boards = (
        pd.read_csv(RESULTS / name / "leaderboard.csv").query("subject == 'machine'").set_index("method")
        for name in VERSIONS
    )
    assert f"{table}\n{what_changed(*boards)}\n" == shown


def test_chance_scores_nothing_under_ram_v2() -> None:
    """The interval of the control `random` covers 0 on the machine; those of the oracle's twins do not."""
    board = pd.read_csv(RESULTS / "ram-v2" / "leaderboard.csv").query("subject == 'machine'").set_index("method")
    assert board["F_low"]["random"] < 0 < board["F_high"]["random"]
    assert board["F_low"]["hub"] > 0
    assert (1.0, 1.0, 1.0) == tuple(pytest.approx(board[name]["oracle"], abs=1e-12) for name in ("F", "S", "M"))
