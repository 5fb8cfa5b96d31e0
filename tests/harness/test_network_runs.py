"""Runs about networks, end to end: readouts and networks of users, good and broken."""

import json
import shutil
from pathlib import Path

import pytest

from harness import api
from harness.errors import BadRun, WrongUsage
from harness.units import Claim, task_id
from oracle.readout import FOLDER, read_card, weights_path
from tests.harness import commands
from tests.harness.commands import PLUGINS, veritari

pytestmark = pytest.mark.ale

NETWORKS = PLUGINS / "networks.py"
GRADIENT = {"protocol": "ram-v1", "games": "pong", "subject": "network", "methods": "vanilla_gradient", "workers": 1}


@pytest.fixture(scope="session")
def clean(tmp_path_factory):
    """The default methods on two games."""
    return commands.two_games(tmp_path_factory)


# --- readouts -------------------------------------------------------------------------------------------------------


def test_a_readout_is_trained_and_listed(tmp_path):
    """`readouts train` writes weights and card and prints what was learned; `readouts list` says the same again."""
    trained = veritari("readouts", "train", "--games", "boxing", "--frames", 500, "--folder", tmp_path, "--json")
    [row] = json.loads(trained.out)
    assert (0, "boxing", 500, 0) == (trained.code, row["game"], row["frames"], row["seed"])
    assert weights_path("boxing", tmp_path).stat().st_size / 1000 == row["kB"]
    assert read_card("boxing", tmp_path).best("position").r2 == row["R2_position"]
    listed = veritari("readouts", "list", "--games", "pong,boxing", "--folder", tmp_path, "--json")
    assert [row] == json.loads(listed.out)


def test_one_game_is_listed_byte_by_byte():
    """`readouts list` of one game has every named byte with its R2, and says which are explained."""
    rows = json.loads(veritari("readouts", "list", "--games", "pong", "--json").out)
    card = read_card("pong")
    assert [(f"ram[{each.address}]", each.name, each.r2) for each in card.bytes] == [
        (row["byte"], row["name"], row["R2"]) for row in rows
    ]
    assert {"ram[13]": "content", "ram[51]": "position"} == {
        row["byte"]: row["explained_as"] for row in rows if row["explained_as"]
    }


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ("train", "--games", "adventure"),
            2,
            "games: expected one with named bytes, got none; there is nothing to re",
        ),
        (("train", "--games", "pong", "--folder", "/dev/null/x"), 1, "/dev/null/x: expected a folder that can be writ"),
        (
            ("list", "--games", "adventure"),
            1,
            f"{FOLDER}/adventure.json: expected the card of a readout, got No",
        ),
    ],
)
def test_wrong_use_of_readouts_is_told(arguments, code, words):
    """What can't be trained, written or listed is one line."""
    finished = veritari("readouts", *arguments)
    [line] = [line for line in finished.complaints if not line.startswith("veritari ")]
    assert (code, f"error: {words}") == (finished.code, line[: len(f"error: {words}")])


# --- networks of users ----------------------------------------------------------------------------------------------


def test_a_network_of_a_user_is_scored(tmp_path):
    """Half precision, ReLUs in place, two outputs in both regimes: every method answers, and the oracle is perfect."""
    out = tmp_path / "run"
    methods = "vanilla_gradient,integrated_gradients(n_steps=4),grad_cam,grad_cam_plus_plus"
    spec = f"{NETWORKS}:convolutions"
    run = api.run(
        protocol="ram-v1",
        games="pong",
        subject="network",
        network=spec,
        methods=methods,
        workers=2,
        out=out,
        store=tmp_path,
    )
    assert {"ok"} == set(run.records["status"])
    assert [("left", "content"), ("pong_x", "position")] == list(
        run.records[["output", "regime"]].drop_duplicates().itertuples(index=False, name=None)
    )
    assert {spec} == set(run.records["network"])
    oracle = run.records[run.records["method"] == "oracle"]
    assert [1.0, 1.0] == pytest.approx(oracle["F"].tolist(), abs=1e-12)
    # What a user's function builds may change without a trace: its effects are not kept for other runs.
    assert [] == list(tmp_path.glob("*.npz"))


def test_signs_that_mean_nothing_are_no_failure(tmp_path):
    """An unsigned map may hold negative numbers: it claims by their sizes, as the absolute gradient does."""
    methods = f"{PLUGINS / 'maps.py'}:unsigned_gradient"
    run = api.run(**GRADIENT | {"methods": methods}, out=tmp_path / "run", store=tmp_path / "store")
    rows = run.records[run.records["method"] == "unsigned_gradient"]
    assert [("ok", True)] * 2 == list(zip(rows["status"], rows["F"] != 0, strict=True))


def test_enormous_maps_fail_alone(tmp_path):
    """A map whose sums would overflow has failed, and the run goes on to its tables."""
    file = PLUGINS / "maps.py"
    methods = f"{file}:enormous,{file}:leaks_globals"
    run = api.run(**GRADIENT | {"methods": methods}, out=tmp_path / "run", store=tmp_path / "store")
    reason = "its process left no valid claim: expected a map of numbers up to 1e+30; scale it down"
    rows = run.records[run.records["method"] == "enormous"]
    assert [("failed", reason)] * 2 == list(zip(rows["status"], rows["reason"], strict=True))
    # What a method leaves behind in torch is not there for its next task.
    assert ["ok"] * 2 == run.records.loc[run.records["method"] == "leaks_globals", "status"].tolist()


