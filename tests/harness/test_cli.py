"""The command line, end to end: what it prints and writes, its exit codes, and one line for every wrong use."""

import json
import shutil
import signal
import sys
from pathlib import Path

import jaxtyping
import pandas as pd
import pytest

from games.catalog import game_ids, game_sets
from harness import api, cli, views
from harness.board_texts import headings
from tests.harness import commands
from tests.harness.commands import PLUGINS, plugin, tables, veritari

pytestmark = pytest.mark.ale

BUILTINS = [
    *("counterfactual", "deep_lift", "expected_gradients", "extremal_perturbation", "finite_difference", "grad_cam"),
    *("grad_cam_plus_plus", "gradient_times_input", "guided_backprop", "integrated_gradients", "kernel_shap", "lime"),
    *("occlusion", "rise", "sampler_gradient", "smoothgrad", "vanilla_gradient"),
]
# Of the default methods.
ON_THE_MACHINE = ["integrated_gradients", "sampler_gradient", "vanilla_gradient"]
CONTROLS = ["oracle", "random", "uniform"]
REACH = "2 of 2 games have a valid state (2 of 2 states), 2 a content output, 2 a position output"


@pytest.fixture(scope="session")
def clean(tmp_path_factory):
    """The default methods on two games."""
    return commands.two_games(tmp_path_factory)


@pytest.fixture
def command(monkeypatch, capfd):
    """`veritari` in this process, as users run it: its exit code, and what it printed.

    A process of its own takes seconds to import torch.
    """
    # Typer hands on a context of its own copy of click, which is no `typer.Context` to a type checker.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["veritari", *map(str, arguments)])
        code = None
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        return commands.Finished(code, *capfd.readouterr())

    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)


def title_of(out):
    """The first line of a table, without the spaces that fill it up."""
    return out.splitlines()[0].strip()


# --- run ------------------------------------------------------------------------------------------------------------


def test_a_run_says_at_once_what_it_does(clean):
    """The first line of a run, written before anything heavy is imported, names protocol, games and methods."""
    first, *others = clean.finished.err.splitlines()
    assert "veritari run: protocol ram-v1, games pong,breakout, methods default" == first
    # Two games with two outputs each, for every subject that a method explains.
    asked = {"vanilla_gradient": 8, "sampler_gradient": 4, "integrated_gradients": 8, "grad_cam": 4}
    asking = [f"asking {name}: 0/{n_tasks}" for name, n_tasks in asked.items()]
    assert ["measuring effects: 0/4", *asking, "measuring curves: 0/48"] == others


def test_a_run_ends_with_the_leaderboard(clean):
    """A run prints a leaderboard per subject, one row per method and control, then where it lies and how to go on."""
    lines = clean.finished.out.splitlines()
    assert 0 == clean.finished.code
    assert "ram-v1, machine, games pong,breakout, seed 0" == title_of(clean.finished.out)
    boards = api.load_run(clean.path).boards
    # Below each table how far it reaches, and of networks what a map of ones has.
    assert [REACH, "ram-v1, network readout, games pong,breakout, seed 0"] == [line.strip() for line in lines[11:13]]
    for subject, first in (("machine", 2), ("network", 14)):
        assert " ".join([*headings(subject).values(), "seconds/task"]) == " ".join(lines[first].split())
        rows = lines[first + 2 : first + 8]
        assert list(boards[subject].leaderboard["method"]) == [line.split()[1] for line in rows]
    assert f"run: {clean.path}   drill down: veritari show {clean.path} --game GAME" == lines[-1]


def test_a_run_can_print_json(clean, command, tmp_path):
    """With --json the only thing on stdout is the leaderboard as JSON, undefined as null."""
    finished = command(
        *("run", "--protocol", "ram-v1", "--games", "pong", "--methods", "vanilla_gradient", "--workers", 2, "--json"),
        *("--out", tmp_path / "run", "--store", clean.store),
    )
    rows = {row["method"]: row for row in json.loads(finished.out) if row["subject"] == "machine"}
    assert (0, ["vanilla_gradient", *CONTROLS]) == (finished.code, list(rows))
    assert (1.0, None) == (rows["oracle"]["F"], rows["oracle"]["F_low"])


