"""The tables of a run, from a run directory written by hand with the toy machine's answer key."""

import math

import numpy as np
import pandas as pd
import pytest

from games.errors import VeritariError
from harness import scores
from harness.errors import BadRun
from harness.grading import UNDEFINED, Grounds, grade
from harness.records import (
    CLAIM_TYPES,
    CURVE_TYPES,
    FAILURE_TYPES,
    RECORD_TYPES,
    Tables,
    checksums,
    parquet_bytes,
    read_parquet,
)
from harness.run_directory import CHECKSUMS, RunDirectory
from harness.units import Claim, Curves, OracleOutcome, TaskId
from oracle.effects import measure
from oracle.errors import DamagedFile
from oracle.network_effects import measure_network
from tests.harness.test_manifest import game_entry, manifest_of, method_entry
from tests.toy import PAPER_EFFECTS, PAPER_NETWORK_EFFECTS, ToyMachine, pixel_network, toy_game, toy_protocol

N_CAUSES = len(PAPER_EFFECTS)
IN_ORDER = tuple(float(value) for value in range(N_CAUSES, 0, -1))
FALLING = tuple(float(value) for value in range(113, 113 - N_CAUSES - 1, -1))
RISING = FALLING[::-1]


@pytest.fixture(scope="module")
def answer_key():
    """The toy's answer key."""
    return measure(toy_protocol(), toy_game(), 0, ToyMachine)


class HandMade:
    """A run directory that is filled unit by unit."""

    def __init__(self, path, answer_key):
        self.directory = RunDirectory(path)
        self.answer_key = answer_key

    def add_state(self, game="toy", state=0, status="ok", reason="", subject="machine"):
        """A measured game-state: with its answer key if all went well."""
        outcome = OracleOutcome(subject=subject, game=game, state=state, status=status, reason=reason)
        if status == "ok":
            question = self.answer_key.question.model_copy(update={"game": game, "state": state})
            kept = self.answer_key.model_copy(update={"question": question})
            self.directory.write_answer_key(outcome, kept.to_bytes())
        self.directory.write_unit(outcome)

    def task(self, output=0, game="toy", state=0):
        """The identity of one of the two tasks of a game-state."""
        found = self.answer_key.question.outputs[output]
        return TaskId(subject="machine", game=game, state=state, output=found.name, regime=found.regime)

    def add_claim(self, method, task, values=IN_ORDER, **changes):
        """A claim, as the judge stores it."""
        claim = Claim(**{"task": task, "method": method, "status": "ok", "values": values} | changes)
        self.directory.write_unit(claim)
        return claim

    def add_curves(self, method, task, **changes):
        """The curves of a claim."""
        content = {"task": task, "method": method, "status": "ok", "deletion": FALLING, "insertion": RISING}
        curves = Curves(**content | changes)
        self.directory.write_unit(curves)
        return curves

    def add_answers(self, *methods, game="toy", state=0):
        """A finished game-state: both tasks answered by all methods, with curves."""
        self.add_state(game, state)
        for method in methods:
            for output in (0, 1):
                self.add_claim(method, self.task(output, game, state))
                self.add_curves(method, self.task(output, game, state))

    def tables(self, *methods, games=("toy",), **settings):
        """The tables of what is there."""
        manifest = manifest_of(games=games, methods=[method_entry(method) for method in methods], **settings)
        return Tables(self.directory, manifest)


@pytest.fixture
def run(tmp_path, answer_key):
    """A run directory without anything in it."""
    return HandMade(tmp_path, answer_key)


def dtypes(frame):
    """The types of all columns by name."""
    return {name: str(dtype) for name, dtype in frame.dtypes.items()}


# --- records --------------------------------------------------------------------------------------------------------


