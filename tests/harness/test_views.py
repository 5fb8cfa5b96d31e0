"""What `veritari show` shows, from a run directory written by hand."""

import io
import json
import math

import pandas as pd
import pytest
from rich.console import Console

from games.errors import UnknownName
from harness import terminal
from harness.api import Run
from harness.as_json import to_json
from harness.check_views import PROGRAMS_LEGEND, print_findings
from harness.errors import WrongUsage
from harness.findings import Findings, ProgramPoint, Verdict
from harness.game_views import SCORE_COLUMNS, Selection, game_view, print_game
from harness.units import Claim, slug
from harness.views import GAME_COLUMNS, leaderboard_view, method_view, print_leaderboards
from oracle.effects import measure
from tests.harness.test_manifest import control_entry, game_entry, manifest_of, method_entry
from tests.harness.test_records import HandMade
from tests.toy import BALL_AT_HORIZON, PAPER_EFFECTS, PREFIX, TAIL, ToyMachine, toy_game, toy_protocol

# Breakout's table calls address 0 `blocks`; it names none of the toy's other addresses.
GAME = "breakout"
# By |effect|, and of equals in the order of the table: 108, 68, 17, 8, 4, 4, 1, and seven zeros.
BY_CONTENT = [1, 2, 0, 6, 3, 7, 13, 4, 5, 8, 9, 10, 11, 12]
BY_POSITION = [12, 3, 7, 0, 1, 2, 6, 13, 4, 5, 8, 9, 10, 11]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished state of one game that two methods and the oracle answered, and one excluded game."""
    path = tmp_path_factory.mktemp("run")
    made = HandMade(path, measure(toy_protocol(), toy_game(), 0, ToyMachine))
    made.add_answers("edge", "blur", game=GAME)
    for output, regime in ((0, 1), (1, 2)):
        effects = tuple(abs(float(row[regime])) for row in PAPER_EFFECTS)
        made.add_claim("oracle", made.task(output, GAME), values=effects)
        made.add_curves("oracle", made.task(output, GAME))
    made.add_claim("edge", made.task(1, GAME), values=(), status="failed", reason="it raised")
    games = (GAME, game_entry("casino", exclusion="no named bytes"))
    methods = (method_entry("edge"), control_entry("oracle"), method_entry("blur"))
    made.directory.write_manifest(manifest_of(games=games, methods=methods))
    return Run(made.directory)


def labels(order):
    """The causes of the toy in this order."""
    return [PAPER_EFFECTS[index][0] for index in order]


# --- one game -------------------------------------------------------------------------------------------------------


def test_a_game_is_shown_output_by_output(run):
    """Each output says where it was asked: game, state, frame, horizon, and y of the reference run."""
    content, position = game_view(run, Selection(GAME))
    common = {"game": GAME, "state": 0, "frame": len(PREFIX), "horizon_frames": len(TAIL)}
    for view, output, regime, reference in (
        (content, "ram[0]", "content", BALL_AT_HORIZON),
        (position, "changed_pixels", "position", 0),
    ):
        expected = common | {"output": output, "regime": regime, "reference_value": reference}
        assert expected == {name: getattr(view, name) for name in expected}


def test_causes_come_largest_effect_first(run):
    """Causes are ordered by the size of their effect, whatever its sign; equal ones keep their order."""
    content, position = game_view(run, Selection(GAME))
    assert labels(BY_CONTENT) == content.causes["cause"].tolist()
    assert labels(BY_POSITION) == position.causes["cause"].tolist()
    assert [PAPER_EFFECTS[index][1] for index in BY_CONTENT] == content.causes["effect"].tolist()


def test_claims_stand_beside_their_effect(run):
    """A cause's row has its name, effect, flags and the claims of all methods but the oracle, in the run's order."""
    causes = game_view(run, Selection(GAME))[0].causes
    assert ["cause", "name", "effect", "flags", "edge", "blur"] == list(causes.columns)
    # The claims of the hand-made run fall from 14 for the first cause to 1 for the last.
    assert [14.0 - index for index in BY_CONTENT] == causes["blur"].tolist()
    named = causes.loc[causes["cause"].str.startswith("ram[0]:"), "name"]
    assert ["blocks", "blocks"] == named.tolist()
    assert {""} == set(causes["name"]) - {"blocks"}
    assert ["ram[4]:occlude", "ram[5]:occlude"] == causes.loc[causes["flags"] == "vacuous", "cause"].tolist()


def test_a_failed_method_is_shown_without_claims(run):
    """A method without an answer keeps its column, empty, and its row of scores says why."""
    view = game_view(run, Selection(GAME))[1]
    assert [True] * len(PAPER_EFFECTS) == view.causes["edge"].isna().tolist()
    row = view.scores[view.scores["method"] == "edge"].iloc[0]
    assert ("failed", 0.0, True) == (row["status"], row["F"], row["reason"].startswith("it raised"))


def test_scores_of_all_methods_on_one_output(run):
    """The scores below the causes are those of this output, of every method."""
    for view, regime in zip(game_view(run, Selection(GAME)), ("content", "position"), strict=True):
        # What only networks or scores v2 have is left out.
        others = {"F_partial", "F_cross", "F_log", "S_log", "deletion_diff", "insertion_diff"}
        assert [name for name in SCORE_COLUMNS if name not in others] == list(view.scores.columns)
        assert ["edge", "oracle", "blur"] == view.scores["method"].tolist()
        asked = (run.records["game"] == GAME) & (run.records["regime"] == regime)
        expected = run.records.loc[asked, "F"].tolist()
        assert expected == view.scores["F"].tolist()


def test_one_state(tmp_path):
    """Where a game has several states, each is shown with its own claims and scores only."""
    made = HandMade(tmp_path, measure(toy_protocol(), toy_game(), 0, ToyMachine))
    made.add_answers("blur", game=GAME)
    made.add_answers("blur", game=GAME, state=1)
    made.add_claim("blur", made.task(0, GAME, 1), values=(), status="failed", reason="it raised")
    manifest = manifest_of(games=(GAME,), methods=(method_entry("blur"),), n_states=2)
    made.directory.write_manifest(manifest)
    first, second = (game_view(Run(made.directory), Selection(GAME, state=state))[0] for state in (0, 1))
    assert (0, 1) == (first.state, second.state)
    assert (["ok"], ["failed"]) == (first.scores["status"].tolist(), second.scores["status"].tolist())
    assert ([False], [True]) == (
        first.causes["blur"].isna().unique().tolist(),
        second.causes["blur"].isna().unique().tolist(),
    )


def test_one_method(run):
    """A chosen method is shown alone; the oracle can be chosen, and claims the effects."""
    views = {name: game_view(run, Selection(GAME, method=name))[0].causes for name in ("blur", "oracle")}
    assert [["cause", "name", "effect", "flags", name] for name in views] == [
        list(each.columns) for each in views.values()
    ]
    assert views["oracle"]["effect"].abs().tolist() == views["oracle"]["oracle"].tolist()


def test_one_cause(run):
    """A chosen cause is shown alone, on every output."""
    views = game_view(run, Selection(GAME, cause="ram[3]:set"))
    assert [[("ram[3]:set", 8.0)]] * 2 == [
        list(zip(view.causes["cause"], view.causes["effect"], strict=True)) for view in views
    ]


@pytest.mark.parametrize(
    ("selection", "complaint"),
    [
        (
            Selection("brekout"),
            r"^unknown game of this run 'brekout'; did you mean breakout\? Known: breakout, casino$",
        ),
        (
            Selection(GAME, method="blurr"),
            r"^unknown method of this run 'blurr'; did you mean blur\? Known: blur, edge, oracle$",
        ),
        (
            Selection(GAME, cause="ram[3]"),
            r"^unknown cause of breakout in this run 'ram\[3\]'; did you mean ram\[3\]:set",
        ),
    ],
)
def test_unknown_names(run, selection, complaint):
    """A name that the run does not know is answered with the nearest ones and the full list."""
    with pytest.raises(UnknownName, match=complaint):
        game_view(run, selection)


def test_nothing_to_show(run):
    """A game without a finished task has no views; a state that the run has not is refused."""
    assert [] == game_view(run, Selection("casino"))
    with pytest.raises(WrongUsage, match=r"--state: expected 0\.\.0, got 1; correct it"):
        game_view(run, Selection(GAME, state=1))


def test_a_known_method_of_an_excluded_game(run):
    """Asking for a method on an excluded game does not say that nobody knows the method."""
    assert [] == game_view(run, Selection("casino", method="blur"))


# --- one method and the leaderboard ---------------------------------------------------------------------------------


def test_games_of_one_method(run):
    """A method's table has one row per game that it met, with the scores and the note."""
    view = method_view(run, "edge")
    assert GAME_COLUMNS == list(view.columns)
    assert ([GAME], [0]) == (view["game"].tolist(), view.index.tolist())
    assert view.loc[0, "note"].startswith("failed")


