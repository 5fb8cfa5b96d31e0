"""What worker processes do: one function per kind of unit, called with plain values.

A worker returns a `Report` of plain text only, and results travel as files. Whatever a plugin raises stays here: an
exception that can't be unpickled would break the pool of every other task. No function here that runs a method is ever
told where effects are.
"""

import hashlib
import inspect
import json
import os
import resource
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from games.catalog import game
from games.errors import UnknownName, VeritariError
from harness.claims import ask
from harness.curves import CurveMeter, measure_curves
from harness.manifest import MethodEntry
from harness.seeds import seed_of
from harness.units import Claim
from harness.world import world_of
from methods.method import BadMethod, Method, NotApplicable
from methods.registry import BrokenPlugin, NameTaken, resolve
from methods.spec import BadSpec
from oracle.effects import AnswerKey, measure
from oracle.emulator import Emulator
from oracle.errors import DamagedFile
from oracle.output import Output
from oracle.protocol import protocol
from oracle.store import Store, store_key, write_atomically
from oracle.task import Question
from oracle.verification import fresh_digests, random_interventions, recipe_digests

LONGEST_REASON = 500
GIB = 2**30
KIB_PER_MIB = 1024


class Report(NamedTuple):
    """How a unit went. `text` is a reason or a warning in one line, `peak_mib` the most memory its process ever held."""

    status: str
    text: str
    seconds: float
    peak_mib: float = 0.0


def prepare_worker(memory_gib: float) -> None:
    """Make a new worker process ready: quiet, one torch thread, limited memory."""
    sink = os.open(os.devnull, os.O_RDWR)
    # File descriptors, not sys.stdout: the emulator and plugins write from C as well.
    for descriptor in (0, 1, 2):
        os.dup2(sink, descriptor)
    torch.set_num_threads(1)
    limit = int(memory_gib * GIB)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def describe(spec: str, answer: str) -> Report:
    """Let a method say what it is; writes a `MethodEntry`.

    A specification that can't be meant is `refused`, a plugin that is there but broken has `failed`.
    """
    return _guarded(lambda: _describe(spec, Path(answer)), refused=(UnknownName, NameTaken, BadMethod, BadSpec))


def _describe(spec: str, answer: Path) -> str:
    method = resolve(spec)
    declared = method.declaration
    entry = MethodEntry(
        spec=spec,
        label=method.label,
        title=declared.title or declared.name.replace("_", " "),
        family=declared.family,
        domain=declared.domain,
        access=declared.access,
        source=declared.source,
        parameters=method.parameters(),
        file_sha256=_file_sha256(method),
    )
    answer.write_text(entry.model_dump_json(), encoding="utf-8")
    return ""


def _file_sha256(method: Method) -> str:
    defining = getattr(method, "function", type(method))
    try:
        return hashlib.sha256(Path(inspect.getfile(defining)).read_bytes()).hexdigest()
    except (TypeError, OSError):
        return ""


def measure_state(protocol_name: str, rom_id: str, state: int, store_folder: str, answer: str) -> Report:
    """Measure one game-state, or take it from the store; writes the answer key, and beside it what measuring cost."""
    return _guarded(lambda: _measure_state(protocol_name, rom_id, state, Store(Path(store_folder)), Path(answer)))


def _measure_state(protocol_name: str, rom_id: str, state: int, store: Store, answer: Path) -> str:
    chosen, played = protocol(protocol_name), game(rom_id)
    key = store_key(chosen, played, state)
    warning = ""
    try:
        answer_key = store.load(key)
    except (DamagedFile, OSError) as error:
        warning, answer_key = str(error), None
    if answer_key is None:
        answer_key = measure(chosen, played, state)
        warning = _save(store, key, answer_key) or warning
    write_atomically(answer, answer_key.to_bytes())
    return warning


