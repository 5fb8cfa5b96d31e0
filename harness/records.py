"""The tables of a run, built from its units: one record per task and method, the claims, the curves."""

import hashlib
import io
import math
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import BadRun
from harness.grading import GRADERS, UNDEFINED, grade, grounds_of
from harness.manifest import GameEntry, Manifest, MethodEntry
from harness.run_directory import CHECKSUMS, RunDirectory
from harness.units import UNANSWERED, Claim, Curves, OracleOutcome, Status, TaskId, task_id
from methods.method import Subject
from oracle.effects import AnswerKey
from oracle.output import REGIMES, Regime

IDENTITY = ["protocol", "subject", "network", "game", "state", "regime", "output", "method", "seed"]
RECORD_TYPES: dict[str, str] = {
    **dict.fromkeys(("protocol", "subject", "network", "game"), "str"),
    "state": "int64",
    **dict.fromkeys(("regime", "output", "method"), "str"),
    "seed": "int64",
    **dict.fromkeys(("n_causes", "n_true", "n_named"), "int64"),
    **dict.fromkeys(UNDEFINED, "float64"),
    **dict.fromkeys(("vanished", "self_alive"), "bool"),
    **dict.fromkeys(("n_rollouts", "n_gradients"), "int64"),
    **dict.fromkeys(("status", "reason", "score_version"), "str"),
}
CLAIM_TYPES = {
    **{name: RECORD_TYPES[name] for name in IDENTITY},
    "cause": "str",
    "claim": "float64",
    "effect": "float64",
    "flags": "str",
}
CURVE_TYPES = {**{name: RECORD_TYPES[name] for name in IDENTITY}, "curve": "str", "step": "int64", "y": "float64"}
FAILURE_TYPES = {
    "unit": "str",
    **{name: RECORD_TYPES[name] for name in ("subject", "game", "state", "output", "method", "status", "reason")},
}

Row = dict[str, Any]


class Tables:
    """All rows of a run, read from its units; what is not finished yet is not there yet."""

    def __init__(self, directory: RunDirectory, manifest: Manifest) -> None:
        self._directory = directory
        self._manifest = manifest
        self._records: list[Row] = []
        self._claims: list[Row] = []
        self._curves: list[Row] = []
        self._failures: list[Row] = []
        # Units that should be there and are not; empty for a finished run.
        self.missing: list[str] = []
        if manifest.score_version not in GRADERS:
            known = ", ".join(GRADERS)
            raise BadRun(
                f"{directory.path}: expected scores of version {known}, got {manifest.score_version}; start a new run"
            )
        for subject in manifest.settings.subjects:
            for game in manifest.games:
                for state in range(manifest.n_states):
                    self._add_state(subject, game, state)

    @property
    def records(self) -> pd.DataFrame:
        """One row per task and method: scores, counts, status and reason."""
        return _frame(self._records, RECORD_TYPES)

    @property
    def claims(self) -> pd.DataFrame:
        """One row per task, method and cause: claim beside effect."""
        return _frame(self._claims, CLAIM_TYPES)

    @property
    def curves(self) -> pd.DataFrame:
        """One row per task, method, curve and step."""
        return _frame(self._curves, CURVE_TYPES)

    @property
    def failures(self) -> pd.DataFrame:
        """One row per unit that gave no result: what was asked, and why there is no answer."""
        return _frame(self._failures, FAILURE_TYPES)

    def _add_state(self, subject: Subject, game: GameEntry, state: int) -> None:
        exclusion = game.exclusions.get(subject, "")
        outcome = OracleOutcome(subject=subject, game=game.rom_id, state=state, status="excluded", reason=exclusion)
        if not exclusion:
            stored = self._directory.unit(outcome)
            if stored is None:
                self.missing.append(outcome.filename)
                return
            outcome = stored
        if outcome.status == "ok":
            answer_key = self._directory.answer_key(subject, game.rom_id, state)
            for entry in self._manifest.methods_on(subject):
                self._add_method(entry, answer_key)
            for regime, reason in answer_key.unmet:
                self._records += self._without_output(outcome, (regime,), "not_applicable", reason)
            return
        self._records += self._without_output(outcome, REGIMES, "excluded", outcome.reason)
        if outcome.status in UNANSWERED:
            self._failures.append(_failure_row(outcome, outcome, "", ""))

    def _without_output(
        self, outcome: OracleOutcome, regimes: tuple[Regime, ...], status: Status, reason: str
    ) -> Iterator[Row]:
        """What has no question is left out for all methods alike, whatever the reason."""
        for entry in self._manifest.methods_on(outcome.subject):
            for regime in regimes:
                yield {
                    **self._identity(outcome, regime, "", entry),
                    **UNDEFINED,
                    **dict.fromkeys(("n_causes", "n_true", "n_named", "n_rollouts", "n_gradients"), 0),
                    **dict.fromkeys(("vanished", "self_alive"), False),
                    "status": status,
                    "reason": reason,
                    "score_version": self._manifest.score_version,
                }

    def _add_method(self, entry: MethodEntry, answer_key: AnswerKey) -> None:
        question = answer_key.question
        for (row, output), repeat in product(enumerate(question.outputs), self._manifest.repeats(entry)):
            task = task_id(question, output, repeat)
            identity = self._identity(task, output.regime, output.name, entry)
            claim = self._directory.unit(Claim(task=task, method=entry.label, status="ok"))
            curves = self._directory.unit(Curves(task=task, method=entry.label, status="ok"))
            if claim is None or (claim.status == "ok" and curves is None):
                self.missing.append(f"{entry.label} on {question.subject} {question.game} {output.name}")
                continue
            version, seed = self._manifest.score_version, self._manifest.settings.seed
            scores = grade(claim, grounds_of(answer_key, row, seed, curves), version=version)
            self._records.append({**identity, **scores, "score_version": version})
            for unit in (claim, curves):
                if unit is not None and unit.status in UNANSWERED:
                    self._failures.append(_failure_row(unit, task, output.name, entry.label))
            self._claims += _claim_rows(identity, claim, answer_key, answer_key.effects[row])
            self._curves += _curve_rows(identity, curves)

    def _identity(self, of: OracleOutcome | TaskId, regime: str, output: str, entry: MethodEntry) -> Row:
        settings, network = self._manifest.settings, self._manifest.network_of(of.subject)
        seed = settings.seed + (of.repeat if isinstance(of, TaskId) else 0)
        values = (settings.protocol, of.subject, network, of.game, of.state, regime, output, entry.label, seed)
        return dict(zip(IDENTITY, values, strict=True))


