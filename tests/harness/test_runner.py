"""A run from its settings to its tables: the same for any number of workers, and after any interruption."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harness import api
from harness.errors import BadRun
from harness.grading import UNDEFINED
from harness.records import CLAIM_TYPES, CURVE_TYPES, FAILURE_TYPES, RECORD_TYPES
from tests.harness import commands
from tests.harness.commands import finish, n_units, start, tables, veritari, wait_for_end_of_group

pytestmark = pytest.mark.ale

METHODS = ["vanilla_gradient", "sampler_gradient", "integrated_gradients", "grad_cam", "oracle", "random", "uniform"]
SUBJECTS = ("machine", "network")
NOT_ON = {"machine": "grad_cam", "network": "sampler_gradient"}
# Two subjects, two games with two outputs each, six methods.
N_TASKS = 2 * 2 * 2 * 6
ARCHIVES = {f"oracle/{subject}-{game}-0.npz" for subject in SUBJECTS for game in ("breakout", "pong")}
FILES = {
    "claims.parquet",
    "curves.parquet",
    "failures.csv",
    "leaderboard.csv",
    "leaderboard.json",
    "leaderboard.md",
    "comparisons.csv",
    "families.csv",
    *ARCHIVES,
    "per_game.csv",
    "records.parquet",
    "tables.sha256",
}


class Recorder:
    """Progress that remembers what it was told."""

    def __init__(self):
        self.passes = []
        self.warnings = []

    def start(self, what, n_units):
        """A pass begins."""
        self.passes.append((what, n_units))

    def advance(self):
        """One unit is done."""

    def warn(self, text):
        """Something the user should know."""
        self.warnings.append(text)


@pytest.fixture(scope="session")
def clean(tmp_path_factory):
    """The default methods on two games."""
    return commands.two_games(tmp_path_factory)


@pytest.fixture
def copied(clean, tmp_path):
    """A finished run of one's own."""
    return Path(shutil.copytree(clean.path, tmp_path / "run"))


def make_unfinished(run, *units):
    """Take the tables and some units away, as if the run had been killed before."""
    for name in FILES - ARCHIVES:
        (run / name).unlink()
    for pattern in units:
        for path in (run / "units").glob(pattern):
            path.unlink()


# --- the same tables ------------------------------------------------------------------------------------------------


def test_a_run_writes_the_files_of_the_format(clean):
    """A run writes its tables, an archive per game-state, a file per unit and map, manifest and timings, not more."""
    files = set(tables(clean.path))
    maps = {name for name in files if name.startswith("maps/")}
    assert {name for name in files - maps if not name.startswith("units/")} == FILES
    # Each game-state, and each task with a claim and its curves.
    assert 4 + 2 * N_TASKS == n_units(clean.path) == len(files - maps) - len(FILES)
    # Three methods answer two outputs of two networks in pixels.
    assert 3 * 2 * 2 == len(maps)
    assert {"manifest.json", "timings.parquet", ".lock"} == {
        each.name for each in clean.path.rglob("*") if each.is_file()
    } - {Path(name).name for name in files}


def test_tables_are_the_same_for_one_worker_and_two(clean, tmp_path):
    """All files but manifest and timings are byte-identical for 1 and 2 workers, from an empty or full store."""
    once = api.run(protocol="ram-v1", games="pong,breakout", workers=1, out=tmp_path / "run", store=clean.store)
    assert tables(clean.path) == tables(once.path)


