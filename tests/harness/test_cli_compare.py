"""`veritari compare`: pairs and families of a run, as tables and as JSON."""

import json

import pandas as pd
import pytest

from harness import api
from tests.harness import commands

pytestmark = pytest.mark.ale


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The default methods on two games: too few for any p."""
    return commands.two_games(tmp_path_factory).path


@pytest.fixture
def compare(monkeypatch, capfd, run):
    """`veritari compare` of that run."""
    return lambda *arguments: commands.in_this_process(monkeypatch, capfd, "compare", run, *arguments)


def test_json_is_what_the_boards_say(run, compare):
    """The rows of comparisons.csv and families.csv about the mean of both regimes, null where there is no number."""
    found = json.loads(compare("--json").out)
    for part, name in (("pairs", "comparisons"), ("families", "families")):
        committed = pd.read_csv(run / f"{name}.csv").query("regime == 'both'")
        rows = [
            {key: None if pd.isna(value) else value for key, value in row.items()}
            for row in committed.to_dict("records")
        ]
        assert rows == found[part]
    assert {None} == {row["p"] for row in found["pairs"]}


def test_a_method_has_its_pairs_only(compare):
    """With --method every row is about it, and --regime and --subject choose the rest."""
    found = json.loads(compare("--method", "random", "--regime", "content", "--subject", "machine", "--json").out)
    assert ["vanilla_gradient", "sampler_gradient", "integrated_gradients"] == [row["method"] for row in found["pairs"]]
    assert {("machine", "content", "random")} == {
        (row["subject"], row["regime"], row["other"]) for row in found["pairs"]
    }


def test_the_table_shows_small_p_with_two_digits(run, compare, monkeypatch):
    """A p of a hundred thousandth is no 0."""
    loaded = api.load_run(run)
    board = loaded.boards["machine"]
    board.comparisons["p"] = 2e-05
    monkeypatch.setattr(api, "load_run", lambda path: loaded)
    finished = compare("--subject", "machine")
    assert 0 == finished.code
    assert "2e-05" in finished.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--regime", "both regimes"), "--regime: expected both, content, position, got both regimes; choose one"),
        (
            ("--method", "vanila_gradient"),
            "unknown method of this run 'vanila_gradient'; did you mean vanilla_gradient",
        ),
        (("--subject", "pixels"), "unknown subject"),
    ],
)
def test_wrong_use_is_one_line(compare, arguments, complaint):
    """What there is not is named, with what there is."""
    finished = compare(*arguments)
    assert (2, 1) == (finished.code, len(finished.complaints))
    assert finished.complaints[0].startswith(f"error: {complaint}")