def test_a_record_holds_identity_and_scores(run):
    """A record says what was asked of whom, and has exactly the scores that its claim, effects and curves give."""
    run.add_state()
    claim = run.add_claim("blur", run.task(1), n_rollouts=3, n_gradients=64)
    curves = run.add_curves("blur", run.task(1))
    (found,) = run.tables("blur", seed=5).records.to_dict("records")
    effect = np.array([abs(position) for _, _, position in PAPER_EFFECTS], dtype=np.float64)
    expected = {
        "protocol": "ram-v1",
        "subject": "machine",
        "network": "",
        "game": "toy",
        "state": 0,
        "regime": "position",
        "output": "changed_pixels",
        "method": "blur",
        "seed": 5,
        **grade(claim, Grounds(effect=effect, seed=5, curves=curves), version="v1"),
        "score_version": "v1",
    }
    # Undefined on the machine, and of the other version.
    for name in {"F_partial", *UNDEFINED} - (scores.SCORES.keys() - {"F_partial"}):
        assert [True, True] == [math.isnan(row.pop(name)) for row in (expected, found)]
    assert expected == found


def test_records_come_in_the_order_of_the_manifest(run):
    """Rows are ordered by game, state, method and output, whatever order the units were finished in."""
    run.add_answers("edge", "blur", game="qbert")
    run.add_answers("edge", "blur", state=1)
    run.add_answers("edge", "blur")
    records = run.tables("blur", "edge", games=("toy", "qbert"), n_states=2).records
    expected = [
        (game, state, method, regime)
        for game, state in (("toy", 0), ("toy", 1), ("qbert", 0))
        for method in ("blur", "edge")
        for regime in ("content", "position")
    ]
    assert expected == list(zip(*(records[name] for name in ("game", "state", "method", "regime")), strict=True))


def test_empty_tables_have_their_columns(run):
    """A run that has just begun has four tables without rows, with the columns and types of full ones."""
    tables = run.tables("blur")
    empty = [tables.records, tables.claims, tables.curves, tables.failures]
    assert [0, 0, 0, 0] == [len(frame) for frame in empty]
    assert [RECORD_TYPES, CLAIM_TYPES, CURVE_TYPES, FAILURE_TYPES] == [dtypes(frame) for frame in empty]


def test_full_tables_have_the_same_types(run):
    """Columns have the same types with rows in them, also where everything is undefined."""
    run.add_state()
    run.add_claim("blur", run.task(), values=(), status="failed", reason="it raised")
    run.add_curves("blur", run.task(), status="failed", reason="no claim", deletion=(1.0,), insertion=(1.0,))
    tables = run.tables("blur")
    assert [RECORD_TYPES, CLAIM_TYPES, CURVE_TYPES, FAILURE_TYPES] == [
        dtypes(frame) for frame in (tables.records, tables.claims, tables.curves, tables.failures)
    ]


# --- claims and curves ----------------------------------------------------------------------------------------------


def test_claims_stand_beside_signed_effects(run):
    """Each cause has a row with the claim, the signed effect of the table on paper, and its flags."""
    run.add_answers("blur")
    claims = run.tables("blur").claims
    content = claims[claims["regime"] == "content"]
    expected = [(label, value, effect) for (label, effect, _), value in zip(PAPER_EFFECTS, IN_ORDER, strict=True)]
    assert expected == list(zip(*(content[name] for name in ("cause", "claim", "effect")), strict=True))
    # Writing 0 to a cell that holds 0 changes nothing.
    assert ["ram[4]:occlude", "ram[5]:occlude"] == content.loc[content["flags"] == "vacuous", "cause"].tolist()
    assert {"", "vacuous"} == set(content["flags"])
    position = claims[claims["regime"] == "position"]
    assert [effect for _, _, effect in PAPER_EFFECTS] == position["effect"].tolist()


def test_a_failed_claim_has_effects_only(run):
    """Where there is no answer the claim is undefined, and the effects still stand there."""
    run.add_state()
    run.add_claim("blur", run.task(), values=(), status="failed", reason="it raised")
    claims = run.tables("blur").claims
    assert [True] * N_CAUSES == claims["claim"].isna().tolist()
    assert [effect for _, effect, _ in PAPER_EFFECTS] == claims["effect"].tolist()


