"""Several seeds in one run, and what methods cost: end to end on one game."""

import json

import numpy as np
import pytest

from harness import api
from harness.costs import cost_table
from harness.seeds import seed_of
from tests.harness import commands
from tests.harness.commands import veritari

pytestmark = pytest.mark.ale

SEEDS = 3


@pytest.fixture(scope="session")
def seeded(tmp_path_factory):
    """Two methods that draw and one that does not, with three seeds."""
    methods = "vanilla_gradient,counterfactual(n_values=2),occlusion"
    arguments = ("--games", "pong", "--subject", "machine", "--methods", methods, "--seeds", str(SEEDS))
    return commands.shared_run(tmp_path_factory, "seeded", *arguments)


@pytest.fixture
def run(seeded):
    """The run."""
    return api.load_run(seeded.path)


def test_who_draws_is_asked_with_every_seed(run):
    """A method or control that draws has a row per task and seed; one that does not has one."""
    seeds = run.records.groupby("method")["seed"].apply(lambda column: sorted(set(column))).to_dict()
    several = [0, 1, 2]
    assert {
        "vanilla_gradient": [0],
        "occlusion": [0],
        "oracle": [0],
        "uniform": [0],
        "counterfactual(n_values=2)": several,
        "random": several,
    } == seeds
    assert {1} == set(run.records.groupby(["method", "seed", "output"]).size())


def test_each_seed_is_that_of_a_run_of_its_own(run, seeded, tmp_path):
    """The rows of the second seed are those of a run with that seed alone."""
    methods = "counterfactual(n_values=2)"
    alone = api.run(
        protocol="ram-v1",
        games="pong",
        subject="machine",
        methods=methods,
        seed=1,
        out=tmp_path / "run",
        store=seeded.store,
    )
    claims = [each.claims[(each.claims["method"] == methods) & (each.claims["seed"] == 1)] for each in (alone, run)]
    assert claims[0]["claim"].tolist() == claims[1]["claim"].tolist()
    first = run.claims[(run.claims["method"] == methods) & (run.claims["seed"] == 0)]
    assert first["claim"].tolist() != claims[1]["claim"].tolist()


def test_the_random_control_draws_anew(run):
    """The control's draws are those of its seed."""
    claims = run.claims[(run.claims["method"] == "random") & (run.claims["output"] == "ram[54]")]
    for seed in range(SEEDS):
        drawn = np.random.default_rng(seed_of(seed, "ram-v1", "pong", 0, "ram[54]", "random")).random(18)
        assert drawn.tolist() == claims.loc[claims["seed"] == seed, "claim"].tolist()


def test_the_board_has_the_spread_of_the_seeds(run):
    """F is the mean over seeds, its spread their standard deviation, and tasks count once."""
    board = run.leaderboard.set_index("method")
    rows = run.records[run.records["method"] == "random"]
    # One game: the board's F of a seed is the mean of both regimes, negative counted as 0.
    by_seed = rows.assign(F=rows["F"].clip(lower=0.0)).groupby("seed")["F"].mean()
    assert pytest.approx(by_seed.mean(), abs=1e-12) == board.loc["random", "F"]
    assert pytest.approx(by_seed.std(ddof=1), abs=1e-12) == board.loc["random", "F_seed_sd"]
    assert (2, 1.0, SEEDS) == tuple(board.loc["random", ["n_tasks", "coverage", "n_seeds"]])
    assert np.isnan(board.loc["vanilla_gradient", "F_seed_sd"])
    # Both are in one class of access; drawing does not take the rank away.
    assert {1, 2} == set(board.loc[["occlusion", "counterfactual(n_values=2)"], "rank"])


def test_the_spread_is_printed(seeded):
    """The leaderboard has a column for it where several seeds were asked for."""
    assert "sd of seeds" in seeded.finished.out
    assert 0 == seeded.finished.code


def test_one_seed_is_shown_of_a_game(seeded):
    """The drill-down shows the first seed, as a run with one seed would."""
    views = json.loads(veritari("show", seeded.path, "--game", "pong", "--json").out)
    assert {0} == {row["seed"] for view in views for row in view["scores"]}


def test_costs_are_per_task(run, seeded, tmp_path):
    """Rollouts are divided by what was asked: tasks times seeds; the table is sorted by them."""
    table = cost_table(run, run.boards["machine"])
    board = run.leaderboard.set_index("method")
    found = table.set_index("method")["rollouts_per_task"].to_dict()
    assert board.loc["counterfactual(n_values=2)", "n_rollouts"] / (2 * SEEDS) == found["counterfactual(n_values=2)"]
    assert board.loc["occlusion", "n_rollouts"] / 2 == found["occlusion"]
    assert ["vanilla_gradient", "occlusion", "counterfactual(n_values=2)"] == table["method"].tolist()
    shown = veritari("show", seeded.path, "--cost", "--json", "--image", tmp_path / "cost.png")
    assert [row["rollouts_per_task"] for row in json.loads(shown.out)] == table["rollouts_per_task"].tolist()
    assert b"\x89PNG" == (tmp_path / "cost.png").read_bytes()[:4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cost", "--game", "pong"), "--cost: expected without --game; leave one out"),
        (("--image", "x.png"), "--image: expected with --game GAME or --cost; add one"),
    ],
)
def test_wrong_use_is_told(seeded, arguments, words):
    """Options that do not go together are one line."""
    finished = veritari("show", seeded.path, *arguments)
    assert (2, [f"error: {words}"]) == (finished.code, finished.complaints)
