"""The leaderboard, from records written by hand."""

import csv
import io
import json
import math
import re

import numpy as np
import pandas as pd
import pytest

from harness.board_texts import csv_text, headings, json_text, markdown_text
from harness.board_values import AVERAGED
from harness.grading import UNANSWERED_SCORES
from harness.leaderboard import build_boards
from harness.records import RECORD_TYPES
from harness.scores import SCORES
from harness.statistics import drawn_games, interval
from tests.harness.test_manifest import control_entry, manifest_of, method_entry

NAN = math.nan
# What the records have for a task without an answer.
NOTHING_CLAIMED = {**UNANSWERED_SCORES, "vanished": True, "n_named": 0}
UNSCORED = {**dict.fromkeys(SCORES, NAN), "vanished": False, "n_named": 0}


def record(method, game, regime="content", **changes):
    """One row of `records`: an answer with 0.5 in every score, but for the changes."""
    return {
        "protocol": "ram-v1",
        "subject": "machine",
        "network": "",
        "game": game,
        "state": 0,
        "regime": regime,
        "output": "changed_pixels" if regime == "position" else "ram[1]",
        "method": method,
        "seed": 0,
        **dict.fromkeys(("n_causes", "n_true", "n_named"), 10),
        **dict.fromkeys(SCORES, 0.5),
        "vanished": False,
        "n_rollouts": 0,
        "n_gradients": 0,
        "status": "ok",
        "reason": "",
        "score_version": "v1",
        **changes,
    }


def both(method, game, content, position):
    """The two rows of a game with these values of F."""
    return [record(method, game, F=content), record(method, game, "position", F=position)]


def failed(method, game, regime="content", status="failed"):
    """The row of a task without an answer."""
    return record(method, game, regime, **NOTHING_CLAIMED, status=status, reason="it raised")


def not_applicable(method, game, regime="content"):
    """The row of a task that a method has nothing to say about."""
    return record(method, game, regime, **UNSCORED, status="not_applicable", reason="no sprite")


def board_of(rows, methods, **settings):
    """The board of these records; methods are labels, or entries where more is to be said."""
    frame = pd.DataFrame(rows, columns=list(RECORD_TYPES)).astype(RECORD_TYPES)
    return build_boards(frame, manifest_for(methods, **settings))["machine"]


def manifest_for(methods, **settings):
    """A manifest of these methods."""
    return manifest_of(methods=[each if isinstance(each, dict) else method_entry(each) for each in methods], **settings)


def row_of(frame, method, game=None):
    """The one row of a method (and game)."""
    chosen = frame[(frame["method"] == method) & ((game is None) | (frame.get("game", "") == game))]
    (row,) = chosen.to_dict("records")
    return row


def near(value):
    """The value up to rounding; NaN equals NaN."""
    return pytest.approx(value, abs=1e-12, nan_ok=True)


# --- values ---------------------------------------------------------------------------------------------------------


def test_a_game_is_averaged_from_the_inside_out():
    """A game's value is the mean over seeds, then outputs, then states, so that none weighs more for having more."""
    rows = [
        record("blur", "pong", output="ram[1]", seed=0, F=0.2, S=0.2),
        record("blur", "pong", output="ram[1]", seed=1, F=0.4, S=0.6),
        record("blur", "pong", output="ram[2]", seed=0, F=0.9, S=0.0),
        record("blur", "pong", state=1, output="ram[3]", F=0.2, S=0.1),
        record("blur", "qbert", output="ram[4]", F=0.0, S=0.5),
    ]
    found = row_of(board_of(rows, ["blur"], n_states=2).leaderboard, "blur")
    # F of pong: ((0.2 + 0.4) / 2 + 0.9) / 2 = 0.6 at state 0, 0.2 at state 1: 0.4. With qbert's 0: 0.2.
    assert near(0.2) == found["F_content"]
    # S of pong: ((0.2 + 0.6) / 2 + 0) / 2 = 0.2 and 0.1: 0.15. With qbert's 0.5: 0.325.
    assert near(0.325) == found["S"]


def test_the_board_is_the_mean_of_both_regimes():
    """F is the mean of the two regimes' means over games, however many games have each."""
    rows = [*both("blur", "pong", 0.8, 0.2), record("blur", "qbert", F=0.4), record("blur", "gopher", F=0.0)]
    found = row_of(board_of(rows, ["blur"]).leaderboard, "blur")
    # Content (0.8 + 0.4 + 0) / 3 = 0.4, position 0.2.
    assert (near(0.4), near(0.2), near(0.3)) == (found["F_content"], found["F_position"], found["F"])