def test_curves_have_a_row_per_step(run):
    """Deletion comes first, then insertion, each from step 0 to the number of causes."""
    run.add_state()
    run.add_claim("blur", run.task())
    run.add_curves("blur", run.task())
    curves = run.tables("blur").curves
    expected = [
        (name, step, y) for name, ys in (("deletion", FALLING), ("insertion", RISING)) for step, y in enumerate(ys)
    ]
    assert expected == list(zip(*(curves[name] for name in ("curve", "step", "y")), strict=True))
    assert {("blur", "ram[0]")} == set(zip(curves["method"], curves["output"], strict=True))


# --- runs that are not finished -------------------------------------------------------------------------------------


def rows(frame):
    """Which tasks have a record, and with which status."""
    return list(zip(frame["method"], frame["regime"], frame["status"], strict=True))


def test_a_state_without_outcome_has_no_rows(run):
    """An answer key whose unit was not written yet counts as not measured."""
    run.add_answers("blur")
    run.directory.unit_path(OracleOutcome(subject="machine", game="toy", state=0, status="ok")).unlink()
    assert [] == rows(run.tables("blur").records)


def test_only_what_is_finished_has_a_row(run):
    """Of a half-finished run the answered tasks have rows: a claim waits for its curves, a refusal does not."""
    run.add_state()
    run.add_claim("blur", run.task(0))
    run.add_curves("blur", run.task(0))
    run.add_claim("blur", run.task(1))  # its curves are still to be measured
    run.add_claim("edge", run.task(0), values=(), status="failed", reason="it raised")
    run.add_claim("edge", run.task(1), values=(), status="not_applicable", reason="no sprite")
    run.add_claim("sharp", run.task(1), values=(), status="timeout", reason="120 s")
    tables = run.tables("blur", "edge", "sharp", "dull")
    expected = [
        ("blur", "content", "ok"),
        ("edge", "content", "failed"),
        ("edge", "position", "not_applicable"),
        ("sharp", "position", "timeout"),
    ]
    assert expected == rows(tables.records)
    # Claims have rows where records have; curves only where there are any.
    assert [N_CAUSES] * 4 == tables.claims.groupby(["method", "regime"], sort=False).size().tolist()
    assert ["blur"] == tables.curves["method"].unique().tolist()


@pytest.mark.parametrize("damage", [b"", b"{", b'{"status": "ok"}', b"\xff\xfe"])
@pytest.mark.parametrize("kind", [Claim, Curves, OracleOutcome])
def test_a_damaged_unit_counts_as_missing(run, kind, damage):
    """A torn file of a unit is as if it were not there: it is done again when the run goes on."""
    run.add_answers("blur")
    identity = (
        {"subject": "machine", "game": "toy", "state": 0}
        if kind is OracleOutcome
        else {"task": run.task(0), "method": "blur"}
    )
    run.directory.unit_path(kind(status="ok", **identity)).write_bytes(damage)
    left = [] if kind is OracleOutcome else [("blur", "position", "ok")]
    assert left == rows(run.tables("blur").records)


def test_a_damaged_archive_is_named(run):
    """An answer key that is not what was written is named, with what to do."""
    run.add_answers("blur")
    run.directory.write("oracle/machine-toy-0.npz", b"garbage")
    with pytest.raises(DamagedFile, match=r"toy-0\.npz: expected an archive of ours, got .*; delete it to have it"):
        run.tables("blur")


def test_a_missing_archive_is_named(run):
    """An answer key that was deleted is named in an error of ours."""
    run.add_answers("blur")
    run.directory.answer_key_path("machine", "toy", 0).unlink()
    with pytest.raises(VeritariError, match=r"toy-0\.npz: expected"):
        run.tables("blur")