def test_excluded_games_are_listed(clean, command, tmp_path):
    """A game without named bytes is excluded with its reason, and the others are scored."""
    finished = command(
        *(
            "run",
            "--protocol",
            "ram-v1",
            "--games",
            "adventure,pong",
            "--methods",
            "vanilla_gradient",
            "--out",
            tmp_path / "run",
        ),
        *("--store", clean.store),
    )
    assert 0 == finished.code
    assert [f"excluded: {subject} adventure: no named bytes" for subject in ("machine", "network")] == [
        line for line in finished.out.splitlines() if line.startswith("excluded: ")
    ]
    statuses = api.load_run(tmp_path / "run").records.groupby("game")["status"].unique()
    assert (["excluded"], ["ok"]) == (statuses["adventure"].tolist(), statuses["pong"].tolist())


def test_a_run_of_excluded_games_only_is_refused(command, tmp_path):
    """A run that could score nothing is refused before it starts, with the reasons."""
    finished = command("run", "--protocol", "ram-v1", "--games", "adventure", "--out", tmp_path / "run")
    expected = (
        "error: games: expected one that ram-v1 can ask about, got none (adventure: no named bytes); choose others"
    )
    assert (2, [expected]) == (finished.code, finished.complaints)


def test_committed_files_are_readable_as_text(clean):
    """Leaderboard and per-game table are the same in CSV, JSON and Markdown."""
    board = api.load_run(clean.path).leaderboard
    csv = pd.read_csv(clean.path / "leaderboard.csv")
    content = json.loads((clean.path / "leaderboard.json").read_text(encoding="utf-8"))
    markdown = (clean.path / "leaderboard.md").read_text(encoding="utf-8").splitlines()
    rows = [row for each in content["boards"] for row in each["methods"]]
    assert list(board["method"]) == list(csv["method"]) == [row["method"] for row in rows]
    assert board["F"].tolist() == csv["F"].tolist() == [row["F"] for row in rows]
    # Two tables, each below its heading, an empty line, column names and a rule.
    names = [line.split("|")[2].strip() for line in markdown if line.startswith("|")]
    assert list(board["method"]) == [*names[2:8], *names[10:]]
    assert ("ram-v1", "v1", 0) == tuple(content[key] for key in ("protocol", "score_version", "seed"))


# --- show and rescore -----------------------------------------------------------------------------------------------


def test_show_prints_what_the_run_printed(clean):
    """`veritari show RUN` prints the same leaderboard again."""
    finished = veritari("show", clean.path)
    assert (0, "") == (finished.code, finished.err)
    assert clean.finished.out.splitlines()[:-1] == finished.out.splitlines()


def test_show_as_json(clean, command):
    """`veritari show --json` has the numbers of the leaderboard in full precision."""
    finished = command("show", clean.path, "--json")
    expected = api.load_run(clean.path).leaderboard
    assert expected["F"].tolist() == [row["F"] for row in json.loads(finished.out)]


def test_show_a_game(clean, command):
    """The drill-down of a game has a table of causes and one of scores for each output, largest effect first."""
    finished = command("show", clean.path, "--game", "pong")
    headings = [line.strip() for line in finished.out.splitlines() if line.strip().startswith("pong")]
    machine, network = "pong, machine, state 0 (frame 90, horizon 15)", "pong, network, state 0 (frame 90, horizon 2)"
    expected = [
        f"{machine}: content output ram[54], y(reference) = ",
        "pong, machine: scores on ram[54]",
        f"{machine}: position output changed_pixels, y(reference) = 0; 18 causes, claims per method",
        "pong, machine: scores on changed_pixels",
        f"{network}: content output readout[13], y(reference) = ",
        "pong, network: scores on readout[13]",
        f"{network}: position output readout[51], y(reference) = ",
        "pong, network: scores on readout[51]",
    ]
    assert [True] * 8 == [heading.startswith(start) for heading, start in zip(headings, expected, strict=True)]
    assert 0 == finished.code


