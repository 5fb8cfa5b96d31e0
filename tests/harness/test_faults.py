"""What can go wrong: broken and hostile plugins, full disks, damaged files. A clear line each, and nothing is lost."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from games.errors import VeritariError
from harness import api
from harness.errors import BadRun, CannotWrite, DirectoryBusy
from harness.game_views import Selection, game_view
from harness.run_directory import CHECKSUMS, RunDirectory
from oracle.store import Store
from tests.harness import commands
from tests.harness.commands import PLUGINS, plugin, tables, veritari

pytestmark = pytest.mark.ale


@pytest.fixture(scope="session")
def clean(tmp_path_factory):
    """The default methods on two games."""
    return commands.two_games(tmp_path_factory)


@pytest.fixture
def copied(clean, tmp_path):
    """A finished run of one's own."""
    return Path(shutil.copytree(clean.path, tmp_path / "run"))


class Recorder(api.Silent):
    """Progress that remembers the warnings."""

    def __init__(self):
        self.warnings = []

    def warn(self, text):
        """Something the user should know."""
        self.warnings.append(text)


# --- plugins --------------------------------------------------------------------------------------------------------

NOT_A_TENSOR = "attribution: expected a torch.Tensor, got {}; return a tensor"
WRONG_SHAPE = "attribution: expected shape (128,), got {}; return one number each"
NOT_FINITE = "attribution: expected finite numbers, got {} NaN or infinite; return 0 for no claim"
CHANGED = "task: expected its RAM and reference pool as they were, got changed ones; work on a copy"
FAILING = {
    "answering:returns_wrong_shape": WRONG_SHAPE.format("(127,)"),
    "answering:returns_matrix": WRONG_SHAPE.format("(2, 64)"),
    "answering:returns_nan": NOT_FINITE.format(1),
    "answering:returns_infinity": NOT_FINITE.format(128),
    "answering:returns_list": NOT_A_TENSOR.format("list"),
    "answering:returns_array": NOT_A_TENSOR.format("ndarray"),
    "answering:returns_nothing": NOT_A_TENSOR.format("NoneType"),
    "answering:returns_complex": "attribution: expected real numbers, got torch.complex64; return a float tensor",
    "answering:returns_meta": "NotImplementedError: Cannot copy out of meta tensor; no data!",
    "answering:returns_impostor": "RuntimeError: no __get__ today",
    "raising:raises": "ValueError: expected a sprite, got none",
    "raising:raises_lines": ("ValueError: first line second line " + "and so on " * 100)[:500],
    "raising:raises_unpicklable": "NeedsArguments: one and two",
    "raising:raises_unreducible": "Unreducible: it has no other form",
    "raising:raises_unprintable": "Unprintable",
    "raising:raises_base_exception": "NotEvenAnError: not an Exception",
    "raising:raises_interrupt": "KeyboardInterrupt",
    "raising:leaves": "SystemExit: 0",
    "cheating:changes_ram": CHANGED,
    "cheating:changes_pool": CHANGED,
    "cheating:measures_undeclared": "rollouts: expected at most 0 per task, got one more; "
    "declare access='world' to use rollouts",
    "dying:exits_with_0": "the process ended (exit code 0)",
    "dying:exits_with_3": "the process ended (exit code 3)",
    "dying:reads_address_0": "the process ended (signal 11)",
    "dying:is_killed": "the process ended (signal 9)",
    "dying:leaves_child": "the process ended (exit code 4)",
}
BROKEN = {
    "no_import:any": f"{PLUGINS}/no_import.py: expected something that imports, got ModuleNotFoundError: "
    "No module named 'no_package_of_this_name_exists'; mend it",
    "answering:SHARED": f"{PLUGINS}/answering.py:SHARED: expected a function with @method(...) or a class below "
    "methods.method.Method, got dict",
}
HANGING = ("hanging:sleeps", "hanging:computes_in_c", "hanging:ignores_signals")
GOOD = ("vanilla_gradient", "sampler_gradient")
# One subject is enough where the other has the same code.
MACHINE = ("--games", "pong", "--subject", "machine")


@pytest.fixture(scope="session")
def failing(tmp_path_factory):
    """A run in which almost every method fails at once, in every way."""
    methods = plugin(GOOD[0], *FAILING, *BROKEN, "noisy:noisy", "dying:closes_pipes", GOOD[1])
    return commands.shared_run(tmp_path_factory, "failing", *MACHINE, "--methods", methods, "--timeout", "60")