# --- excluded and failed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "n_failures"), [("excluded", 0), ("degenerate", 0), ("failed", 1), ("timeout", 1)])
def test_a_state_without_question_is_excluded_for_all(run, status, n_failures):
    """A game-state that could not be asked about has a row per method and regime; only a failure is one."""
    run.add_state(status=status, reason="the reason")
    tables = run.tables("blur", "edge")
    assert [
        ("blur", "content", "excluded"),
        ("blur", "position", "excluded"),
        ("edge", "content", "excluded"),
        ("edge", "position", "excluded"),
    ] == rows(tables.records)
    assert {"the reason"} == set(tables.records["reason"])
    assert (0, 0, n_failures) == (len(tables.claims), len(tables.curves), len(tables.failures))
    row = tables.records.iloc[0]
    expected = dict.fromkeys(("n_causes", "n_true", "n_named", "n_rollouts", "n_gradients"), 0)
    assert expected | {"vanished": False, "output": ""} == {
        name: row[name] for name in (*expected, "vanished", "output")
    }
    assert [True] * len(UNDEFINED) == [math.isnan(row[name]) for name in UNDEFINED]


def test_a_game_excluded_from_the_start_needs_no_unit(run):
    """A game that the protocol excludes is in the manifest with its reason, and has rows at once."""
    run.add_answers("blur")
    tables = run.tables("blur", games=(game_entry("casino", exclusion="no named bytes"), "toy"))
    assert [("casino", "excluded", "no named bytes")] * 2 + [("toy", "ok", "")] * 2 == list(
        zip(*(tables.records[name] for name in ("game", "status", "reason")), strict=True)
    )
    assert 0 == len(tables.failures)


def test_every_failed_unit_is_listed(run):
    """The table of failures names the unit, what was asked, the status and the reason; refusals are none."""
    run.add_state()
    run.add_state("qbert", status="timeout", reason="oracle: 120 s")
    run.add_claim("blur", run.task(0), values=(), status="failed", reason="it raised")
    run.add_claim("blur", run.task(1))
    run.add_curves("blur", run.task(1), status="failed", reason="the machine broke", deletion=(), insertion=())
    run.add_claim("edge", run.task(0), values=(), status="not_applicable", reason="no sprite")
    expected = [
        ("claim", "machine", "toy", 0, "ram[0]", "blur", "failed", "it raised"),
        ("curves", "machine", "toy", 0, "changed_pixels", "blur", "failed", "the machine broke"),
        ("oracleoutcome", "machine", "qbert", 0, "", "", "timeout", "oracle: 120 s"),
    ]
    failures = run.tables("blur", "edge", games=("toy", "qbert")).failures
    assert expected == list(failures.itertuples(index=False, name=None))


def test_curves_that_failed_leave_the_claim_s_scores(run):
    """Without curves the areas are undefined, and everything else is scored."""
    run.add_state()
    run.add_claim("blur", run.task(1))
    run.add_curves("blur", run.task(1), status="failed", reason="the machine broke", deletion=(), insertion=())
    (row,) = run.tables("blur").records.to_dict("records")
    assert ("ok", "AUC: no curves (the machine broke)", 8) == (row["status"], row["reason"], row["n_true"])
    assert [True, True, False] == [math.isnan(row[name]) for name in ("deletion_auc", "insertion_auc", "F")]


# --- Parquet --------------------------------------------------------------------------------------------------------


@pytest.fixture
def frame(run):
    """The records of a small run, with undefined scores among them."""
    run.add_answers("blur")
    run.add_claim("edge", run.task(0), values=(), status="failed", reason="it raised: é|<\n")
    return run.tables("blur", "edge").records


def test_equal_frames_have_equal_bytes(frame):
    """A table's bytes depend on its content only, not on its index nor on how it was put together."""
    again = pd.concat([frame.iloc[:1], frame.iloc[1:]])
    again.index = range(10, 10 + len(frame))
    assert parquet_bytes(frame) == parquet_bytes(again)
    changed = frame.assign(F=frame["F"] + 1e-15)
    assert parquet_bytes(frame) != parquet_bytes(changed)


def write_checked(run, name, content):
    """Write a table and its checksum, as a run does."""
    run.directory.write(name, content)
    run.directory.write(CHECKSUMS, checksums({name: content}))