def _failure_row(unit: OracleOutcome | Claim | Curves, of: OracleOutcome | TaskId, output: str, method: str) -> Row:
    values = (type(unit).__name__.lower(), of.subject, of.game, of.state, output, method, unit.status, unit.reason)
    return dict(zip(FAILURE_TYPES, values, strict=True))


def _claim_rows(identity: Row, claim: Claim, answer_key: AnswerKey, effects: np.ndarray) -> Iterator[Row]:
    values = claim.values or (math.nan,) * len(effects)
    for cause, value, effect, flags in zip(answer_key.question.causes, values, effects, answer_key.flags, strict=True):
        yield {**identity, "cause": cause.label, "claim": value, "effect": float(effect), "flags": flags}


def _curve_rows(identity: Row, curves: Curves | None) -> Iterator[Row]:
    if curves is None:
        return
    for name, values in (("deletion", curves.deletion), ("insertion", curves.insertion)):
        for step, y in enumerate(values):
            yield {**identity, "curve": name, "step": step, "y": y}


def _frame(rows: list[Row], types: dict[str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """The frame as Parquet; equal frames give equal bytes."""
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), buffer, compression="zstd")
    return buffer.getvalue()


def checksums(tables: Mapping[str, bytes]) -> str:
    """SHA-256 of every table, in the format that `sha256sum --check` reads."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in tables.items())


def read_parquet(directory: RunDirectory, name: str) -> pd.DataFrame:
    """A Parquet table of a run.

    Raises:
        BadRun: missing or damaged; the message says how to rebuild it.
    """
    with _naming_damage(directory.path / name):
        table: pd.DataFrame = pq.read_table(io.BytesIO(_checked_content(directory.path / name))).to_pandas()
    return table


def read_failures(directory: RunDirectory) -> pd.DataFrame:
    """The failures of a run.

    Raises:
        BadRun: missing or damaged; the message says how to rebuild it.
    """
    path = directory.path / "failures.csv"
    with _naming_damage(path):
        content = io.BytesIO(_checked_content(path))
        return pd.read_csv(content, keep_default_na=False)[list(FAILURE_TYPES)].astype(FAILURE_TYPES)


def _checked_content(path: Path) -> bytes:
    content = path.read_bytes()
    noted = (path.parent / CHECKSUMS).read_text(encoding="utf-8").splitlines()
    if checksums({path.name: content}).strip() not in noted:
        raise ValueError("another checksum than was noted")
    return content


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, LookupError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        rescore = f"veritari rescore {shlex.quote(str(path.parent))}"
        raise BadRun(
            f"{path}: expected the table that was written, got {reason}; rebuild it with: {rescore}"
        ) from error