@pytest.mark.parametrize("score", AVERAGED)
def test_every_score_is_averaged_over_both_regimes(score):
    """Each averaged score is the mean of its regimes' means, and undefined tasks are left out of it."""
    rows = [
        record("blur", "pong", **{score: 0.2}),
        record("blur", "qbert", **{score: 0.6}),
        record("blur", "gopher", **{score: NAN}),
        record("blur", "pong", "position", **{score: -0.1}),
    ]
    # Content (0.2 + 0.6) / 2 = 0.4, position -0.1.
    assert near(0.15) == row_of(board_of(rows, ["blur"]).leaderboard, "blur")[score]


@pytest.mark.parametrize(("version", "counted"), [("v1", 0.2), ("v2", 0.05)])
def test_negative_faithfulness_counts_as_nothing_under_v1_only(version, counted):
    """Under v1 a negative F counts as 0 in every mean, and the mean of the values as they are stands beside it."""
    rows = [*both("blur", "pong", 0.8, -0.2), *both("blur", "qbert", -0.4, 0.0)]
    board = board_of(rows, ["blur"], score_version=version)
    found = row_of(board.leaderboard, "blur")
    # Counted under v1: content (0.8 + 0) / 2, position (0 + 0) / 2. As they are: (0.4 / 2 - 0.2 / 2) / 2 = 0.05.
    assert (near(counted), near(0.05)) == (found["F"], found["F_unclipped"])
    game = row_of(board.per_game, "blur", "pong")
    # In the table of games F is counted too, and the regimes stand as they are.
    assert (near(0.4 if version == "v1" else 0.3), near(0.8), near(-0.2)) == (
        game["F"],
        game["F_content"],
        game["F_position"],
    )


def test_the_interval_is_that_of_the_counted_games():
    """The interval is over the games' counted values in both regimes, with draws of the run's seed."""
    content = np.linspace(-0.3, 0.9, 14)
    position = np.linspace(0.5, -0.1, 14) ** 2
    rows = [each for index in range(14) for each in both("blur", f"game_{index:02}", content[index], position[index])]
    found = row_of(board_of(rows, ["blur"], seed=3).leaderboard, "blur")
    expected = interval(np.stack([content.clip(min=0), position]), drawn_games(14, seed=3))
    assert (near(expected.low), near(expected.high), "BCa") == (found["F_low"], found["F_high"], found["F_interval"])


def test_equal_methods_have_equal_intervals():
    """All methods are measured on the same draws of games."""
    values = np.linspace(0, 1, 12) ** 2
    rows = [record(method, f"game_{index:02}", F=values[index]) for method in ("blur", "edge") for index in range(12)]
    board = board_of(rows, ["blur", "edge"]).leaderboard
    assert board.loc[0, ["F_low", "F_high"]].tolist() == board.loc[1, ["F_low", "F_high"]].tolist()


def test_two_games_have_no_interval():
    """Under three games there is no interval."""
    found = row_of(board_of([record("blur", "pong"), record("blur", "qbert")], ["blur"]).leaderboard, "blur")
    assert (near(NAN), near(NAN), "none") == (found["F_low"], found["F_high"], found["F_interval"])


def test_counts():
    """A row says how many games were answered, how much was vanished or failed, and what it cost."""
    rows = [
        record("blur", "pong", n_rollouts=5, n_gradients=64, vanished=True),
        record("blur", "pong", "position", n_rollouts=7, n_gradients=1),
        failed("blur", "qbert"),
        failed("blur", "qbert", "position", status="timeout"),
        not_applicable("blur", "gopher"),
        record("edge", "gopher", n_gradients=3),
    ]
    found = row_of(board_of(rows, ["blur", "edge"]).leaderboard, "blur")
    # Two of five tasks have an answer. Vanished: the one of pong and the two unanswered ones, which are scored as such.
    expected = {"n_games": 2, "n_vanished": 3, "n_failed": 2, "n_rollouts": 12, "n_gradients": 65, "coverage": 0.4}
    assert expected == {name: found[name] for name in expected}