def test_show_a_game_as_json(clean, command):
    """The drill-down as JSON has, per output, every cause with its effect and the claim of every method."""
    finished = command("show", clean.path, "--game", "pong", "--subject", "machine", "--json")
    content, position = json.loads(finished.out)
    claims = api.load_run(clean.path).claims
    claims = claims[(claims["game"] == "pong") & (claims["output"] == "ram[54]")]
    for method in [*ON_THE_MACHINE, "random", "uniform"]:
        expected = claims[claims["method"] == method].set_index("cause")["claim"].to_dict()
        assert expected == {row["cause"]: row[method] for row in content["causes"]}
    effects = [abs(row["effect"]) for row in content["causes"]]
    assert sorted(effects, reverse=True) == effects
    assert claims[claims["method"] == "oracle"].set_index("cause")["effect"].to_dict() == {
        row["cause"]: row["effect"] for row in content["causes"]
    }
    assert (0.0, "position", 90, 15) == tuple(
        position[key] for key in ("reference_value", "regime", "frame", "horizon_frames")
    )


def test_show_a_method(clean, command):
    """`--method` shows the games of one method, with the notes in words."""
    finished = command("show", clean.path, "--method", "vanilla_gradient", "--json")
    rows = json.loads(finished.out)
    machine = [row for row in rows if row["subject"] == "machine"]
    assert [("pong", 0.0), ("breakout", 0.0)] == [(row["game"], row["F_position"]) for row in machine]
    assert ["position gradient vanishes"] * 2 == [row["note"] for row in machine]
    # A network has a gradient on position as well.
    assert [True, True] == [row["note"] != "position gradient vanishes" for row in rows if row not in machine]
    printed = command("show", clean.path, "--method", "oracle")
    assert "oracle: per game" == title_of(printed.out)
    assert 4 == printed.out.count("recovers the true causes; holds up on position")


def test_show_a_cause(clean, command):
    """`--cause` leaves one row of each output's table of causes."""
    finished = command("show", clean.path, "--game", "pong", "--cause", "ram[54]:set", "--method", "oracle", "--json")
    outputs = json.loads(finished.out)
    assert ["machine", "machine", "network", "network"] == [output["subject"] for output in outputs]
    for output in outputs:
        [row] = output["causes"]
        # The oracle claims the size of the effect.
        assert ("ram[54]:set", abs(row["effect"])) == (row["cause"], row["oracle"])


def test_rescore_writes_the_same_tables(clean, tmp_path):
    """`veritari rescore RUN` prints the leaderboard and leaves every file byte-identical."""
    run = shutil.copytree(clean.path, tmp_path / "run")
    (run / "records.parquet").unlink()
    finished = veritari("rescore", run)
    assert (0, "") == (finished.code, finished.err)
    assert tables(clean.path) == tables(run)
    assert clean.finished.out.splitlines()[:-1] == finished.out.splitlines()


# --- the other commands ---------------------------------------------------------------------------------------------


def test_methods_are_listed(command):
    """`veritari methods list` has every registered method and control, with parameters and sources."""
    rows = json.loads(command("methods", "list", "--json").out)
    assert [*BUILTINS, "oracle", "oracle_redraw", "hub", "random", "uniform"] == [row["label"] for row in rows]
    assert {"n_steps": 64} == next(row["parameters"] for row in rows if row["label"] == "integrated_gradients")
    assert ["network"] == next(row["subjects"] for row in rows if row["label"] == "grad_cam")
    assert "methods" == title_of(command("methods", "list").out)


def test_a_good_method_is_checked(command):
    """`veritari methods check` of a method that keeps the contract says so for each requirement, and exits with 0."""
    finished = command("methods", "check", "sampler_gradient", "--protocol", "ram-v1", "--json")
    found = json.loads(finished.out)
    verdicts = found["verdicts"]
    assert (0, [True] * 15) == (finished.code, [each["kept"] for each in verdicts])
    asked = [
        "answers with one finite number each",
        "same answer for the same generator",
        "leaves its task unchanged",
        "leaves the global generators alone",
        "measures within its budget",
        "says whether it draws",
    ]
    program = ["its claim depends on the program"] * 2
    assert ["loads and describes itself", *asked, *asked, *program] == [each["requirement"] for each in verdicts]
    # It does not explain networks.
    assert [] == found["randomisation"]