@pytest.fixture(scope="session")
def hanging(tmp_path_factory):
    """A run in which most methods never come back."""
    methods = plugin(GOOD[0], *HANGING, GOOD[1])
    return commands.shared_run(tmp_path_factory, "hanging", *MACHINE, "--methods", methods, "--timeout", "3")


def outcomes(run, label):
    """Status and reason of both tasks of a method on Pong."""
    records = api.load_run(run.path).records
    rows = records[records["method"] == label]
    assert ["content", "position"] == list(rows["regime"])
    return list(zip(rows["status"], rows["reason"], strict=True))


@pytest.mark.parametrize("name", FAILING)
def test_a_broken_plugin_fails_with_its_reason(failing, name):
    """Whatever a plugin does, its tasks have failed with a reason in one line that tells what it was."""
    reasons = [reason.split("; M: ")[0].split("; AUC: ")[0] for _, reason in outcomes(failing, name.partition(":")[2])]
    assert [FAILING[name]] * 2 == [reason[:500] for reason in reasons]
    assert ["failed"] * 2 == [status for status, _ in outcomes(failing, name.partition(":")[2])]


@pytest.mark.parametrize("name", BROKEN)
def test_a_plugin_that_can_not_be_asked_stays_in_the_run(failing, name):
    """A plugin that does not import, or has no such method, keeps its row under its specification; all has failed."""
    for status, reason in outcomes(failing, plugin(name)):
        assert ("failed", BROKEN[name]) == (status, reason[: len(BROKEN[name])])


def test_a_plugin_that_can_not_be_heard_fails(failing):
    """A plugin that closes the pipes of its process has failed; how its process ended is the system's affair."""
    for status, reason in outcomes(failing, "closes_pipes"):
        assert ("failed", "the process ended (") == (status, reason[: len("the process ended (")])


@pytest.mark.parametrize("name", HANGING)
def test_a_plugin_that_hangs_runs_out_of_time(hanging, name):
    """In Python, in C, or deaf to signals: what does not come back has timed out, with the limit as its reason."""
    for status, reason in outcomes(hanging, name.partition(":")[2]):
        assert ("timeout", "no answer within 3 s") == (status, reason.split("; ")[0])


@pytest.mark.parametrize("name", ["failing", "hanging"])
def test_other_methods_do_not_notice(name, clean, request):
    """Beside all these plugins, good methods and controls have the records of a run without them."""
    run = api.load_run(request.getfixturevalue(name).path)
    wanted = [*GOOD, "oracle", "random", "uniform"]
    expected = api.load_run(clean.path).records
    expected = expected[expected["method"].isin(wanted) & (expected["game"] == "pong")]
    expected = expected[expected["subject"] == "machine"].reset_index(drop=True)
    found = run.records[run.records["method"].isin(wanted)].reset_index(drop=True)
    assert ["ok"] * 10 == list(found["status"])
    pd.testing.assert_frame_equal(expected, found)


@pytest.mark.parametrize(("name", "n_failed"), [("failing", len(FAILING) + len(BROKEN) + 1), ("hanging", len(HANGING))])
def test_failures_are_told(name, n_failed, request):
    """A run with failures exits with 1, says how many there are and where they stand, and has no other complaint."""
    run = request.getfixturevalue(name)
    assert 1 == run.finished.code
    assert [] == run.finished.complaints
    assert f"{2 * n_failed} failures, see {run.path}/failures.csv; the first: " in run.finished.out
    failures = pd.read_csv(run.path / "failures.csv")
    assert 2 * n_failed == len(failures)
    assert not failures["reason"].str.contains("\n").any()


def test_failed_methods_count_as_vanished(failing):
    """A method that fails everywhere stays ranked with F = 0, its failures counted and no task covered."""
    board = api.load_run(failing.path).leaderboard.set_index("method")
    row = board.loc["raises"]
    assert (0.0, 2, 2, 0.0) == (row["F"], row["n_failed"], row["n_vanished"], row["coverage"])
    assert row["rank"] > board.loc["vanilla_gradient", "rank"]