def test_a_row_names_its_method():
    """Label, title, family and access come from the manifest."""
    entry = method_entry("blur(sigma=2)", title="Blur", family="perturbation", access="world")
    found = row_of(board_of([record("blur(sigma=2)", "pong")], [entry]).leaderboard, "blur(sigma=2)")
    assert ("Blur", "perturbation", "world") == (found["title"], found["family"], found["access"])


# --- not answering --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["failed", "timeout"])
@pytest.mark.parametrize("score", ["F", *(name for name in AVERAGED)])
def test_not_answering_counts_as_the_worst(score, status):
    """An unanswered task counts as 0, or as 1 where low is better, whatever a claim of zeros would have got for it."""
    rows = [record("blur", "pong", **{score: 0.6}), failed("blur", "qbert", status=status)]
    worst = 0.0 if SCORES[score].best == "high" else 1.0
    assert near((0.6 + worst) / 2) == row_of(board_of(rows, ["blur"]).leaderboard, "blur")[score]


def test_not_answering_leaves_the_rank():
    """A method that failed has faced its task: it is ranked, with 0."""
    rows = [record("blur", "pong", F=0.6), failed("edge", "pong")]
    board = board_of(rows, ["edge", "blur"]).leaderboard
    assert [("blur", 1, 0.6, 0), ("edge", 2, 0.0, 1)] == [
        (row["method"], row["rank"], row["F"], row["n_failed"]) for _, row in board.iterrows()
    ]


def test_not_applicable_is_left_out_of_means_and_ranks():
    """A method that does not apply everywhere has the mean of the rest, its coverage, and no rank."""
    rows = [
        *both("blur", "pong", 0.9, 0.9),
        not_applicable("blur", "qbert"),
        not_applicable("blur", "qbert", "position"),
        *both("edge", "pong", 0.2, 0.2),
        *both("edge", "qbert", 0.4, 0.4),
    ]
    board = board_of(rows, ["blur", "edge"]).leaderboard
    # The unranked one stands below, though its mean is higher.
    assert [("edge", 1, near(0.3), 1.0, 2), ("blur", pd.NA, near(0.9), 0.5, 1)] == [
        (row["method"], row["rank"], row["F"], row["coverage"], row["n_games"]) for _, row in board.iterrows()
    ]


def test_degenerate_tasks_are_left_out_for_all():
    """A task with nothing to rank takes no coverage away and counts in no mean."""
    rows = [record("blur", "pong", F=0.6), record("blur", "qbert", **UNSCORED, status="degenerate", reason="equal")]
    board = board_of(rows, ["blur"])
    found = row_of(board.leaderboard, "blur")
    assert (near(0.6), 1.0, 1, 1) == (found["F"], found["coverage"], found["n_games"], found["rank"])
    assert {"qbert content": "equal"} == board.degenerate


# --- order ----------------------------------------------------------------------------------------------------------


def test_ranks_are_within_one_class_of_access():
    """Methods that only read and methods that measure are ranked apart; equal ones share the better rank."""
    methods = [
        method_entry("prober", access="world"),
        method_entry("edge"),
        method_entry("blur"),
        method_entry("sharp"),
        method_entry("dull"),
        method_entry("searcher", access="world"),
    ]
    values = {"prober": 0.7, "edge": 0.4, "blur": 0.4, "sharp": 0.6, "dull": 0.1, "searcher": 0.9}
    board = board_of([record(name, "pong", F=value) for name, value in values.items()], methods).leaderboard
    assert [("sharp", 1), ("blur", 2), ("edge", 2), ("dull", 4), ("searcher", 1), ("prober", 2)] == list(
        zip(board["method"], board["rank"], strict=True)
    )


def test_controls_come_last_and_have_no_rank():
    """Controls take no rank from a method and stand below all of them, best first."""
    methods = [*map(control_entry, ("oracle", "random", "uniform")), "blur", "edge"]
    values = {"oracle": 1.0, "random": 0.3, "uniform": 0.0, "blur": 0.2, "edge": 0.4}
    rows = [record(name, "pong", F=value) for name, value in values.items()]
    board = board_of([*rows, not_applicable("blur", "qbert")], methods).leaderboard
    # `edge` alone is ranked, though the oracle and the random claim are above it or `blur`.
    assert [("edge", 1), ("blur", pd.NA), ("oracle", pd.NA), ("random", pd.NA), ("uniform", pd.NA)] == list(
        zip(board["method"], board["rank"], strict=True)
    )