def _save(store: Store, key: str, answer_key: AnswerKey) -> str:
    try:
        store.save(key, answer_key)
    except OSError as error:
        # The store only saves time: without it the run is as good.
        return f"{store.folder}: the store can't be written ({error.strerror}); effects are kept in the run only"
    return ""


def claim(spec: str, question_path: str, output_name: str, run_seed: int, answer: str) -> Report:
    """Ask one method about one output; writes a `Claim`. Runs foreign code: nothing it does may get out of here."""
    Path(f"{answer}.pid").write_text(str(os.getpid()), encoding="utf-8")
    return _guarded(lambda: _claim(spec, Path(question_path), output_name, run_seed, Path(answer)))


def _claim(spec: str, question_path: Path, output_name: str, run_seed: int, answer: Path) -> str:
    question = _question(question_path)
    output = _output(question, output_name)
    given = ask(question, output, _method(spec), world=lambda: world_of(question), run_seed=run_seed)
    answer.write_text(given.model_dump_json(), encoding="utf-8")
    return ""


def curves(question_path: str, claim_path: str, answer: str) -> Report:
    """Remove and put back the causes in the order of a claim; writes `Curves`."""
    return _guarded(lambda: _curves(Path(question_path), Path(claim_path), Path(answer)))


def _curves(question_path: Path, claim_path: Path, answer: Path) -> str:
    given = Claim.model_validate_json(claim_path.read_bytes())
    output = _output(_question(question_path), given.task.output)
    answer.write_text(measure_curves(_meter(question_path, output), given).model_dump_json(), encoding="utf-8")
    return ""


class Verification(NamedTuple):
    """One game's share of a verification: the same random interventions on both sides."""

    protocol: str
    rom_id: str
    n_interventions: int
    seed: int


def digests(what: Verification, side: str, answer: str) -> Report:
    """One side of a verification, see `oracle.verification`; writes a list of [RAM digest, screen digest]."""
    return _guarded(lambda: _digests(what, side, Path(answer)))


def _digests(what: Verification, side: str, answer: Path) -> str:
    played = game(what.rom_id)
    generator = np.random.default_rng(seed_of(what.seed, "verify", what.protocol, what.rom_id))
    sequence = random_interventions(what.n_interventions, generator=generator)
    run_sequence = {"recipe": recipe_digests, "fresh": fresh_digests}[side]
    found = run_sequence(lambda: Emulator(played), protocol(what.protocol).trace(played, 0), sequence)
    answer.write_text(json.dumps([[each.ram, each.screen] for each in found]), encoding="utf-8")
    return ""


@lru_cache(maxsize=4)
def _meter(question_path: Path, output: Output) -> CurveMeter:
    question = _question(question_path)
    return CurveMeter(world_of(question), output, question.causes)


@lru_cache(maxsize=4)
def _question(path: Path) -> Question:
    return Question.from_bytes(path.read_bytes(), str(path))


@lru_cache(maxsize=1)
def _method(spec: str) -> Method:
    return resolve(spec)


def _output(question: Question, name: str) -> Output:
    return next(output for output in question.outputs if output.name == name)


def _guarded(work: Callable[[], str], refused: tuple[type[VeritariError], ...] = ()) -> Report:
    started = time.perf_counter()
    try:
        status, text = "ok", work()
    except BrokenPlugin as error:
        status, text = "failed", str(error)
    except refused as error:
        status, text = "refused", str(error)
    except NotApplicable as error:
        status, text = "not_applicable", str(error)
    except VeritariError as error:
        status, text = "failed", str(error)
    except BaseException as error:  # noqa: BLE001  # a plugin may raise anything, SystemExit included
        status, text = "failed", _words(error)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB
    return Report(status, " ".join(text.split())[:LONGEST_REASON], time.perf_counter() - started, peak_mib)


def _words(error: BaseException) -> str:
    """The error's type and text; an exception's own `__str__` may raise too."""
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    except BaseException:  # noqa: BLE001  # as above
        return type(error).__name__