def test_what_a_plugin_prints_is_not_heard(failing, clean):
    """A method that writes on every way out has its claims as any other, and nothing that it wrote is heard."""
    claims = [
        run.claims.loc[(run.claims["method"] == method) & (run.claims["game"] == "pong"), "claim"].tolist()
        for run, method in ((api.load_run(failing.path), "noisy"), (api.load_run(clean.path), "sampler_gradient"))
    ]
    assert claims[1] == claims[0]
    assert "garbage" not in failing.finished.out + failing.finished.err


@pytest.mark.parametrize(
    ("name", "reason"),
    [("raising:raises_unprintable_refusal", "UnprintableRefusal"), ("raising:raises_surrogates", "")],
)
def test_no_exception_stops_a_run(clean, tmp_path, name, reason):
    """A refusal of ours without a text that does not unpickle, or a text no file takes, concern their tasks only."""
    finished = veritari(
        *(
            "run",
            "--protocol",
            "ram-v1",
            "--games",
            "pong",
            "--methods",
            plugin(name, GOOD[0]),
            "--workers",
            "2",
            "--timeout",
            "10",
        ),
        *("--out", tmp_path / "run", "--store", clean.store),
    )
    # The first is a NotApplicable, which is no failure.
    status, code = ("not_applicable", 0) if reason else ("failed", 1)
    assert (code, []) == (finished.code, finished.complaints)
    records = api.load_run(tmp_path / "run").records
    rows = records[records["method"] == name.partition(":")[2]]
    assert {status} == set(rows["status"])
    assert rows["reason"].str.contains(reason or "ValueError: no sprite in ").all()
    assert {"ok"} == set(records.loc[records["method"] == GOOD[0], "status"])


@pytest.mark.parametrize(
    ("name", "reason"), [("hungry:eats_lists", "MemoryError"), ("hungry:eats_tensors", "can't allocate memory")]
)
def test_memory_is_limited(clean, tmp_path, name, reason):
    """A plugin that takes more memory than --memory allows has failed for that reason, the other method is fine."""
    methods = plugin(name, GOOD[0])
    run = api.run(
        protocol="ram-v1",
        games="pong",
        methods=methods,
        memory_gib=2.0,
        workers=1,
        out=tmp_path / "run",
        store=clean.store,
    )
    status = run.records.groupby("method", sort=False)["status"].unique()
    label = name.partition(":")[2]
    assert (["failed"], ["ok"]) == (list(status[label]), list(status[GOOD[0]]))
    assert run.records.loc[run.records["method"] == label, "reason"].str.contains(reason).all()


def test_rollouts_are_limited(clean, tmp_path):
    """A plugin that asks for rollout number 4097 has failed for that reason."""
    run = api.run(
        protocol="ram-v1",
        games="pong",
        methods=plugin("cheating:measures_too_much"),
        out=tmp_path / "run",
        store=clean.store,
    )
    rows = run.records[run.records["method"] == "measures_too_much"].set_index("regime")
    expected = "rollouts: expected at most 4096 per task, got one more; ask for fewer"
    assert expected == rows.loc["content", "reason"].split("; M: ")[0]
    assert ["failed", "not_applicable"] == list(rows["status"])


@pytest.mark.parametrize("name", ["exits_on_import:any", "hangs_on_import:any"])
def test_a_plugin_may_fail_while_it_describes_itself(clean, tmp_path, name):
    """A file that leaves, or hangs, while it is imported stays in the run with that reason; others are fine."""
    limit = 4.0 if name.startswith("hangs") else 20.0
    run = api.run(
        protocol="ram-v1",
        games="pong",
        methods=plugin(name, GOOD[0]),
        subject="machine",
        timeout_seconds=limit,
        workers=1,
        out=tmp_path / "run",
        store=clean.store,
    )
    reason = {"hangs_on_import:any": "no answer within 4 s", "exits_on_import:any": "the process ended (exit code 0)"}
    rows = run.records[run.records["method"] == plugin(name)]
    assert ["failed"] * 2 == list(rows["status"])
    assert [reason[name]] * 2 == [each.split("; ")[0] for each in rows["reason"]]
    assert {"ok"} == set(run.records.loc[run.records["method"] == GOOD[0], "status"])


@pytest.fixture(scope="session")
def partial(tmp_path_factory):
    """One method that answers everything, and three times the same one that answers only where it is easy."""
    names = ("whole", "easy_only", "fails_where_hard", "enormous_where_hard")
    methods = plugin(*(f"partial:{name}" for name in names))
    return commands.shared_run(
        tmp_path_factory, "partial", "--games", "pong,breakout", *MACHINE[2:], "--methods", methods
    )