def test_a_method_without_records_has_no_value_and_no_rank():
    """While a run is unfinished, a method that was not asked yet stands there without values."""
    board = board_of([record("blur", "pong")], ["edge", "blur"])
    found = row_of(board.leaderboard, "edge")
    assert ["blur", "edge"] == board.leaderboard["method"].tolist()
    assert (None, near(NAN), near(0.0), 0, "none") == (
        found["rank"],
        found["F"],
        found["coverage"],
        found["n_games"],
        found["F_interval"],
    )
    assert ["blur"] == board.per_game["method"].tolist()


def test_a_run_without_records_has_a_board():
    """A run that has just begun has a board of its methods, with nothing in it."""
    board = board_of([], ["blur", control_entry("oracle")])
    assert [("blur", 0), ("oracle", 0)] == list(
        zip(board.leaderboard["method"], board.leaderboard["n_games"], strict=True)
    )
    assert (0, {}) == (len(board.per_game), board.excluded)


# --- games ----------------------------------------------------------------------------------------------------------


def test_games_of_a_method():
    """The table of games has a row per method and game in the order of the run, for the games that it met."""
    rows = [*both("blur", "qbert", 0.8, 0.2), record("blur", "pong", F=0.3, M=0.25, S=NAN), record("edge", "pong")]
    table = board_of(rows, ["edge", "blur"]).per_game
    assert [("edge", "pong"), ("blur", "qbert"), ("blur", "pong")] == list(
        zip(table["method"], table["game"], strict=True)
    )
    first, second = row_of(table, "blur", "qbert"), row_of(table, "blur", "pong")
    assert (near(0.5), near(0.8), near(0.2)) == (first["F"], first["F_content"], first["F_position"])
    assert (near(0.3), near(0.3), near(NAN)) == (second["F"], second["F_content"], second["F_position"])
    assert (0.25, near(NAN)) == (second["M"], second["S"])


ZERO = {"F": 0.0, "M": NAN, "vanished": True, "n_named": 0}
ALIKE = {"F": 0.0, "M": NAN, "vanished": True, "n_named": 10}


@pytest.mark.parametrize(
    ("note", "content", "position"),
    [
        ("", 0.7, 0.4),
        ("recovers the true causes", 1.0, 0.7),  # F = 0.85
        ("", 1.0, 0.69),
        ("holds up on position", 0.5, 0.5),
        ("holds up on position", 0.4, 0.9),
        ("", 0.48, 0.49),  # position is above content, but not by itself good
        ("", 0.6, 0.55),  # good, but below the mean
        ("recovers the true causes; holds up on position", 0.9, 0.9),
        ("no true-cause signal", 0.1, 0.0),  # F = 0.05
        ("", 0.11, 0.0),
        ("no true-cause signal", 0.0, -0.9),
    ],
)
def test_notes_say_what_the_numbers_say(note, content, position):
    """Each phrase stands where its number is reached, and nowhere else."""
    assert note == board_of(both("blur", "pong", content, position), ["blur"]).per_game.loc[0, "note"]


@pytest.mark.parametrize(("family", "word"), [("gradient", "gradient"), ("perturbation", "claim"), ("cam", "claim")])
def test_a_position_claim_of_zero_is_noted(family, word):
    """A method whose position claim is exactly zero is said to vanish there; only gradients are called gradients."""
    rows = [record("blur", "pong", F=0.7), record("blur", "pong", "position", **ZERO)]
    board = board_of(rows, [method_entry("blur", family=family)])
    assert f"position {word} vanishes" == board.per_game.loc[0, "note"]


@pytest.mark.parametrize(
    "position",
    [
        [ALIKE],  # all causes named alike: vanished, but not zero
        [ZERO, {"F": 0.3, "state": 1}],
        [ZERO, {**ALIKE, "state": 1}],
        [{**NOTHING_CLAIMED, "status": "failed"}],
        [{**NOTHING_CLAIMED, "status": "timeout"}],
        [ZERO, {**NOTHING_CLAIMED, "status": "failed", "state": 1}],
        [{**UNSCORED, "status": "not_applicable"}],
        [{"F": 0.0, "n_named": 1}],
    ],
    ids=[
        "alike",
        "one state of two",
        "zero and alike",
        "failed",
        "timeout",
        "zero and failed",
        "not applicable",
        "F 0",
    ],
)
def test_other_position_claims_do_not_vanish(position):
    """Nothing is said to vanish unless every position claim of the game is an answer of zeros."""
    rows = [record("blur", "pong", F=0.7), *(record("blur", "pong", "position", **each) for each in position)]
    board = board_of(rows, [method_entry("blur", family="gradient")], n_states=2)
    assert "vanishes" not in board.per_game.loc[0, "note"]