def test_a_killed_run_continues_to_the_same_tables(clean, tmp_path):
    """A run whose processes are all killed at five random moments, and resumed each time, has byte-identical tables."""
    run, store = tmp_path / "run", tmp_path / "store"
    moments = sorted(
        np.random.default_rng(20).choice(range(1, n_units(clean.path) - 6), size=5, replace=False).tolist()
    )
    arguments = (
        "run",
        "--protocol",
        "ram-v1",
        "--games",
        "pong,breakout",
        "--out",
        run,
        "--store",
        store,
        "--workers",
        "2",
    )
    for moment in moments:
        process = start(*arguments)
        while n_units(run) < moment and process.poll() is None:
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert -signal.SIGKILL == process.returncode
        arguments = ("run", "--resume", run, "--store", store)
    assert not (run / "records.parquet").exists()
    finished = veritari(*arguments)
    assert (0, []) == (finished.code, finished.complaints)
    assert tables(clean.path) == tables(run)


@pytest.mark.parametrize(("stop", "moment"), [(signal.SIGINT, 6), (signal.SIGTERM, 30)])
def test_an_interrupted_run_says_how_to_continue(clean, tmp_path, stop, moment):
    """Ctrl-C or SIGTERM exits with 130, leaves no process, and prints the command that continues to equal tables."""
    run = tmp_path / "run"
    process = start(
        "run",
        "--protocol",
        "ram-v1",
        "--games",
        "pong,breakout",
        "--out",
        run,
        "--store",
        clean.store,
        "--workers",
        "2",
    )
    while n_units(run) < moment and process.poll() is None:
        time.sleep(0.002)
    # A terminal sends Ctrl-C to all processes of the command.
    os.killpg(process.pid, stop) if stop == signal.SIGINT else process.send_signal(stop)
    interrupted = finish(process)
    assert 130 == interrupted.code
    [line] = interrupted.complaints
    expected = "error: interrupted; what was finished is kept: continue with: veritari "
    assert expected == line[: len(expected)]
    assert not (run / "records.parquet").exists()
    with pytest.raises(ProcessLookupError, match="No such process"):
        wait_for_end_of_group(process.pid)
    resumed = veritari(*shlex.split(line[len(expected) :]), "--store", clean.store)
    assert (0, []) == (resumed.code, resumed.complaints)
    assert tables(clean.path) == tables(run)


# --- what the tables say --------------------------------------------------------------------------------------------


def test_the_oracle_is_faithful_everywhere(clean):
    """The control that claims the effects has F = 1 on every scored task."""
    records = api.load_run(clean.path).records
    faithfulness = records.loc[records["method"] == "oracle", "F"].tolist()
    assert [1.0] * 8 == pytest.approx(faithfulness, abs=1e-12)


def test_the_hard_read_has_no_gradient_on_position(clean):
    """On position the vanilla gradient claims exactly zero for every cause; the sampler's gradient does not."""
    claims = api.load_run(clean.path).claims
    position = claims[(claims["regime"] == "position") & (claims["subject"] == "machine")]
    by_method = {name: group["claim"].to_numpy() for name, group in position.groupby("method")}
    assert [0.0] * len(by_method["vanilla_gradient"]) == by_method["vanilla_gradient"].tolist()
    assert {"pong", "breakout"} == set(
        position.loc[(position["method"] == "sampler_gradient") & (position["claim"] > 0), "game"]
    )


def test_reads_agree_on_content(clean):
    """On content the sampler's gradient is the vanilla gradient: the two reads differ in position only."""
    claims = api.load_run(clean.path).claims
    content = claims[(claims["regime"] == "content") & (claims["subject"] == "machine")]
    vanilla, sampler = (
        content.loc[content["method"] == name, "claim"].tolist() for name in ("vanilla_gradient", "sampler_gradient")
    )
    assert vanilla == sampler
    assert sum(vanilla) > 0


def test_effects_stand_beside_claims_for_all_methods_alike(clean):
    """Every method is compared with the same signed effects, which are those of the archive."""
    run = api.load_run(clean.path)
    for (subject, game, regime), group in run.claims.groupby(["subject", "game", "regime"]):
        answer_key = run.directory.answer_key(subject, game, 0)
        index = [output.regime for output in answer_key.question.outputs].index(regime)
        for _, of_one_method in group.groupby("method"):
            assert answer_key.effects[index].tolist() == of_one_method["effect"].tolist()