def test_unknown_method(run):
    """A method that the run does not know is answered with the nearest ones."""
    with pytest.raises(
        UnknownName, match=r"^unknown method of this run 'edgy'; did you mean edge\? Known: blur, edge, orac"
    ):
        method_view(run, "edgy")


def test_leaderboard_as_printed(run):
    """The leaderboard has one line per method in the order of the board, and a dash where nothing was timed."""
    view = leaderboard_view(run, run.boards["machine"])
    assert run.leaderboard["method"].tolist() == view["method"].tolist()
    assert "1.000" == view.loc[view["method"] == "oracle", "F"].iloc[0]
    assert ["—", "—", "—"] == view["seconds/task"].tolist()


def test_seconds_are_means_over_tasks(tmp_path):
    """Seconds per task are the mean over a method's claims, and over no other units nor methods of a longer name."""
    made = HandMade(tmp_path, measure(toy_protocol(), toy_game(), 0, ToyMachine))
    made.add_answers("blur", "blur2", game=GAME)
    made.directory.write_manifest(manifest_of(games=(GAME,), methods=(method_entry("blur"), method_entry("blur2"))))
    timed = [
        (Claim(task=made.task(0, GAME), method="blur", status="ok").filename, 0.25),
        (Claim(task=made.task(1, GAME), method="blur", status="ok").filename, 0.75),
        (Claim(task=made.task(0, GAME), method="blur2", status="ok").filename, 9.0),
        (f"curves/{slug('blur')}/{made.task(0, GAME).slug}.json", 7.0),
    ]
    for filename, seconds in timed:
        made.directory.add_timing(filename, seconds)
    timed_run = Run(made.directory)
    view = leaderboard_view(timed_run, timed_run.boards["machine"]).set_index("method")
    assert ("0.500", "9.000") == (view.loc["blur", "seconds/task"], view.loc["blur2", "seconds/task"])