def test_content_claims_do_not_count_as_position():
    """A content claim of zeros is not said to vanish on position, nor is a game without a position output."""
    rows = [record("blur", "pong", **ZERO), record("blur", "pong", "position", F=0.7)]
    board = board_of([*rows, record("blur", "qbert", **ZERO)], [method_entry("blur", family="gradient")])
    # Pong: F = 0.35 and position 0.7. Qbert: F = 0.
    assert ["holds up on position", "no true-cause signal"] == board.per_game["note"].tolist()


def test_a_note_is_of_its_own_game_and_method():
    """What vanishes or fails for one method on one game is not noted elsewhere."""
    rows = [
        record("blur", "pong", F=0.7),
        record("blur", "pong", "position", **ZERO),
        *both("blur", "qbert", 0.7, 0.4),
        *both("edge", "pong", 0.7, 0.4),
        record("edge", "qbert", F=0.7),
        failed("edge", "qbert", "position"),
    ]
    methods = [method_entry("blur", family="gradient"), method_entry("edge", family="gradient")]
    notes = board_of(rows, methods).per_game["note"].tolist()
    assert ["position gradient vanishes", "", "", "failed"] == notes


def test_troubles_are_noted_in_words():
    """Every status other than ok is named once, in order."""
    rows = [
        record("blur", "pong", F=0.8),
        failed("blur", "pong", "position", status="timeout"),
        failed("blur", "pong", "position") | {"state": 1},
        failed("blur", "pong", "position") | {"state": 2},
        not_applicable("blur", "pong") | {"state": 3},
    ]
    assert "failed; not applicable; timeout" == board_of(rows, ["blur"], n_states=4).per_game.loc[0, "note"]


def excluded(method, game, state, reason):
    """The two rows of a game-state that nobody is asked about."""
    return [
        record(method, game, regime, **UNSCORED, output="", state=state, status="excluded", reason=reason)
        for regime in ("content", "position")
    ]


def test_excluded_games_are_listed_once_with_their_reason():
    """Excluded games count in no mean and no coverage; each is named once with its reason."""
    rows = [
        *both("blur", "pong", 0.6, 0.6),
        *both("edge", "pong", 0.4, 0.4),
        *[each for method in ("blur", "edge") for each in excluded(method, "casino", 0, "no named bytes")],
        *excluded("blur", "qbert", 0, "gate: 2 causes change the screen, at least 4 are needed"),
    ]
    board = board_of(rows, ["blur", "edge"])
    assert {
        "casino": "no named bytes",
        "qbert": "gate: 2 causes change the screen, at least 4 are needed",
    } == board.excluded
    assert [("blur", 1.0, 1), ("edge", 1.0, 1)] == list(
        zip(*(board.leaderboard[name] for name in ("method", "coverage", "n_games")), strict=True)
    )
    assert ["pong", "pong"] == board.per_game["game"].tolist()


def test_excluded_states_are_named_with_their_number():
    """Where a protocol has several states, each excluded one has its own reason."""
    rows = [
        *both("blur", "pong", 0.6, 0.6),
        *excluded("blur", "pong", 1, "game over"),
        *excluded("blur", "pong", 2, "nothing moves"),
    ]
    assert {"pong/1": "game over", "pong/2": "nothing moves"} == board_of(rows, ["blur"], n_states=3).excluded


# --- texts ----------------------------------------------------------------------------------------------------------

HARD_LABEL = 'blur(mode="a|b<c>, d")'


@pytest.fixture
def board():
    """A board with numbers of many digits, undefined ones, and a label full of special characters."""
    rows = [
        record(HARD_LABEL, "pong", F=1 / 3, M=NAN, S=0.1 + 0.2),
        record("edge", "pong", F=2 / 7),
        not_applicable("edge", "qbert"),
        *excluded("edge", "casino", 0, 'no "named" bytes'),
    ]
    return board_of(rows, [method_entry(HARD_LABEL, title="Blur, two\nlines"), "edge"])