def test_a_network_of_one_game_leaves_the_others_alone(tmp_path):
    """The network is tried on the first game that is asked about; a game that it can't be built for has failed."""
    settings = {"network": f"{NETWORKS}:only_pong", "store": tmp_path / "store"}
    games = GRADIENT | {"games": "adventure,pong"}
    assert {"ok", "excluded"} == set(api.run(**games, **settings, out=tmp_path / "one").records["status"])
    both = api.run(**GRADIENT | {"games": "pong,breakout"}, **settings, out=tmp_path / "two")
    assert [("breakout", "failed")] == list(both.failures[["game", "status"]].itertuples(index=False, name=None))
    assert "expected a network, got FileNotFoundError: breakout.pt; mend it" in both.failures.loc[0, "reason"]


def test_a_network_without_weights_is_reported(tmp_path):
    """A network that says nothing of the world gives a degenerate task, told below the table."""
    finished = veritari(
        *(
            "run",
            "--protocol",
            "ram-v1",
            "--games",
            "pong",
            "--subject",
            "network",
            "--network",
            f"{NETWORKS}:without_weights",
        ),
        *("--methods", "vanilla_gradient", "--out", tmp_path / "run", "--store", tmp_path / "store"),
    )
    expected = "degenerate: network pong content: the effects are all equal: there is nothing to rank"
    assert (0, 1) == (finished.code, finished.out.splitlines().count(expected))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("undefined", "networks.py:undefined: expected finite outputs, got NaN or infinite ones; check its weights"),
        ("broken", "networks.py:broken: expected a network, got RuntimeError: no weights on this disk; mend it"),
        ("absent", "networks.py: expected something named 'absent', got none; it has: "),
        ("leaves", r"networks.py:leaves: the process ended \(exit code 0\)"),
        ("hangs", "networks.py:hangs: no answer within 4 s"),
    ],
)
def test_a_network_that_can_not_be_built_is_refused(tmp_path, name, words):
    """Before anything is measured, a network that raises, hangs, leaves or is not there is one line."""
    with pytest.raises(WrongUsage, match=f"^--network: .*{words}"):
        api.run(**GRADIENT, network=f"{NETWORKS}:{name}", timeout_seconds=4.0, out=tmp_path / "run")
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_an_edited_network_is_refused(tmp_path):
    """A run is not continued with a network whose file was edited since."""
    file = Path(shutil.copy(NETWORKS, tmp_path / "mine.py"))
    settings = {"network": f"{file}:convolutions", "out": tmp_path / "run", "store": tmp_path / "store"}
    api.run(**GRADIENT, **settings)
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(BadRun, match=r"network .*mine.py:convolutions: expected it as it was when the run started"):
        api.resume(tmp_path / "run")


# --- subjects -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--subject", "netwrok"), "unknown subject 'netwrok'; did you mean network?"),
        (("--subject", ","), "--subject: expected machine or network, or both with a comma, got none; name one"),
        (
            ("--subject", "machine", "--methods", "grad_cam"),
            "methods: expected one that explains machine, got grad",
        ),
        (
            ("--network", "nowhere"),
            "--network: nowhere: expected path/to/file.py:name or package.module:name",
        ),
    ],
)
def test_wrong_subjects_are_told(tmp_path, arguments, words):
    """An unknown subject, none, one that no method explains, or no network is one line and exit code 2."""
    finished = veritari("run", "--protocol", "ram-v1", "--games", "pong", *arguments, "--out", tmp_path / "run")
    [line] = finished.complaints
    assert (2, f"error: {words}") == (finished.code, line[: len(f"error: {words}")])


def test_one_subject_is_run_alone(clean, tmp_path):
    """With one subject the rows are those of a run of both, and the methods those that explain it."""
    run = api.run(
        protocol="ram-v1", games="pong,breakout", subject="network", workers=2, out=tmp_path / "run", store=clean.store
    )
    both = api.load_run(clean.path).records
    expected = both[both["subject"] == "network"].reset_index(drop=True)
    assert expected.equals(run.records)
    assert "sampler_gradient" not in [entry.label for entry in run.manifest.methods]


def test_the_map_behind_a_claim_is_kept(clean):
    """The stored map, projected on what the causes move, is the stored claim, up to the map's float32."""
    run = api.load_run(clean.path)
    key = run.directory.answer_key("network", "pong", 0)
    claims = run.claims[(run.claims["subject"] == "network") & (run.claims["game"] == "pong")]
    for output in key.question.outputs:
        of_output = claims[(claims["output"] == output.name) & (claims["method"] == "vanilla_gradient")]
        claim = Claim(task=task_id(key.question, output), method="vanilla_gradient", status="ok")
        found = key.movement.project(run.directory.pixel_map(claim).astype(float), signed=True)
        assert of_output["claim"].tolist() == pytest.approx(found.tolist(), rel=1e-4, abs=1e-6)


def test_a_run_is_shown_by_subject(clean):
    """`show --subject` prints one board, with what a map of ones is worth, or the games of a method on one subject."""
    shown = veritari("show", clean.path, "--subject", "network").out
    assert ("network readout" in shown, "ram-v1, machine" in shown) == (True, False)
    uniform = api.load_run(clean.path).boards["network"].leaderboard.set_index("method").loc["uniform", "F"]
    assert f"a map of ones (uniform) has F = {uniform:.3f} here" in shown
    rows = json.loads(veritari("show", clean.path, "--method", "oracle", "--subject", "network", "--json").out)
    assert [("network", "pong"), ("network", "breakout")] == [(row["subject"], row["game"]) for row in rows]
    error = veritari("show", clean.path, "--subject", "netwrok")
    [line] = error.complaints
    expected = "error: unknown subject of this run 'netwrok'; did you mean network?"
    assert (2, expected) == (error.code, line[: len(expected)])
