"""`veritari oracle`: its archives, what a killed command leaves, what is damaged, and what it says to the user."""

import json
import os
import signal
import time

import numpy as np
import pytest

from games.catalog import game
from harness.api import Silent
from harness.errors import BadRun, Interrupted
from harness.pool import Limits
from harness.surface_files import read_surface_manifest, surfaces_table
from harness.surface_plan import plan_surfaces
from harness.surfaces import begin_surfaces, resume_surfaces
from oracle.archive import unpack
from oracle.emulator import Emulator
from oracle.intervention import RamWrite
from oracle.protocol import protocol
from oracle.rollout import replay
from oracle.store import Store, store_key
from tests.harness.commands import SharedRun, in_this_process, start, veritari

pytestmark = pytest.mark.ale

# Two blocks, of eight bytes and of four: long enough to be killed in the second.
ADDRESSES = (*range(49, 57), 60, 61, 62, 63)
COMMAND = ("oracle", "--protocol", "ram-v1", "--games", "pong", "--addresses", "49-56,60-63", "--workers", "1")
LIMITS = Limits(workers=1, timeout_seconds=100.0, memory_gib=4.0)


class Told(Silent):
    """Progress that keeps what it is told, and stops with Ctrl-C when some units are done."""

    def __init__(self, stops_after=None):
        self.passes, self.warnings = [], []
        self.stops_after, self.n_done = stops_after, 0

    def start(self, what, n_units):
        self.passes.append((what, n_units))

    def advance(self):
        self.n_done += 1
        if self.n_done == self.stops_after:
            raise KeyboardInterrupt

    def warn(self, text):
        self.warnings.append(text)


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """The command on Pong, run to its end."""
    folder = tmp_path_factory.mktemp("surfaces")
    finished = veritari(*COMMAND, "--out", folder / "out", "--store", folder / "store", "--json")
    return SharedRun(folder / "out", folder / "store", finished)


@pytest.fixture(scope="module")
def archive(clean):
    """JSON text and arrays of the archive that it has written."""
    path = clean.path / "pong-0.npz"
    return unpack(path.read_bytes(), str(path))


@pytest.fixture
def one_byte(clean, tmp_path):
    """A finished directory of one byte."""
    manifest = plan_surfaces("ram-v1", "pong", (49,), LIMITS)
    begin_surfaces(tmp_path / "one", manifest, clean.store, Silent())
    return tmp_path / "one"