def test_csv_comes_back_to_the_last_bit(board):
    """Nothing is rounded in CSV; undefined is empty; labels with commas, quotes and line breaks come back."""
    text = csv_text(board.leaderboard)
    back = list(csv.DictReader(io.StringIO(text, newline="")))
    assert list(board.leaderboard.columns) == list(back[0])
    for expected, found in zip(board.leaderboard.to_dict("records"), back, strict=True):
        numbers = {name: value for name, value in expected.items() if not isinstance(value, str)}
        assert {name: None if pd.isna(value) else value for name, value in numbers.items()} == {
            name: float(found[name]) if found[name] else None for name in numbers
        }
        assert {name: expected[name] for name in set(expected) - set(numbers)} == {
            name: found[name] for name in set(expected) - set(numbers)
        }
    assert "\r" not in text


def test_json_comes_back_to_the_last_bit(board):
    """Nothing is rounded in JSON, undefined is null, and what is needed to read the rows stands beside them."""
    content = json.loads(json_text([board], manifest_for([HARD_LABEL, "edge"], seed=5)))
    rows = board.leaderboard.to_dict("records")
    (found,) = content.pop("boards")
    assert board.reach == found.pop("reach")
    plain = [{name: None if pd.isna(value) else value for name, value in row.items()} for row in rows]
    assert plain == found.pop("methods")
    excluded = {"casino": 'no "named" bytes'}
    assert {"subject": "machine", "network": "", "excluded": excluded, "not_applicable": {}, "degenerate": {}} == found
    assert {"protocol": "ram-v1", "score_version": "v1", "seed": 5} == content


def test_json_has_null_where_nothing_is_defined(board):
    """A missing rank, an undefined M and an interval that does not exist are null."""
    blur, edge = json.loads(json_text([board], manifest_for([])))["boards"][0]["methods"]
    assert (1, 1 / 3, 0.1 + 0.2, None, None) == (blur["rank"], blur["F"], blur["S"], blur["M"], blur["F_low"])
    assert (None, 0.5) == (edge["rank"], edge["coverage"])


def cells_of(line):
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_markdown_row(board):
    """A row of the Markdown table has three decimals, dashes for what is undefined, and coverage in percent."""
    subject, empty, heading, rule, first, second = markdown_text([board]).splitlines()
    assert ("### Subject machine", "") == (subject, empty)
    columns = list(headings("machine").values())
    assert columns == cells_of(heading)
    assert len(columns) == len(cells_of(rule))
    values = dict(zip(columns, cells_of(first), strict=True))
    expected = {"#": "1", "F": "0.333", "S": "0.300", "M": "—", "95 % interval": "—", "F position": "—", "games": "1"}
    assert expected == {name: values[name] for name in expected}
    second_values = dict(zip(columns, cells_of(second), strict=True))
    assert ("—", "50%") == (second_values["#"], second_values["coverage"])


def test_markdown_escapes_labels(board):
    """A bar or an angle bracket in a label neither ends a cell nor begins a tag."""
    first = cells_of(markdown_text([board]).splitlines()[4])
    assert r'blur(mode="a\|b&lt;c>, d")' == first[1]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_markdown_keeps_a_label_on_its_line(line_break):
    """A line break in a label does not break its row."""
    label = f"blur{line_break}edge"
    lines = markdown_text([board_of([record(label, "pong")], [label])]).splitlines()[2:]
    assert [len(headings("machine"))] * 3 == [len(cells_of(line)) for line in lines]


@pytest.mark.parametrize(
    ("shown", "n_games"), [("—", 2), (r"-?\d\.\d{3} to \d\.\d{3} \(t\)", 3), (r"-?\d\.\d{3} to \d\.\d{3}", 12)]
)
def test_markdown_says_how_an_interval_was_made(shown, n_games):
    """A t interval is marked; the usual one is not; under three games a dash stands."""
    rows = [record("blur", f"game_{index:02}", F=index / 20) for index in range(n_games)]
    (row,) = markdown_text([board_of(rows, ["blur"])]).splitlines()[4:]
    found = cells_of(row)[list(headings("machine")).index("interval")]
    assert found == re.fullmatch(shown, found).group()


# --- networks -------------------------------------------------------------------------------------------------------


def on_network(method, game, regime="content", **changes):
    """One row of `records` about a network."""
    return record(method, game, regime, **{"subject": "network", "network": "readout", **changes})