def test_a_method_is_checked_on_a_network(command):
    """`veritari methods check` prints the verdicts, then one row per output and layer with a bar for the absolute."""
    finished = command("methods", "check", "vanilla_gradient", "--protocol", "ram-v1", "--subject", "network")
    title = "cascading weight randomisation (Adebayo et al. 2018): rank correlation with the map of the trained network"
    verdicts, _, curves = " ".join(finished.out.split()).partition(title)
    assert (0, 2) == (finished.code, verdicts.count("its map depends on the network's weights pong network readout["))
    assert "output layer absolute signed bar" in curves
    layers = ["head", "features.4", "features.2", "features.0"]
    assert [*layers, *layers] == [word for word in curves.split() if word in layers]


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("answering:returns_nan", "attribution: expected finite numbers, got 1 NaN or infinite; return 0 for no claim"),
        ("no_import:any", f"{PLUGINS}/no_import.py: expected something that imports, got ModuleNotFoundError: "),
        ("dying:exits_with_0", "the process ended (exit code 0)"),
    ],
)
def test_a_broken_method_is_found_out(command, name, detail):
    """`veritari methods check` of a broken method says what is wrong, and exits with 1."""
    finished = command("methods", "check", plugin(name), "--protocol", "ram-v1", "--timeout", 20, "--json")
    broken = [each["detail"][: len(detail)] for each in json.loads(finished.out)["verdicts"] if not each["kept"]]
    assert (1, {detail}) == (finished.code, set(broken))


def test_games_are_listed(command):
    """`veritari games list` has all 104 games, or those of a set."""
    assert list(game_ids()) == [row["game"] for row in json.loads(command("games", "list", "--json").out)]
    rows = json.loads(command("games", "list", "--games", "core", "--json").out)
    assert list(game_sets()["core"]) == [row["game"] for row in rows]
    assert {"core scored"} == {row["sets"] for row in rows}


def test_a_game_is_shown(command):
    """`veritari games show` has title, ROM checksum and named bytes."""
    content = json.loads(command("games", "show", "pong", "--json").out)
    assert ("Pong", "60e0ea3cbe0913d39803477945e9e5ec") == (content["title"], content["rom_md5"])
    expected = "Pong (pong), ALE/Pong-v5, ROM MD5 60e0ea3cbe0913d39803477945e9e5ec"
    assert expected == title_of(command("games", "show", "pong").out)


def test_the_doctor_finds_nothing(tmp_path):
    """`veritari doctor` on a working installation is fine with everything it looks at."""
    finished = veritari("doctor", "--json", XDG_CACHE_HOME=str(tmp_path))
    findings = {each["check"]: each for each in json.loads(finished.out)}
    assert (0, "") == (finished.code, finished.err)
    assert {True} == {each["fine"] for each in findings.values()}
    assert f"{tmp_path}/veritari/oracle (0 entries)" == findings["store"]["detail"]
    assert "104 with the expected MD5" == findings["ROMs"]["detail"]
    assert "0.12.1" == findings["ale-py"]["detail"]


def test_the_doctor_finds_a_store_that_can_not_be_written(tmp_path):
    """Where the store can't be written, `veritari doctor` says so and exits with 1."""
    (tmp_path / "file").touch()
    finished = veritari("doctor", "--json", XDG_CACHE_HOME=str(tmp_path / "file"))
    unwell = [each["check"] for each in json.loads(finished.out) if not each["fine"]]
    assert (1, ["store"]) == (finished.code, unwell)


# --- wrong use ------------------------------------------------------------------------------------------------------

