"""What worker processes do: one function per kind of unit, called with plain values.

A worker returns a `Report` of plain text only, and results travel as files. Whatever a plugin raises stays here: an
exception that can't be unpickled would break the pool of every other task. No function here that runs a method is ever
told where effects are.
"""

import hashlib
import inspect
import json
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from games.catalog import Game, game
from games.errors import UnknownName
from harness.claims import ask
from harness.curves import CurveMeter, measure_curves
from harness.guard import NoRoom, Report, ended_after, guarded, sign, write
from harness.manifest import MethodEntry, NetworkEntry
from harness.networks import network_for, network_of, source_sha256
from harness.sanity import parametrised_layers, randomised
from harness.seeds import global_generators, reset_torch, seed_global_generators, seed_of
from harness.units import Claim
from harness.world import world_of
from methods.method import BadMethod, Method
from methods.registry import NameTaken, resolve
from methods.spec import BadSpec
from oracle import readout_training
from oracle.effects import AnswerKey, live_trace
from oracle.emulator import Emulator
from oracle.errors import DamagedFile
from oracle.network import N_FRAMES, Network
from oracle.network_effects import measure_subject
from oracle.output import Output
from oracle.protocol import protocol
from oracle.readout import save_readout
from oracle.roles import measure_roles
from oracle.scrambled import ScrambledRollouts, measure_program
from oracle.store import Store, store_key
from oracle.task import Question
from oracle.verification import fresh_digests, random_interventions, recipe_digests

# A scrambled program that has not reached its state by then is in an endless loop; others take 0.1 s.
BOOT_SECONDS = 1.0
# Rows and columns of a screen, for a first look.
SCREEN = (210, 160)


def describe(spec: str, answer: str) -> Report:
    """Let a method say what it is; writes a `MethodEntry`.

    A specification that can't be meant is `refused`, a plugin that is there but broken has `failed`.
    """
    return guarded(lambda: _describe(spec, Path(answer)), refused=(UnknownName, NameTaken, BadMethod, BadSpec))


def _describe(spec: str, answer: Path) -> str:
    sign(answer)
    method = resolve(spec)
    declared = method.declaration
    entry = MethodEntry(
        spec=spec,
        label=method.label,
        title=declared.title or declared.name.replace("_", " "),
        family=declared.family,
        domain=declared.domain,
        access=declared.access,
        subjects=declared.subjects,
        signed=declared.signed,
        seeded=declared.seeded,
        source=declared.source,
        parameters=method.parameters(),
        file_sha256=_file_sha256(method),
    )
    write(answer, entry.model_dump_json())
    return ""


def describe_network(spec: str, rom_id: str, answer: str) -> Report:
    """Build the network that is explained once; writes a `NetworkEntry`."""
    return guarded(lambda: _describe_network(spec, game(rom_id), Path(answer)))


def _describe_network(spec: str, played: Game, answer: Path) -> str:
    sign(answer)
    network = network_of(spec, played)
    black = network.look(np.zeros((N_FRAMES, *SCREEN), np.uint8))
    entry = NetworkEntry(spec=spec, file_sha256=source_sha256(spec), network_sha256=network.fingerprint(black))
    write(answer, entry.model_dump_json())
    return ""


def list_layers(spec: str, rom_id: str, answer: str) -> Report:
    """Which layers of a network can be randomised, from the output back to the input; writes a list of names."""
    return guarded(lambda: _list_layers(spec, game(rom_id), Path(answer)))


def _list_layers(spec: str, played: Game, answer: Path) -> str:
    sign(answer)
    write(answer, json.dumps(parametrised_layers(network_of(spec, played).module)))
    return ""


def _file_sha256(method: Method) -> str:
    defining = getattr(method, "function", type(method))
    try:
        return hashlib.sha256(Path(inspect.getfile(defining)).read_bytes()).hexdigest()
    except (TypeError, OSError):
        return ""


class GameState(NamedTuple):
    """What is measured: a game-state under a protocol; with a network, what that one says of it."""

    protocol: str
    rom_id: str
    state: int
    network: str = ""