def both_boards(rows, methods, **settings):
    """The boards of both subjects."""
    frame = pd.DataFrame(rows, columns=list(RECORD_TYPES)).astype(RECORD_TYPES)
    return build_boards(frame, manifest_for(methods, subjects=("machine", "network"), **settings))


def test_subjects_are_never_mixed():
    """Each subject has a board of its own: means, counts and ranks are within it."""
    rows = [
        *both("blur", "pong", 0.2, 0.4),
        *both("edge", "pong", 0.6, 0.8),
        on_network("blur", "pong", F=0.9),
        on_network("blur", "pong", "position", F=0.7),
        on_network("edge", "pong", F=-0.5, n_rollouts=3),
        on_network("edge", "pong", "position", F=0.1),
    ]
    boards = both_boards(rows, ["blur", "edge"])
    assert ["machine", "network"] == list(boards)
    machine, network = (board.leaderboard for board in boards.values())
    assert [("edge", near(0.7), 1), ("blur", near(0.3), 2)] == list(
        machine[["method", "F", "rank"]].itertuples(index=False, name=None)
    )
    # Nothing is published about networks, so a negative F counts as it is.
    assert [("blur", near(0.8), 1), ("edge", near(-0.2), 2)] == list(
        network[["method", "F", "rank"]].itertuples(index=False, name=None)
    )
    assert [0, 3] == [row_of(frame, "edge")["n_rollouts"] for frame in (machine, network)]
    assert ["machine"] * 4 + ["network"] * 4 == [
        subject for board in boards.values() for subject in [*board.leaderboard["subject"], *board.per_game["subject"]]
    ]


def test_a_method_stands_on_the_boards_of_its_subjects():
    """A method that explains networks only has no row on the machine's board."""
    methods = ["blur", method_entry("cam", subjects=["network"])]
    boards = both_boards([record("blur", "pong"), on_network("cam", "pong")], methods)
    assert [["blur"], ["blur", "cam"]] == [sorted(board.leaderboard["method"]) for board in boards.values()]


def test_a_regime_without_output_costs_nobody_a_rank():
    """Where a network has no output for a regime there is no task: ranks and coverage are full, with a reason."""
    unread = {"output": "", **UNSCORED, "status": "not_applicable", "reason": "readout: nothing is read"}
    rows = [on_network("blur", "pong", F=0.5), on_network("blur", "pong", "position", **unread)]
    board = both_boards(rows, ["blur"])["network"]
    found = row_of(board.leaderboard, "blur")
    assert (1, 1.0, 0, 1) == tuple(found[name] for name in ("rank", "coverage", "n_not_applicable", "n_tasks"))
    assert {"pong position": "readout: nothing is read"} == board.not_applicable


def test_columns_are_those_of_the_subject():
    """What is beyond size stands on the network's board only, what was clipped on the machine's only."""
    assert ("F_partial" in headings("network"), "F_partial" in headings("machine")) == (True, False)
    assert ("F_unclipped" in headings("network"), "F_unclipped" in headings("machine")) == (False, True)
    boards = both_boards([record("blur", "pong"), on_network("blur", "pong", F_partial=0.25)], ["blur"])
    lines = markdown_text(boards.values()).splitlines()
    assert ["### Subject machine", "### Subject network"] == [line for line in lines if line.startswith("#")]
    values = dict(zip(headings("network").values(), cells_of(lines[-1]), strict=True))
    assert "0.250" == values["F partial"]


def test_json_has_a_board_per_subject():
    """Each board stands for itself in JSON, with the network that it is about."""
    boards = both_boards([record("blur", "pong"), on_network("blur", "pong")], ["blur"])
    manifest = manifest_for(["blur"], subjects=("machine", "network"))
    found = json.loads(json_text(boards.values(), manifest))["boards"]
    assert [("machine", ""), ("network", "readout")] == [(each["subject"], each["network"]) for each in found]


@pytest.mark.parametrize(
    ("partial", "note"),
    [
        (0.6, "recovers the true causes; holds up on position"),
        (0.3, ""),
        (0.01, "no more than movement"),
    ],
)
def test_notes_on_networks_look_beyond_movement(partial, note):
    """A map that follows from how much the causes move is not praised for it, whatever its F."""
    rows = [on_network("blur", "pong", regime, F=0.9, F_partial=partial) for regime in ("content", "position")]
    assert note == row_of(both_boards(rows, ["blur"])["network"].per_game, "blur", "pong")["note"]