def test_printed_leaderboard_says_what_is_missing(run, capsys):
    """Below the table stand the excluded games, the failures with the first of them, and how to go on."""
    print_leaderboards(run)
    lines = capsys.readouterr().out.splitlines()
    first, second, third = lines[-3:]
    assert "excluded: machine casino: no named bytes" == first
    failures = (
        f"1 failures, see {run.path / 'failures.csv'}; the first: edge machine {GAME} changed_pixels failed: it raised"
    )
    assert failures == second
    assert f"unfinished: continue with: veritari run --resume {run.path}" == third


def test_printed_game(run, capsys):
    """The drill-down prints a heading per output, a row per cause, and a bar as long as the effect's share."""
    print_game(run, Selection(GAME))
    printed = capsys.readouterr().out
    at, y = "state 0 (frame 6, horizon 4)", "content output ram[0], y(reference) = 113"
    heading = f"{GAME}, machine, {at}: {y}; 14 causes, claims per method"
    # A heading is broken where it is wider than its table.
    assert " ".join(printed.split())[: len(heading)] == heading
    rows = [line.split() for line in printed.splitlines() if "ram[1]:set" in line]
    # Of twelve characters, 68 of 108 are eight (7.6), 8 of 72 one (1.3).
    assert [["ram[1]:set", "-68.000", "█" * 8], ["ram[1]:set", "8.000", "█"]] == [
        [row[0], row[1], row[2]] for row in rows
    ]


def test_printed_game_without_tasks(run, capsys):
    """An excluded game prints its reason instead of tables."""
    print_game(run, Selection("casino"))
    assert "casino: nothing to show: no named bytes\n" == capsys.readouterr().out


# --- JSON -----------------------------------------------------------------------------------------------------------


def test_json_of_a_table_comes_back_to_the_last_bit():
    """Nothing is rounded in JSON, and undefined is null."""
    frame = pd.DataFrame({"method": ["blur", "edge|é"], "F": [1 / 3, math.nan], "p": [1e-20, 1.0]})
    expected = [{"method": "blur", "F": 1 / 3, "p": 1e-20}, {"method": "edge|é", "F": None, "p": 1.0}]
    assert expected == json.loads(to_json(frame))


def test_json_of_a_drill_down(run):
    """The views of a game become one JSON value, with their tables as lists of rows."""
    content, position = json.loads(to_json(game_view(run, Selection(GAME, cause="ram[1]:set"))))
    assert ("ram[0]", "changed_pixels") == (content["output"], position["output"])
    row = {"cause": "ram[1]:set", "name": "", "flags": "", "blur": 12.0}
    assert [row | {"effect": -68.0, "edge": 12.0}] == content["causes"]
    # The method that failed has no claim.
    assert [row | {"effect": 8.0, "edge": None}] == position["causes"]
    assert ["edge", "oracle", "blur"] == [each["method"] for each in position["scores"]]


# --- findings of a check --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_reasons_are_whole_in_a_narrow_terminal(monkeypatch, width):
    """The text of a verdict goes on in the next line where it does not fit, and the programs have their legend."""
    reason = "claims under other programs correlate " + "0.56 " * 40 + "with this one (must be below 0.9 on average)"
    found = Findings(
        (Verdict("its claim depends on the program", "pong changed_pixels", kept=True, detail=reason),),
        programs=(ProgramPoint("changed_pixels", 7, 0.5, 0.25, -0.25),),
    )
    printed = io.StringIO()
    monkeypatch.setattr(terminal, "output", Console(file=printed, width=width))
    print_findings(found, title="mine")
    text, _, points = printed.getvalue().partition("the same state under")
    assert "…" not in text
    assert reason.split() == [word for word in text.split() if word in reason.split()][-len(reason.split()) :]
    assert points.rstrip().endswith(PROGRAMS_LEGEND)