RUN = ("run", "--protocol", "ram-v1", "--games", "pong", "--workers", "2")
WRONG = {
    "an unknown game": (
        ("run", "--protocol", "ram-v1", "--games", "pongg"),
        "unknown game or set 'pongg'; did you mean pong",
    ),
    "an unknown set": (
        ("run", "--protocol", "ram-v1", "--games", "scord"),
        "unknown game or set 'scord'; did you mean scored",
    ),
    "no game": (("run", "--protocol", "ram-v1", "--games", ""), "unknown game or set ''. Known: adventure, "),
    "an unsupported ROM": (
        ("run", "--protocol", "ram-v1", "--games", "pong,combat"),
        "combat: ale-py ships this ROM but cannot play it; choose another game",
    ),
    "an unknown protocol": (
        ("run", "--protocol", "ram-v3"),
        "unknown protocol 'ram-v3'; did you mean ram-v2",
    ),
    "an unknown method": (
        (*RUN, "--methods", "vanila_gradient"),
        "unknown method 'vanila_gradient'; did you mean vanilla_gradient",
    ),
    "a method twice": (
        (*RUN, "--methods", "vanilla_gradient,vanilla_gradient"),
        "methods: expected each once, got vanilla_gradient 2 times; leave one out",
    ),
    "a positional parameter": (
        (*RUN, "--methods", "integrated_gradients(8)"),
        "method 'integrated_gradients(8)': expected name(parameter=value, ...) with plain values, got ",
    ),
    "an unknown parameter": (
        (*RUN, "--methods", "integrated_gradients(steps=8)"),
        "integrated_gradients: expected a parameter of (n_steps), got 'steps'",
    ),
    "a parameter of another type": (
        (*RUN, "--methods", "integrated_gradients(n_steps='8')"),
        "integrated_gradients: parameter n_steps: ",
    ),
    "no such file": ((*RUN, "--methods", "nowhere.py:any"), "nowhere.py: expected a Python file, got none there; "),
    "a method that the file does not have": (
        (*RUN, "--methods", plugin("answering:returns_nam")),
        f"unknown method of {PLUGINS}/answering.py 'returns_nam'; did you mean returns_nan, ",
    ),
    "the name of a control": (
        (*RUN, "--methods", plugin("taken_names:control")),
        "methods: the name 'oracle' is a control's; rename the method",
    ),
    "the name of a builtin": (
        (*RUN, "--methods", plugin("taken_names:builtin")),
        f"{PLUGINS}/taken_names.py:builtin: the name 'vanilla_gradient' is taken by ",
    ),
    "retry without resume": (("run", "--retry-failed"), "--retry-failed: expected with --resume RUN; add it"),
    "resume with settings": (
        ("run", "--resume", "anything", "--games", "pong", "--seed", "1"),
        "--resume: expected the settings of its manifest, got --games, --seed as well; leave them out",
    ),
    "resume of nothing": (
        ("run", "--resume", "nowhere"),
        "nowhere: expected a run directory with a manifest.json, got No such file or directory; check the path",
    ),
    "no worker": (("run", "--workers", "0"), "Invalid value for '--workers': "),
    "no number": (("run", "--seed", "one"), "Invalid value for '--seed': "),
    "a time that is none": (("run", "--timeout", "nan"), "Invalid value for '--timeout': "),
    "memory without end": (
        ("run", "--memory", "inf"),
        "Invalid value for '--memory': Input should be less than or equal to ",
    ),
    "memory that is none": (
        ("run", "--memory", "nan"),
        "Invalid value for '--memory': Input should be less than or equal to ",
    ),
    "too many seeds": (
        ("run", "--seeds", "1001"),
        "Invalid value for '--seeds': Input should be less than or equal to 1000",
    ),
    "an unknown option": (("run", "--game", "pong"), "No such option: --game"),
    "an unknown command": (("runn",), "No such command 'runn'."),
    "an argument too many": (("run", "pong"), "Got unexpected extra argument"),
    "show nothing": (("show",), "Missing argument 'run_path'"),
    "an unknown game to show": (("games", "show", "pongg"), "unknown game 'pongg'; did you mean pong"),
    "an unknown method to check": (
        ("methods", "check", "sampler"),
        "unknown method 'sampler'; did you mean sampler_gradient",
    ),
    "an unknown subject to check": (
        ("methods", "check", "grad_cam", "--subject", "pixels"),
        "unknown subject 'pixels'. Known: machine, network",
    ),
    "no network to check": (
        ("methods", "check", "grad_cam", "--network", "nowhere.py:build"),
        "--network: nowhere.py: expected a Python file, got none there; ",
    ),
    "an unknown game to verify": (("verify", "--games", "pongg"), "unknown game or set 'pongg'; did you mean pong"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use_is_one_line(command, monkeypatch, tmp_path, case):
    """A wrong use prints one line that says what was expected, nothing on stdout, exits with 2 and writes nothing."""
    monkeypatch.chdir(tmp_path)
    arguments, expected = WRONG[case]
    finished = command(*arguments)
    [line] = finished.complaints
    assert f"error: {expected}" == line[: len(f"error: {expected}")]
    assert (2, "") == (finished.code, finished.out)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--game", "seaquest"), "unknown game of this run 'seaquest'; did you mean breakout? Known: breakout, pong"),
        (("--method", "vanilla"), "unknown method of this run 'vanilla'; did you mean vanilla_gradient? Known: "),
        (("--game", "pong", "--method", "radom"), "unknown method of this run 'radom'; did you mean random"),
        (
            ("--game", "pong", "--cause", "ram[54]"),
            "unknown cause of pong in this run 'ram[54]'; did you mean ram[54]:set",
        ),
        (("--cause", "ram[54]:set"), "--cause: expected with --game GAME; add it"),
    ],
)
def test_what_a_run_does_not_have_is_one_line(clean, command, arguments, expected):
    """Asking a run for what it does not have names what it has."""
    finished = command("show", clean.path, *arguments)
    [line] = finished.complaints
    assert f"error: {expected}" == line[: len(f"error: {expected}")]
    assert (2, "") == (finished.code, finished.out)