def test_not_answering_is_no_way_up(partial):
    """A method that declines what is hard has no rank and stands below the one that answers all, its coverage told."""
    board = api.load_run(partial.path).leaderboard
    order = list(board["method"])
    row = board.set_index("method").loc["easy_only"]
    assert pd.isna(row["rank"])
    assert (0.5, 1, 0) == (row["coverage"], row["n_games"], row["n_failed"])
    assert row["F"] > board.set_index("method").loc["whole", "F"]
    assert order.index("easy_only") > order.index("whole")
    records = api.load_run(partial.path).records
    declined = records[(records["method"] == "easy_only") & (records["game"] == "breakout")]
    assert [("not_applicable", "easy_only: only Pong is easy")] * 2 == list(
        zip(declined["status"], declined["reason"], strict=True)
    )


@pytest.mark.parametrize("name", ["fails_where_hard", "enormous_where_hard"])
def test_failing_is_no_way_up(partial, name):
    """A method that raises, or answers with numbers whose sums overflow, where it is hard ranks below who tries."""
    board = api.load_run(partial.path).leaderboard.set_index("method")
    assert 1 == board.loc["whole", "rank"]
    assert board.loc[name, "rank"] > 1
    # Raising costs coverage, answering with enormous numbers does not.
    assert (0.5 if name == "fails_where_hard" else 1.0) == board.loc[name, "coverage"]


def test_failing_halves_every_score(partial):
    """Failing on one of two games counts as a claim that has vanished there: half of F, and no better an AUC.

    A low deletion AUC is a good one: an AUC of 0 for a task without an answer would be the best there is.
    """
    run = api.load_run(partial.path)
    board = run.leaderboard.set_index("method")
    games = run.per_game.set_index(["method", "game"])
    assert games.loc[("whole", "pong"), "F"] / 2 == pytest.approx(board.loc["fails_where_hard", "F"], abs=1e-12)
    assert (
        games.loc[("uniform", "breakout"), "deletion_auc"]
        <= games.loc[("fails_where_hard", "breakout"), "deletion_auc"]
    )


def test_scores_of_enormous_claims_are_quiet(partial):
    """Finite claims whose sums overflow are scored without warnings of numpy on the terminal."""
    assert [] == partial.finished.complaints


# --- the answer key -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def findings(tmp_path_factory):
    """A run with a plugin that looks for the answer key, and what it found, by method."""
    place = tmp_path_factory.mktemp("findings") / "found.jsonl"
    run = commands.shared_run(
        tmp_path_factory,
        "spied",
        *(
            *MACHINE,
            "--workers",
            "1",
            "--methods",
            plugin("vanilla_gradient", "spying:spies", "spying:plants"),
        ),
        VERITARI_TEST_FINDINGS=str(place),
    )
    if place.exists():
        shutil.copy(place, run.path.parent / "found.jsonl")
    lines = (run.path.parent / "found.jsonl").read_text(encoding="utf-8").splitlines()
    assert (0, []) == (run.finished.code, run.finished.complaints)
    return run, {"spies": [json.loads(line) for line in lines[:2]], "plants": [json.loads(line) for line in lines[2:]]}


def test_the_search_for_the_answer_key_works(findings):
    """The plugin that hides an answer key, its effects and paths in its own objects finds all of them."""
    _, found = findings
    assert ["ram[54]", "changed_pixels"] == [each["task"] for each in found["plants"]]
    for each in found["plants"]:
        assert {"AnswerKey"} <= set(each["classes"])
        assert {(1.25, -2.5, 3.75), (4.25, 5.5, 6.75)} <= {tuple(vector) for vector in each["vectors"]}
        assert {"/planted/store/effects.npz", "\x80pickled /planted/run/oracle"} <= set(each["texts"])


def test_the_search_sees_the_question(findings):
    """What a method may know is found in its process: RAM, and the path of the question."""
    run, found = findings
    question = api.load_run(run.path).directory.answer_key("machine", "pong", 0).question
    for each in found["spies"]:
        assert tuple(question.ram.astype(float).tolist()) in {tuple(vector) for vector in each["vectors"]}
        assert 1 == len({Path(text).name for text in each["texts"] if text.endswith("question-machine-pong-0.npz")})


