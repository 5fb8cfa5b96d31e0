"""`veritari verify`: the promise of exact rollouts, and a comparison that can fail."""

import json

import pytest

from games.catalog import select_games
from harness.api import Silent
from harness.pool import Limits
from harness.verify import SIDES, verify
from harness.verify import _row as row_of
from tests.harness.commands import veritari

pytestmark = pytest.mark.ale

LIMITS = Limits(workers=2, timeout_seconds=100.0, memory_gib=4.0)
# Python imports this first, in every process: a recipe that goes on from wherever the last rollout ended.
SABOTAGE = """
import oracle.rollout
oracle.rollout.ExactRollouts._return_to_state = lambda self: None
"""


def verified(n_interventions, limits=LIMITS, seed=0):
    """The rows of `verify` on Pong."""
    games = select_games("pong")
    return verify(
        games, protocol="ram-v1", n_interventions=n_interventions, seed=seed, limits=limits, progress=Silent()
    ).to_dict("records")


def test_rollouts_on_pong_are_exact():
    """20 interventions by the recipe and on fresh interfaces agree in RAM and screen."""
    expected = {"game": "pong", "interventions": 20, "ram_mismatches": 0, "screen_mismatches": 0, "note": ""}
    assert [expected] == verified(20)


def test_a_game_that_could_not_be_checked_says_why():
    """A side that runs out of time leaves no interventions checked, and its reason as the note."""
    limits = Limits(workers=2, timeout_seconds=0.3, memory_gib=4.0)
    [row] = verified(2000, limits)
    expected = {
        "game": "pong",
        "interventions": 0,
        "ram_mismatches": 0,
        "screen_mismatches": 0,
        "note": "no answer within 0.3 s",
    }
    assert expected == row


def test_differences_are_counted_and_named(tmp_path):
    """RAM and screen mismatches are counted apart, and the interventions that have any are named once each."""
    recipe = [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]]
    fresh = [["a", "b"], ["X", "d"], ["X", "X"], ["g", "X"]]
    answers = {("pong", side): tmp_path / f"{side}.json" for side in SIDES}
    for path, digests in zip(answers.values(), (recipe, fresh), strict=True):
        path.write_text(json.dumps(digests), encoding="utf-8")
    expected = {
        "game": "pong",
        "interventions": 4,
        "ram_mismatches": 2,
        "screen_mismatches": 2,
        "note": "RAM: interventions 1, 2; screen: interventions 2, 3",
    }
    assert expected == row_of("pong", answers, {})


def test_sides_of_different_length_do_not_pass(tmp_path):
    """A side that lost interventions is an error, never an agreement on the rest."""
    answers = {("pong", side): tmp_path / f"{side}.json" for side in SIDES}
    for path, digests in zip(answers.values(), ([["a", "b"]], []), strict=True):
        path.write_text(json.dumps(digests), encoding="utf-8")
    with pytest.raises(ValueError, match="shorter"):
        row_of("pong", answers, {})


def test_the_command_verifies():
    """`veritari verify` on Pong says in one line that nothing differs, and exits with 0."""
    finished = veritari("verify", "--games", "pong", "--interventions", "6", "--workers", "2")
    expected = "1 games, 6 interventions: 0 RAM mismatches, 0 screen mismatches, 0 games not checked"
    assert expected == finished.out.strip()
    assert (0, []) == (finished.code, finished.complaints)
    assert "veritari verify: games pong, 6 interventions each" == finished.err.splitlines()[0]


def test_a_wrong_recipe_is_found_out(tmp_path):
    """With a recipe that does not return to the state, `veritari verify` counts mismatches and exits with 1."""
    (tmp_path / "sitecustomize.py").write_text(SABOTAGE, encoding="utf-8")
    finished = veritari(
        "verify", "--games", "pong", "--interventions", "6", "--workers", "2", "--json", PYTHONPATH=str(tmp_path)
    )
    [row] = json.loads(finished.out)
    # The first intervention follows the reference state itself; each later one goes on where the one before ended.
    assert ["pong", 6, 5, "RAM: interventions 1, 2, 3, 4, 5; screen: interventions 1, 2, 3, 4, 5"] == [
        row[name] for name in ("game", "interventions", "ram_mismatches", "note")
    ]
    assert 1 == finished.code