@pytest.mark.parametrize("kind", ["a folder with a file", "a file"])
def test_a_run_needs_a_new_directory(clean, command, tmp_path, kind):
    """A directory with something in it, or a file in its place, is refused as --out and left as it is."""
    out = tmp_path / "out"
    if kind == "a file":
        out.write_text("mine", encoding="utf-8")
    else:
        out.mkdir()
        (out / "mine").touch()
    before = sorted(tmp_path.rglob("*"))
    finished = command(*RUN, "--out", out, "--store", clean.store)
    expected = f"error: {out}: expected a new or empty directory for --out; to continue a run use --resume {out}"
    assert (2, [expected], "") == (finished.code, finished.complaints, finished.out)
    assert before == sorted(tmp_path.rglob("*"))


def test_an_error_is_one_line_in_a_process_of_its_own():
    """Without --debug a wrong use ends with one line, exit code 2 and no traceback."""
    finished = veritari("run", "--protocol", "ram-v1", "--games", "pongg")
    first, line = finished.err.splitlines()
    assert "veritari run: protocol ram-v1, games pongg, methods default" == first
    assert "error: unknown game or set 'pongg'; did you mean pong" == line.partition(",")[0].partition("?")[0]
    assert (2, "") == (finished.code, finished.out)


@pytest.mark.parametrize("arguments", [("--debug", "games", "show", "pongg"), ("games", "show", "pongg", "--debug")])
def test_debug_shows_the_traceback(arguments):
    """With --debug, wherever it stands, the same error comes with its traceback."""
    finished = veritari(*arguments)
    lines = finished.err.splitlines()
    assert "Traceback (most recent call last):" == lines[0]
    assert (
        "games.errors.UnknownName: unknown game 'pongg'; did you mean pong"
        == lines[-1].partition(",")[0].partition("?")[0]
    )


def test_a_wide_table_is_not_broken_up(clean, monkeypatch, capsys):
    """Where nobody watches, every method is one line, however long: the output can be searched."""
    views.print_leaderboards(api.load_run(clean.path))
    lines = [line for line in capsys.readouterr().out.splitlines() if "integrated_gradients" in line]
    # One on the board of each subject.
    assert 2 == len(lines)
    assert len(headings("machine")) - 4 < len(lines[0].split())


def test_the_installed_command_is_this_one():
    """The console script `veritari` of this environment answers with its help."""
    script = Path(sys.executable).with_name("veritari")
    finished = commands.subprocess.run([script, "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert "Grades attribution methods against measured truth" in finished.stdout
    for name in ("run", "show", "rescore", "verify", "doctor", "methods", "games"):
        assert f"│ {name} " in finished.stdout