def measure_state(what: GameState, store_folder: str, answer: str) -> Report:
    """Measure one game-state, or take it from the store; writes the answer key."""
    return guarded(lambda: _measure_state(what, Store(Path(store_folder)), Path(answer)))


def _measure_state(what: GameState, store: Store, answer: Path) -> str:
    chosen, played = protocol(what.protocol), game(what.rom_id)
    network = network_of(what.network, played) if what.network else None
    # What a user's function builds may change without a trace: it is measured anew in every run.
    key = store_key(chosen, played, what.state, network) if network is None or network.identity else ""
    warning = ""
    try:
        answer_key = store.load(key) if key else None
    except (DamagedFile, OSError) as error:
        warning, answer_key = str(error), None
    # Convolutions differ between processors: what another one has measured may be another network here.
    if answer_key and network and network.fingerprint(answer_key.question.frames) != answer_key.question.network_sha256:
        answer_key = None
    if answer_key is None:
        answer_key = measure_subject(chosen, played, what.state, network)
        warning = (_save(store, key, answer_key) if key else "") or warning
    # An entry is shared by protocols that differ in their number of states only; seeds depend on the name.
    question = answer_key.question.model_copy(update={"protocol": chosen.name})
    write(answer, answer_key.model_copy(update={"question": question}).to_bytes())
    return warning


def _save(store: Store, key: str, answer_key: AnswerKey) -> str:
    try:
        store.save(key, answer_key)
    except OSError as error:
        # The store only saves time: without it the run is as good.
        return f"{store.folder}: the store can't be written ({error.strerror}); effects are kept in the run only"
    return ""


def measure_scrambled(question_path: str, program: int, answer: str) -> Report:
    """Measure the effects of a question's causes under another program; writes an `OtherProgram`."""
    return guarded(lambda: _measure_scrambled(_question(Path(question_path)), program, Path(answer)))


def _measure_scrambled(question: Question, program: int, answer: Path) -> str:
    sign(answer)
    played = game(question.game)
    # The parent removes the folder of the answer: a process that is ended while it loads leaves nothing elsewhere.
    with ended_after(BOOT_SECONDS):
        rollouts = ScrambledRollouts(played, program, question.trace, question.ram, scratch=answer.parent)
    write(answer, measure_program(protocol(question.protocol), played, question, rollouts).model_dump_json())
    return ""


class Asked(NamedTuple):
    """What a method is asked: one output of a question."""

    spec: str
    question_path: str
    output_name: str
    run_seed: int


class Randomisation(NamedTuple):
    """How many layers of the network get random weights, from the output back, and which draw of them it is."""

    n_layers: int
    draw: int


def claim(spec: str, question_path: str, output_name: str, run_seed: int, answer: str) -> Report:
    """Ask one method about one output; writes a `Claim`. Runs foreign code: nothing it does may get out of here.

    The report of a method that moved the global generators says so. In a run that is no failure: they are seeded.
    """
    return guarded(lambda: _claim(Asked(spec, question_path, output_name, run_seed), Path(answer)))


def claim_randomised(asked: Asked, randomisation: Randomisation, answer: str) -> Report:
    """As `claim`, about a network that has forgotten its top layers; the method's own seed is the same."""
    return guarded(lambda: _claim(asked, Path(answer), randomisation))


def claim_scrambled(asked: Asked, program: int, answer: str) -> Report:
    """As `claim`, about the same state under another program; the method's own seed is the same."""
    return guarded(lambda: _claim(asked, Path(answer), program=program))


def _claim(asked: Asked, answer: Path, randomisation: Randomisation | None = None, program: int | None = None) -> str:
    sign(answer)
    question = _question(Path(asked.question_path))
    output = _output(question, asked.output_name)
    # A new instance and known global states: the answer depends on nothing that was asked here before.
    reset_torch()
    method = resolve(asked.spec)
    # Built for this call alone: nothing that a method does to it is there for the next.
    network = network_for(question)
    if network and randomisation:
        network = _forgetful(network, randomisation, asked.run_seed)
    seed_global_generators(seed_of(asked.run_seed, question.game, question.state, output.name, asked.spec))
    before = global_generators()
    given = ask(
        question,
        output,
        method,
        world=lambda: world_of(question, program, scratch=answer.parent),
        run_seed=asked.run_seed,
        network=network,
    )
    moved = [name for name, state in global_generators().items() if state != before[name]]
    write(answer, given.model_dump_json())
    return _drawn_from(moved) if moved else ""