def test_no_effects_are_in_the_process_of_a_method(findings):
    """No object of the process holds the effects, signed or not, of either output, nor the RAM they came from."""
    run, found = findings
    answer_key = api.load_run(run.path).directory.answer_key("machine", "pong", 0)
    hidden = [
        *answer_key.effects,
        *np.abs(answer_key.effects),
        *answer_key.effects.T,
        *answer_key.final_ram.astype(float),
    ]
    moved = [tuple(vector.tolist()) for vector in hidden if np.ptp(vector) > 0]
    for each in found["spies"]:
        assert "AnswerKey" not in each["classes"]
        assert set() == set(moved) & {tuple(vector) for vector in each["vectors"]}


def test_no_path_leads_from_the_process_of_a_method_to_the_answer_key(findings):
    """Neither arguments, environment, open files, nor any text in memory name the run directory or the store."""
    run, found = findings
    for each in found["spies"]:
        assert [] == [text for text in each["texts"] if str(run.path) in text or str(run.store) in text]


# --- the run directory ----------------------------------------------------------------------------------------------


def edit_manifest(run, **changes):
    """Change fields of a manifest."""
    path = run / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def make_unfinished(run):
    """Take the last tables and one unit away, as if the run had been killed before."""
    (run / CHECKSUMS).unlink()
    (run / "units/curves/oracle/machine-pong-0-changed_pixels.json").unlink()


@pytest.mark.parametrize("open_run", [api.load_run, api.resume, api.rescore])
def test_another_format_is_refused(copied, open_run):
    """A run of another format version is refused by its number, whatever is wanted from it."""
    edit_manifest(copied, format_version=1)
    match = r"manifest\.json: expected format version 3, got 1; use the veritari that wrote it"
    with pytest.raises(BadRun, match=match):
        open_run(copied)