def test_the_manifest_tells_what_ran_and_what_it_cost(clean):
    """The manifest has settings, versions, methods, games with their MD5, and the costs of the run."""
    manifest = json.loads((clean.path / "manifest.json").read_text(encoding="utf-8"))
    asked = {"protocol": "ram-v1", "games": "pong,breakout", "methods": "default", "seed": 0}
    assert asked | {"n_seeds": 1, "subjects": list(SUBJECTS), "network": "readout"} == manifest["settings"]
    assert METHODS == [entry["label"] for entry in manifest["methods"]]
    assert ["pong", "breakout"] == [entry["rom_id"] for entry in manifest["games"]]
    assert all(re.fullmatch("[0-9a-f]{32}", entry["rom_md5"]) for entry in manifest["games"])
    assert {"ok": N_TASKS} == manifest["costs"]["statuses"]
    assert 2 == manifest["workers"]
    directory = api.load_run(clean.path).directory
    answer_keys = [directory.answer_key(subject, game, 0) for subject in SUBJECTS for game in ("pong", "breakout")]
    # No method uses rollouts, but the curves need some beside those that measured the effects.
    assert sum(each.n_rollouts for each in answer_keys) < manifest["costs"]["n_rollouts"]
    assert datetime.fromisoformat(manifest["costs"]["started"]) <= datetime.fromisoformat(manifest["costs"]["ended"])


def test_every_unit_is_timed(clean):
    """The timings have one row for every unit."""
    timings = pd.read_parquet(clean.path / "timings.parquet")
    units = {str(path.relative_to(clean.path / "units")) for path in (clean.path / "units").rglob("*.json")}
    assert units == set(timings["unit"])


# --- the Python interface -------------------------------------------------------------------------------------------


def test_a_run_returns_tables_of_the_documented_types(clean):
    """Records, claims, curves and failures are DataFrames with the columns and types of the format."""
    run = api.load_run(clean.path)
    for frame, types in (
        (run.records, RECORD_TYPES),
        (run.claims, CLAIM_TYPES),
        (run.curves, CURVE_TYPES),
        (run.failures, FAILURE_TYPES),
    ):
        assert list(types) == list(frame.columns)
    assert (N_TASKS, 0) == (len(run.records), len(run.failures))
    for subject in SUBJECTS:
        methods = [name for name in METHODS if name != NOT_ON[subject]]
        assert methods == list(run.records.loc[run.records["subject"] == subject, "method"].unique())
    assert {"float64"} == set(run.records[list(UNDEFINED)].dtypes.astype(str))
    assert [(subject, 6) for subject in SUBJECTS] == list(run.leaderboard["subject"].value_counts(sort=False).items())
    assert 24 == len(run.per_game)


def test_a_finished_run_reads_its_tables(copied):
    """Once the tables are written, units and archives are not needed to read them."""
    before = api.load_run(copied).records
    shutil.rmtree(copied / "units")
    shutil.rmtree(copied / "oracle")
    run = api.load_run(copied)
    assert run.is_finished
    pd.testing.assert_frame_equal(before, run.records)


def test_an_unfinished_run_reads_its_units(copied, clean):
    """A run without tables has the rows of what is done, equal to those of the finished run."""
    make_unfinished(copied, "*/random/*.json", "curves/uniform/*-pong-*.json")
    run = api.load_run(copied)
    assert not run.is_finished
    complete = api.load_run(clean.path).records
    is_random = complete["method"] == "random"
    # A claim without its curves is not finished either.
    lacks_curves = (complete["method"] == "uniform") & (complete["game"] == "pong")
    pd.testing.assert_frame_equal(complete[~is_random & ~lacks_curves].reset_index(drop=True), run.records)