def _drawn_from(moved: list[str]) -> str:
    where = ", ".join(moved)
    return f"global generators: expected them untouched, got other states of {where}; draw from `generator`"


def _forgetful(network: Network, randomisation: Randomisation, run_seed: int) -> Network:
    # The draw alone decides: a layer has the same weights at every point of a curve, and for every method.
    generator = torch.Generator().manual_seed(seed_of(run_seed, "randomisation", randomisation.draw))
    return replace(network, module=randomised(network.module, randomisation.n_layers, generator=generator))


def curves(question_path: str, claim_path: str, run_seed: int, answer: str) -> Report:
    """Remove and put back the causes in the order of a claim; writes `Curves`."""
    return guarded(lambda: _curves(Path(question_path), Path(claim_path), run_seed, Path(answer)))


def _curves(question_path: Path, claim_path: Path, run_seed: int, answer: Path) -> str:
    given = Claim.model_validate_json(claim_path.read_bytes())
    question = _question(question_path)
    output = _output(question, given.task.output)
    measured = measure_curves(_meter(question_path, output), given, protocol(question.protocol), run_seed=run_seed)
    write(answer, measured.model_dump_json())
    return ""


class Verification(NamedTuple):
    """One game's share of a verification: the same random interventions on both sides."""

    protocol: str
    rom_id: str
    n_interventions: int
    seed: int


def digests(what: Verification, side: str, answer: str) -> Report:
    """One side of a verification, see `oracle.verification`; writes a list of [RAM digest, screen digest]."""
    return guarded(lambda: _digests(what, side, Path(answer)))


def _digests(what: Verification, side: str, answer: Path) -> str:
    played = game(what.rom_id)
    generator = np.random.default_rng(seed_of(what.seed, "verify", what.protocol, what.rom_id))
    sequence = random_interventions(what.n_interventions, generator=generator)
    run_sequence = {"recipe": recipe_digests, "fresh": fresh_digests}[side]
    found = run_sequence(lambda: Emulator(played), live_trace(protocol(what.protocol), played, 0), sequence)
    write(answer, json.dumps([[each.ram, each.screen] for each in found]))
    return ""


def roles(rom_id: str, state: int, addresses: tuple[int, ...], answer: str) -> Report:
    """What these bytes do at one state of ram-v2; writes a list of `ByteRuns`."""
    return guarded(lambda: _roles(game(rom_id), state, addresses, Path(answer)))


def _roles(played: Game, state: int, addresses: tuple[int, ...], answer: Path) -> str:
    found = measure_roles(protocol("ram-v2"), played, state, addresses)
    write(answer, json.dumps([asdict(each) for each in found]))
    return ""


def train_readout(rom_id: str, seed: int, n_frames: int, folder: str) -> Report:
    """Train the readout of one game; writes weights and card."""
    return guarded(lambda: _train_readout(game(rom_id), seed, n_frames, Path(folder)))


def _train_readout(played: Game, seed: int, n_frames: int, folder: Path) -> str:
    module, card = readout_training.train_readout(played, lambda: Emulator(played), seed=seed, n_frames=n_frames)
    try:
        save_readout(module, card, folder)
    except OSError as error:
        raise NoRoom(error.strerror) from error
    return ""


@lru_cache(maxsize=4)
def _meter(question_path: Path, output: Output) -> CurveMeter:
    question = _question(question_path)
    return CurveMeter(world_of(question), output, question.causes)


@lru_cache(maxsize=4)
def _question(path: Path) -> Question:
    return Question.from_bytes(path.read_bytes(), str(path))


def _output(question: Question, name: str) -> Output:
    return next(output for output in question.outputs if output.name == name)