def test_parquet_comes_back_to_the_last_bit(run, frame):
    """A table that is written and read again is the same: numbers, undefined ones, texts and types."""
    write_checked(run, "records.parquet", parquet_bytes(frame))
    pd.testing.assert_frame_equal(frame, read_parquet(run.directory, "records.parquet"), check_exact=True)


def test_an_empty_table_comes_back(run):
    """A table without rows keeps its columns and types."""
    empty = run.tables("blur").curves
    write_checked(run, "curves.parquet", parquet_bytes(empty))
    pd.testing.assert_frame_equal(empty, read_parquet(run.directory, "curves.parquet"), check_exact=True)


@pytest.mark.parametrize("damage", ["missing", "empty", "garbage", "torn", "flipped"])
def test_a_damaged_table_is_named(run, frame, damage):
    """A table that can't be read is named, with the command that builds it anew."""
    content = parquet_bytes(frame)
    damaged = {
        "empty": b"",
        "garbage": b"PAR1 not a table PAR1",
        "torn": content[:-10],
        "flipped": content[:-40] + b"x" * 40,
    }
    write_checked(run, "records.parquet", content)
    (run.directory.path / "records.parquet").unlink()
    if damage in damaged:
        run.directory.write("records.parquet", damaged[damage])
    with pytest.raises(
        BadRun, match=r"records\.parquet: expected the table that was written, got [^;]+; rebuild it with: veritari"
    ):
        read_parquet(run.directory, "records.parquet")


# --- networks -------------------------------------------------------------------------------------------------------


@pytest.fixture
def network_run(tmp_path):
    """A run about a network with one content output, on which one method has answered everything."""
    network = pixel_network()
    answer_key = measure_network(toy_protocol(), toy_game(), 0, network, fresh_machine=ToyMachine)
    unread = answer_key.model_copy(update={"unmet": (("position", "readout: nothing is read"),)})
    made = HandMade(tmp_path, unread)
    made.add_state(subject="network")
    task = made.task().model_copy(update={"subject": "network"})
    values = tuple(float(value) for value in range(len(PAPER_NETWORK_EFFECTS)))
    made.add_claim("blur", task, values=values)
    made.add_curves("blur", task, deletion=FALLING[:7], insertion=RISING[:7])
    return made


def test_a_record_of_a_network(network_run):
    """A record of a network names it, and has the score that leaves out how much a cause moves."""
    on_network = {"subjects": ("network",), "network": {"spec": "readout"}}
    scored, unread = network_run.tables("blur", **on_network).records.to_dict("records")
    assert ("network", "readout", "content", "ok") == tuple(
        scored[name] for name in ("subject", "network", "regime", "status")
    )
    effect = np.array([abs(float(effect)) for _, effect in PAPER_NETWORK_EFFECTS])
    movement = np.abs(network_run.answer_key.movement.dense()).sum(axis=(1, 2, 3)).astype(np.float64)
    claim = np.arange(6.0)
    assert scores.partial_pearson(claim, effect, movement) == scored["F_partial"]
    assert scores.pearson(claim, effect) == scored["F"]
    # A regime that the network has no output for is nobody's task.
    assert ("position", "", "not_applicable", "readout: nothing is read") == tuple(
        unread[name] for name in ("regime", "output", "status", "reason")
    )


def test_a_method_has_rows_of_its_subjects_only(network_run):
    """A method that explains the machine only has no row about a network."""
    entries = [method_entry("blur"), method_entry("edge", subjects=["machine"])]
    manifest = manifest_of(games=("toy",), methods=entries, subjects=("network",))
    assert {"blur"} == set(Tables(network_run.directory, manifest).records["method"])


def test_subjects_stand_beneath_each_other(network_run, answer_key):
    """A run about both has the machine's rows first; each subject has its own archive."""
    HandMade(network_run.directory.path, answer_key).add_answers("blur")
    records = network_run.tables("blur", subjects=("machine", "network")).records
    assert ["machine", "machine", "network", "network"] == records["subject"].tolist()
    assert ["", "", "readout", "readout"] == records["network"].tolist()