def test_an_unfinished_run_can_be_shown(clean, tmp_path):
    """`veritari show` of an unfinished run prints what is there, and a command to continue that can be pasted."""
    run = Path(shutil.copytree(clean.path, tmp_path / "a run"))
    make_unfinished(run, "curves/*/*.json")
    finished = veritari("show", run)
    assert (0, "") == (finished.code, finished.err)
    label, command = finished.out.splitlines()[-1].rsplit(": ", 1)
    assert ("unfinished: continue with", ["veritari", "run", "--resume", str(run)]) == (label, shlex.split(command))


def test_resume_sweeps_up(copied, clean):
    """What a killed process left half-written is gone after the run was resumed."""
    for folder in ("units/claims/oracle", "oracle", "."):
        (copied / folder / ".half-written.json.x7k2.partial").write_text("{", encoding="utf-8")
    api.resume(copied, workers=1, store=clean.store)
    assert [] == list(copied.rglob(".half-written*"))


def test_resume_does_what_is_missing_and_nothing_else(copied, clean):
    """Resuming repeats the missing units only, and ends in byte-identical tables."""
    make_unfinished(copied, "*/random/machine-pong-*.json", "curves/sampler_gradient/machine-breakout-*.json")
    progress = Recorder()
    resumed = api.resume(copied, store=clean.store, progress=progress)
    assert {"measuring effects": 0, "asking sampler_gradient": 0, "measuring curves": 4}.items() <= dict(
        progress.passes
    ).items()
    assert [] == progress.warnings
    assert tables(clean.path) == tables(resumed.path)


def test_resuming_a_finished_run_changes_nothing(copied, clean):
    """A finished run that is resumed has the same tables."""
    progress = Recorder()
    resumed = api.resume(copied, workers=1, store=clean.store, progress=progress)
    assert [0] * len(progress.passes) == [n_units for _, n_units in progress.passes]
    assert tables(clean.path) == tables(resumed.path)


def test_scoring_again_changes_nothing(copied, clean):
    """Scores are recomputed from the stored claims, byte by byte the same."""
    for name in FILES - ARCHIVES:
        (copied / name).write_text("to be written anew", encoding="utf-8")
    api.rescore(copied)
    assert tables(clean.path) == tables(copied)


def test_another_seed_is_another_random_control(clean, tmp_path):
    """The seed decides the claims of the random control, and leaves those of the oracle as they are."""
    other = api.run(
        protocol="ram-v1", games="pong", methods="vanilla_gradient", seed=1, out=tmp_path / "run", store=clean.store
    ).claims
    same = api.load_run(clean.path).claims
    same = same[same["game"] == "pong"]
    claims = {
        method: [frame.loc[frame["method"] == method, "claim"].to_numpy() for frame in (same, other)]
        for method in ("random", "oracle")
    }
    assert np.array_equal(*claims["oracle"])
    assert 0 == (claims["random"][0] == claims["random"][1]).sum()


def test_loading_what_is_no_run_is_refused(tmp_path):
    """A folder without a manifest is named."""
    with pytest.raises(BadRun, match=r"expected a run directory with a manifest\.json, got No such file or directory"):
        api.load_run(tmp_path)


RUN_API = """
from pathlib import Path
from harness.api import load_run, run
settings = dict(protocol="ram-v1", games="pong", methods="vanilla_gradient", subject="machine", workers=2)
result = run(**settings, out={out!r}, store=Path({store!r}))
print(type(result.leaderboard).__name__, list(result.leaderboard["method"]), load_run({out!r}).is_finished)
"""


def test_the_documented_script_works(clean, tmp_path):
    """A plain script that calls `run` gets the leaderboard as a DataFrame and prints nothing of ours."""
    script = RUN_API.format(out=str(tmp_path / "run"), store=str(clean.store))
    finished = subprocess.run(
        [commands.COMMAND[0], "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    board = ["vanilla_gradient", "oracle", "random", "uniform"]
    assert f"DataFrame {board} True\n" == finished.stdout
    assert "" == finished.stderr