def files(path):
    """Every file below a directory that must be the same in an equal one."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name not in ("manifest.json", ".lock")
    }


def damage(path):
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


# --- what is measured -----------------------------------------------------------------------------------------------


def test_the_command_says_what_it_measured(clean):
    """One row per game-state, with its outputs, 255 rollouts per byte, and the size of the only file."""
    [row] = json.loads(clean.finished.out)
    assert (0, []) == (clean.finished.code, clean.finished.complaints)
    assert ["pong", 0, "ok", "ram[54] changed_pixels", 3060] == [
        row[name] for name in ("game", "state", "status", "outputs", "rollouts")
    ]
    assert {"pong-0.npz": round(1000 * row["kilobytes"])} == {
        name: len(content) for name, content in files(clean.path).items()
    }
    assert not (clean.path / "units").exists()


def test_the_archive_holds_the_effects_of_the_answer_key(clean, archive):
    """Every effect of the protocol on a measured byte is an entry, at the do-value that the archive tells."""
    values, arrays = archive
    answer_key = Store(clean.store).load(store_key(protocol("ram-v1"), game("pong"), 0))
    causes = {cause.label: column for column, cause in enumerate(answer_key.question.causes)}
    assert {"ram[49]:set", "ram[49]:occlude", "ram[54]:set"} <= set(values["do_values"])
    for label, [do_value] in values["do_values"].items():
        row = arrays["addresses"].tolist().index(int(label.partition("[")[2].partition("]")[0]))
        entries = [arrays[output["array"]][row, do_value] for output in values["outputs"]]
        assert answer_key.effects[:, causes[label]].tolist() == entries


def test_the_archive_is_what_a_fresh_machine_does(clean, archive):
    """Entries drawn at random are what straight-through replays give, and rows follow the addresses."""
    _, arrays = archive
    question = Store(clean.store).load(store_key(protocol("ram-v1"), game("pong"), 0)).question
    reference = replay(lambda: Emulator(game("pong")), question.trace, [])
    generator = np.random.default_rng(0)
    for row, value in zip(generator.integers(len(ADDRESSES), size=8), generator.integers(256, size=8), strict=True):
        end = replay(lambda: Emulator(game("pong")), question.trace, [RamWrite(ADDRESSES[row], int(value))])
        n_pixels = int((end.screen != reference.screen).sum())
        expected = [
            int(end.ram[54]) - int(reference.ram[54]),
            n_pixels,
            int((end.ram != reference.ram).sum()),
            n_pixels,
        ]
        names = ("effect:ram[54]", "effect:changed_pixels", "changed_bytes", "changed_pixels")
        assert expected == [arrays[name][row, value] for name in names]


def test_the_archive_explains_itself(archive):
    """Addresses, present values and integer arrays of one row per address and one column per value."""
    values, arrays = archive
    assert list(ADDRESSES) == arrays["addresses"].tolist()
    assert 128 == len(arrays["ram"])
    for name in ("effect:ram[54]", "effect:changed_pixels", "changed_bytes", "changed_pixels"):
        assert ((12, 256), np.int32) == (arrays[name].shape, arrays[name].dtype)
        assert [0] * 12 == arrays[name][np.arange(12), arrays["ram"][list(ADDRESSES)]].tolist()
    told = [values[name] for name in ("protocol", "game", "state", "frame", "horizon", "rom_md5", "n_rollouts")]
    assert ["ram-v1", "pong", 0, 90, 15, game("pong").rom_md5, 3060] == told


# --- killed, interrupted, damaged -----------------------------------------------------------------------------------


def test_a_killed_command_continues_to_equal_archives(clean, tmp_path):
    """Killed with all its processes when one block of two is there, and resumed: equal files, one block measured."""
    out = tmp_path / "out"
    process = start(*COMMAND, "--out", out, "--store", clean.store)
    block = out / "units" / "pong-0" / "049-056.npz"
    while not block.exists() and process.poll() is None:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert -signal.SIGKILL == process.returncode
    assert not (out / "pong-0.npz").exists()
    assert ["049-056.npz", "effects.npz"] == sorted(file.name for file in block.parent.glob("[!.]*"))
    resumed = veritari("oracle", "--resume", out, "--store", clean.store, "--workers", "2")
    assert (0, []) == (resumed.code, resumed.complaints)
    assert "measuring surfaces: 0/1" in resumed.err.splitlines()
    assert files(clean.path) == files(out)


def test_an_interrupted_directory_with_a_damaged_block(clean, tmp_path):
    """Ctrl-C keeps the finished block and says how to continue; a damaged one is named and measured again."""
    out, manifest = tmp_path / "out", plan_surfaces("ram-v1", "pong", ADDRESSES, LIMITS)
    with pytest.raises(Interrupted, match=f"continue with: veritari oracle --resume {out}"):
        begin_surfaces(out, manifest, clean.store, Told(stops_after=2))
    damage(out / "units" / "pong-0" / "049-056.npz")
    told = Told()
    resume_surfaces(out, 2, clean.store, told)
    [warning] = told.warnings
    assert f"{out}/units/pong-0/049-056.npz: expected an archive of ours, got " in warning
    assert warning.endswith("it is measured again")
    assert [("measuring effects", 0), ("measuring surfaces", 2)] == told.passes
    assert files(clean.path) == files(out)


def test_a_finished_directory_is_left_alone(one_byte, clean):
    """Resumed, it measures nothing and stays as it is; a damaged archive is named and measured again."""
    before, told = files(one_byte), Told()
    resume_surfaces(one_byte, None, clean.store, told)
    assert [("measuring effects", 0), ("measuring surfaces", 0)] == told.passes
    assert before == files(one_byte)
    damage(one_byte / "pong-0.npz")
    resume_surfaces(one_byte, None, clean.store, told)
    assert [True] == [f"{one_byte}/pong-0.npz" in warning for warning in told.warnings]
    assert before == files(one_byte)


def test_killed_between_archive_and_manifest(one_byte, clean):
    """An archive that the manifest does not know is made again from what there is, and is the same."""
    before = files(one_byte)
    manifest = read_surface_manifest(one_byte)
    manifest.states.clear()
    (one_byte / "manifest.json").write_text(manifest.model_dump_json(), encoding="utf-8")
    resume_surfaces(one_byte, None, clean.store, Silent())
    assert before == files(one_byte)


def test_what_takes_too_long_is_told_and_tried_again(clean, tmp_path):
    """A unit that runs out of time is a row with its reason; the directory can be continued."""
    out = tmp_path / "out"
    manifest = plan_surfaces("ram-v1", "pong", (49,), Limits(1, 0.02, 4.0))
    table = surfaces_table(begin_surfaces(out, manifest, tmp_path / "store", Silent()))
    assert [["pong", "timeout", "effects: no answer within 0.02 s"]] == table[
        ["game", "status", "reason"]
    ].to_numpy().tolist()
    manifest.timeout_seconds = 100.0
    (out / "manifest.json").write_text(manifest.model_dump_json(), encoding="utf-8")
    assert ["ok"] == list(surfaces_table(resume_surfaces(out, None, clean.store, Silent()))["status"])


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--games", "pongg"), "error: unknown game or set 'pongg'; did you mean pong"),
        (("--protocol", "ram-v3"), "error: unknown protocol 'ram-v3'"),
        (("--causes", "action"), "error: --causes: expected ram, got action"),
        (("--values", "some"), "error: --values: expected all, got some"),
        (("--addresses", "120-128"), "error: --addresses: expected numbers 0..127 or ranges, got '120-128'"),
        (("--resume", "nowhere"), "error: nowhere: expected a directory of surfaces with a manifest.json, got No such"),
        (
            ("--resume", "nowhere", "--games", "pong"),
            "error: --resume: expected the settings of its manifest, got --games",
        ),
    ],
)
def test_wrong_usage_is_one_line(monkeypatch, capfd, tmp_path, words, expected):
    """What can't be meant ends with exit code 2 and a line that says what was expected; nothing is written."""
    monkeypatch.chdir(tmp_path)
    finished = in_this_process(monkeypatch, capfd, "oracle", *words)
    assert (2, expected) == (finished.code, finished.complaints[0][: len(expected)])
    assert [] == list(tmp_path.iterdir())