@pytest.mark.parametrize(
    "content", ["", "{", '{"format_version": 3}', "null", "\x00" * 100, '{"format_version": null}']
)
def test_a_damaged_manifest_is_refused(copied, content):
    """A manifest that does not parse, or lacks what it needs, is named; nothing is guessed."""
    (copied / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(
        BadRun, match=r"manifest\.json: expected a manifest of ours, got a damaged one; start a new run"
    ):
        api.load_run(copied)


def test_a_manifest_that_is_no_text_is_refused(copied):
    """A manifest of random bytes is named as damaged."""
    (copied / "manifest.json").write_bytes(np.random.default_rng(0).bytes(3000))
    with pytest.raises(
        BadRun, match=r"manifest\.json: expected a manifest of ours, got a damaged one; start a new run"
    ):
        api.load_run(copied)


def test_other_versions_are_not_mixed(copied, clean):
    """A run started with another version of a package that moves numbers is not continued."""
    versions = json.loads((copied / "manifest.json").read_text(encoding="utf-8"))["versions"]
    edit_manifest(copied, versions={**versions, "torch": "1.0.0"})
    with pytest.raises(BadRun, match=r"expected the versions it was started with, got torch 1\.0\.0 -> "):
        api.resume(copied, store=clean.store)


def test_a_directory_has_one_writer(copied, clean):
    """While one process writes a run, another that resumes or rescores it is refused, and the run is untouched."""
    make_unfinished(copied)
    before = tables(copied)
    with RunDirectory(copied).locked():
        finished = veritari("run", "--resume", copied, "--store", clean.store)
        with pytest.raises(DirectoryBusy, match="expected to be its only writer, another run is; wait or choose --out"):
            api.rescore(copied)
    expected = f"error: {copied}: expected to be its only writer, another run is; wait or choose --out"
    assert (2, [expected]) == (finished.code, finished.complaints)
    assert before == tables(copied)


def test_a_new_run_waits_for_nobody(clean, tmp_path):
    """A new run into an empty directory that another process has locked is refused."""
    with RunDirectory(tmp_path / "run").locked(), pytest.raises(DirectoryBusy, match="expected to be its only writer"):
        api.run(protocol="ram-v1", games="pong", methods="vanilla_gradient", out=tmp_path / "run", store=clean.store)


def test_a_place_that_can_not_be_written_is_told(clean, tmp_path):
    """A run directory below a regular file is refused in one line, with exit code 2."""
    (tmp_path / "file").touch()
    finished = veritari(
        *("run", "--protocol", "ram-v1", "--games", "pong", "--methods", "vanilla_gradient"),
        *("--out", tmp_path / "file" / "run", "--store", clean.store),
    )
    expected = (
        f"error: {tmp_path}/file/run: expected a directory that can be written, got Not a directory; choose --out"
    )
    assert (2, [expected]) == (finished.code, finished.complaints)


@pytest.mark.parametrize(
    ("file_limit", "what"), [(2000, "manifest"), (6000, "an archive of effects"), (20_000, "a pixel map")]
)
def test_no_room_is_told_and_nothing_is_lost(clean, tmp_path, file_limit, what):
    """A file that can't be written to its end stops the run with one line and exit code 1; with room it goes on."""
    run = tmp_path / "run"
    arguments = ("--protocol", "ram-v1", "--games", "pong,breakout", "--workers", "2", "--store", clean.store)
    finished = veritari("run", *arguments, "--out", run, file_limit=file_limit)
    assert 1 == finished.code
    [line] = finished.complaints
    assert f"error: {run}: expected room to write, got File too large; nothing is lost: make room" in line
    if what == "manifest":
        api.run(protocol="ram-v1", games="pong,breakout", out=run, store=clean.store)
    else:
        api.resume(run, store=clean.store)
    assert tables(clean.path) == tables(run)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 80 kB; for users who may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root; test_no_room_is_told limits the size of files instead")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_told_and_nothing_is_lost(clean, small_disk):
    """A disk that fills up in the middle of a run stops it with one line and exit code 1; with room it goes on."""
    run = small_disk / "run"
    finished = veritari(
        "run",
        "--protocol",
        "ram-v1",
        "--games",
        "pong,breakout",
        "--workers",
        "2",
        "--out",
        run,
        "--store",
        clean.store,
    )
    expected = (
        f"error: {run}: expected room to write, got No space left on device; nothing is lost: "
        f"make room and continue with --resume {run}"
    )
    assert (1, [expected]) == (finished.code, finished.complaints)
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    api.resume(run, store=clean.store)
    assert tables(clean.path) == tables(run)


# --- damaged files --------------------------------------------------------------------------------------------------


def flip(path, position=0.5):
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[int(len(content) * position)] ^= 0xFF
    path.write_bytes(content)


def cut(path):
    """Lose the second half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def show(path):
    """What `veritari show RUN` reads."""
    run = api.load_run(path)
    return run.leaderboard, run.failures


def show_pong(path):
    """What `veritari show RUN --game pong` reads."""
    return game_view(api.load_run(path), Selection("pong"))


@pytest.mark.parametrize("damage", [flip, cut])
def test_a_damaged_store_entry_is_named_and_measured_again(clean, tmp_path, damage):
    """An entry of the store that is not what was written gives a warning with its path, and the same tables."""
    store = Path(shutil.copytree(clean.store, tmp_path / "store"))
    entries = {path: path.read_bytes() for path in store.glob("*.npz")}
    # One of the machine and one of its network for each game.
    assert 4 == len(entries)
    for path in entries:
        damage(path)
    progress = Recorder()
    run = api.run(protocol="ram-v1", games="pong,breakout", out=tmp_path / "run", store=store, progress=progress)
    expected = {
        f"{path}: expected a checksum that fits the content, got another; it is measured again" for path in entries
    }
    assert expected == set(progress.warnings)
    assert tables(clean.path) == tables(run.path)
    assert entries == {path: path.read_bytes() for path in store.glob("*.npz")}


def test_a_store_of_another_kind_is_measured_again(clean, tmp_path):
    """An entry with a right checksum and a wrong content is named and measured again, too."""
    store = Store(tmp_path / "store")
    [key, *_] = sorted(path.stem for path in clean.store.glob("*.npz"))
    content = b"not an archive"
    store.folder.mkdir()
    store.path(key).write_bytes(b"veritari-store 1 " + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    progress = Recorder()
    run = api.run(protocol="ram-v1", games="pong,breakout", out=tmp_path / "run", store=store.folder, progress=progress)
    [warning] = progress.warnings
    assert (
        f"{store.path(key)}: expected an archive of ours"
        == warning[: len(f"{store.path(key)}: expected an archive of ours")]
    )
    assert tables(clean.path) == tables(run.path)


@pytest.mark.parametrize("kind", ["below a file", "a folder in the place of an entry"])
def test_a_store_that_can_not_be_used_is_told(clean, tmp_path, kind):
    """Without a store that can be written the run goes on, with a warning that names it, to the same tables."""
    store = tmp_path / "store"
    if kind == "below a file":
        store.touch()
        store = store / "folder"
    else:
        for entry in clean.store.glob("*.npz"):
            (store / entry.name).mkdir(parents=True)
    progress = Recorder()
    run = api.run(protocol="ram-v1", games="pong,breakout", out=tmp_path / "run", store=store, progress=progress)
    assert 4 == len(progress.warnings)
    assert all(f"{store}: the store can't be written (" in warning for warning in progress.warnings)
    assert tables(clean.path) == tables(run.path)


@pytest.mark.parametrize("damage", [flip, cut])
@pytest.mark.parametrize("name", ["records.parquet", "claims.parquet", "curves.parquet"])
def test_a_damaged_table_is_refused(copied, clean, name, damage):
    """A damaged Parquet table is refused by its name with the command that rebuilds it, and that command does."""
    damage(copied / name)
    match = rf"{name}: expected the table that was written, got .*; rebuild it with: veritari rescore {copied}"
    with pytest.raises(BadRun, match=match):
        getattr(api.load_run(copied), name.partition(".")[0])
    api.rescore(copied)
    assert tables(clean.path) == tables(copied)


def test_a_damaged_table_is_told_in_one_line(copied):
    """`veritari show` of a run with a damaged table exits with 2 and names file and remedy."""
    cut(copied / "records.parquet")
    finished = veritari("show", copied)
    [line] = finished.complaints
    assert f"error: {copied}/records.parquet: expected the table that was written, got " in line
    assert line.endswith(f"rebuild it with: veritari rescore {copied}")
    assert (2, "") == (finished.code, finished.out)


@pytest.mark.parametrize("damage", [cut, Path.unlink])
def test_lost_timings_do_no_harm(copied, clean, damage):
    """Timings are a comfort: a run whose timings are damaged or gone can be shown, and resumed to the same tables."""
    damage(copied / "timings.parquet")
    assert len(api.load_run(copied).seconds_per_task("machine", ["vanilla_gradient"])) == 1
    make_unfinished(copied)
    assert tables(clean.path) == tables(api.resume(copied, workers=1, store=clean.store).path)


def test_a_torn_timing_does_no_harm(copied, clean):
    """A line of the timings that a full disk has cut off costs that line only."""
    make_unfinished(copied)
    (copied / "timings.jsonl").write_text('{"unit": "claims/random/po', encoding="utf-8")
    assert tables(clean.path) == tables(api.resume(copied, workers=1, store=clean.store).path)


LOSSES = [("failures.csv", cut), ("failures.csv", Path.unlink), ("oracle/machine-pong-0.npz", cut)]
LOSSES += [
    ("maps/grad_cam", shutil.rmtree),
    ("oracle/network-pong-0.npz", cut),
    ("oracle/machine-pong-0.npz", Path.unlink),
    ("units/oracle/machine-pong-0.json", cut),
    ("per_game.csv", Path.unlink),
]


@pytest.mark.parametrize(("name", "damage"), LOSSES)
@pytest.mark.parametrize("look", [show, show_pong, api.rescore])
def test_no_damage_ends_in_a_traceback(copied, name, damage, look):
    """A run that lost one file, or half of it, can be looked at, or is refused with an error of ours."""
    damage(copied / name)
    with contextlib.suppress(VeritariError):
        look(copied)


@pytest.mark.parametrize(("name", "damage"), LOSSES)
def test_resuming_makes_a_run_whole(copied, clean, name, damage):
    """A run that lost one file, or half of it, is whole again after it was resumed."""
    damage(copied / name)
    assert tables(clean.path) == tables(api.resume(copied, workers=1, store=clean.store).path)


@pytest.mark.parametrize("damage", [cut, lambda path: path.write_text('{"game": 1}', encoding="utf-8")])
def test_damaged_units_are_done_again(copied, clean, damage):
    """Units that do not parse are named in a warning each and done again, to the same tables."""
    kinds = ("oracle/machine-pong-0.json", "claims/grad_cam/network-pong-0-*.json", "curves/oracle/*-0-ch*.json")
    damaged = [path for kind in kinds for path in sorted((copied / "units").glob(kind))]
    for path in damaged:
        damage(path)
    (copied / CHECKSUMS).unlink()
    progress = Recorder()
    api.resume(copied, workers=1, store=clean.store, progress=progress)
    assert [f"{path}: damaged; it is done again" for path in damaged] == sorted_as(damaged, progress.warnings)
    assert tables(clean.path) == tables(copied)


def sorted_as(paths, warnings):
    """Warnings in the order of the paths that they begin with."""
    return sorted(warnings, key=lambda warning: [str(path) for path in paths].index(warning.partition(": ")[0]))


# Some bytes of a zip archive are read by nobody; these are not.
@pytest.mark.parametrize("position", [0.0, 0.1, 0.5, 0.7])
def test_a_damaged_archive_is_measured_again(copied, clean, position):
    """Effects that are not what was written are named in a warning and measured again, to the same tables."""
    flip(copied / "oracle/machine-pong-0.npz", position)
    (copied / CHECKSUMS).unlink()
    progress = Recorder()
    api.resume(copied, workers=1, store=clean.store, progress=progress)
    [warning] = progress.warnings
    assert f"{copied}/oracle/machine-pong-0.npz: expected " in warning
    assert tables(clean.path) == tables(copied)


# --- a plugin that changes, and failures that are tried again -------------------------------------------------------

FICKLE = """
import torch
from methods.method import method

@method("fickle", domain="ram", family="gradient", access="read", source="none")
def fickle(task, *, generator):
    {body}
"""


def test_a_changed_plugin_is_refused(clean, tmp_path):
    """A plugin file that was edited after the run started is not mixed with what it was; the method is named."""
    file = tmp_path / "fickle.py"
    file.write_text(FICKLE.format(body="return task.ram"), encoding="utf-8")
    api.run(
        protocol="ram-v1", games="pong", methods=f"{file}:fickle", out=tmp_path / "run", store=clean.store, workers=1
    )
    before = tables(tmp_path / "run")
    file.write_text(FICKLE.format(body="return -task.ram"), encoding="utf-8")
    match = "method fickle: expected it as it was when the run started, it has changed; start a new run"
    with pytest.raises(BadRun, match=match):
        api.resume(tmp_path / "run", store=clean.store)
    assert before == tables(tmp_path / "run")


def test_failures_stay_unless_they_are_to_be_tried_again(clean, tmp_path):
    """Resuming keeps what has failed; with `retry_failed` it is asked again, and only that."""
    flag = tmp_path / "flag"
    file = tmp_path / "fickle.py"
    body = f"return task.ram / len(open({str(flag)!r}).read())"
    file.write_text(FICKLE.format(body=body), encoding="utf-8")
    methods = f"vanilla_gradient,{file}:fickle"
    run = api.run(
        protocol="ram-v1", games="pong", methods=methods, subject="machine", out=tmp_path / "run", store=clean.store
    )
    assert [2, 2] == [len(run.failures), (run.records["status"] == "failed").sum()]
    flag.write_text("here", encoding="utf-8")
    assert 2 == len(api.resume(tmp_path / "run", store=clean.store).failures)
    retried = api.resume(tmp_path / "run", retry_failed=True, store=clean.store)
    assert 0 == len(retried.failures)
    assert {"ok"} == set(retried.records["status"])


def test_the_clean_run_was_clean(clean):
    """The run that all others are compared with had no failure and no complaint."""
    assert (0, []) == (clean.finished.code, clean.finished.complaints)
    assert 0 == len(api.load_run(clean.path).failures)
    assert all(one <= other for one, other in pairwise(sorted(tables(clean.path))))


def test_no_room_for_tables_is_an_error_of_its_own(copied):
    """Where the tables can't be written, the error says how to go on once there is room."""
    (copied / "per_game.csv").unlink()
    (copied / "per_game.csv").mkdir()
    match = (
        rf"expected room to write, got Is a directory; nothing is lost: make room and continue with --resume {copied}"
    )
    with pytest.raises(CannotWrite, match=match):
        api.rescore(copied)


def test_scoring_again_needs_all_units(copied):
    """A run that lost a claim is not scored without it: the rest would be ranked on other tasks than the others."""
    before = tables(copied)
    shutil.rmtree(copied / "units" / "claims" / "random")
    first = "random on machine pong"
    match = rf"expected all units, got 8 missing or damaged, the first: {first} .*; continue with: .* {copied}"
    with pytest.raises(BadRun, match=match):
        api.rescore(copied)
    api.resume(copied, workers=1)
    assert before == tables(copied)