def test_a_directory_with_something_in_it_is_refused(monkeypatch, capfd, one_byte):
    """`--out` of a directory that is not empty names `--resume`."""
    finished = in_this_process(monkeypatch, capfd, "oracle", "--games", "pong", "--out", one_byte)
    expected = f"error: {one_byte}: expected a new or empty directory for --out"
    assert (2, [expected]) == (finished.code, [line.partition(";")[0] for line in finished.complaints])


def test_other_versions_are_refused(one_byte, clean):
    """A directory that was begun with another ale-py is not continued."""
    manifest = read_surface_manifest(one_byte)
    manifest.versions["ale-py"] = "0.11"
    (one_byte / "manifest.json").write_text(manifest.model_dump_json(), encoding="utf-8")
    with pytest.raises(BadRun, match=r"surfaces: expected the versions it was started with, got ale-py 0\.11 -> "):
        resume_surfaces(one_byte, None, clean.store, Silent())


def test_a_manifest_of_something_else_is_refused(tmp_path):
    """The manifest of a run is none of surfaces."""
    (tmp_path / "manifest.json").write_text('{"format_version": 2}', encoding="utf-8")
    with pytest.raises(BadRun, match="expected a manifest of surfaces, got a damaged or another one"):
        resume_surfaces(tmp_path, None, tmp_path, Silent())
