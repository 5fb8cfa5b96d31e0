"""From what the user asks for to a manifest: games, protocol, and methods that have said what they are."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from games.catalog import Game, select_games
from games.errors import unknown_name
from harness import work
from harness.controls import CONTROLS, control_entries
from harness.errors import BadRun, WrongUsage
from harness.manifest import (
    FORMAT_VERSION,
    SUBJECTS,
    Costs,
    GameEntry,
    Manifest,
    MethodEntry,
    NetworkEntry,
    Settings,
    git_state,
    installed_versions,
    machine,
)
from harness.networks import network_exclusion
from harness.pool import Job, Limits, run_job
from methods.method import Subject
from methods.registry import registered
from methods.spec import split_specs
from oracle.emulator import require_supported_ale
from oracle.protocol import AuditProtocol, protocol
from oracle.readout import NAME as READOUT

DEFAULT_METHODS = ("vanilla_gradient", "sampler_gradient", "integrated_gradients", "grad_cam")
LONGEST_LABEL = 200


def plan_run(settings: Settings, limits: Limits) -> Manifest:
    """The manifest of a new run.

    Raises:
        UnknownName: a game, set, protocol or method that nobody knows.
        WrongUsage: a method specification that can't be meant, two methods of one name, or no game to ask about.
    """
    require_supported_ale()
    if settings.network != READOUT and "network" not in settings.subjects:
        raise WrongUsage("--network: expected with subject network, got machine only; add it to --subject")
    chosen = protocol(settings.protocol)
    games = tuple(_game_entry(chosen, game, settings) for game in select_games(settings.games))
    if all(game.exclusions.get(subject) for game in games for subject in settings.subjects):
        reasons = "; ".join(f"{game.rom_id}: {' and '.join(dict.fromkeys(game.exclusions.values()))}" for game in games)
        raise WrongUsage(f"games: expected one that {chosen.name} can ask about, got none ({reasons}); choose others")
    network = describe_network(settings, games, limits)
    described = describe_methods(method_specs(settings.methods), limits)
    methods = (*_contestants(described, settings), *control_entries(chosen))
    commit, dirty = git_state()
    return Manifest(
        format_version=FORMAT_VERSION,
        settings=settings,
        protocol=chosen.parameters(),
        n_states=chosen.n_states,
        score_version=chosen.score_version,
        games=games,
        methods=methods,
        network=network,
        versions=installed_versions(),
        git_commit=commit,
        git_dirty=dirty,
        machine=machine(),
        workers=limits.workers,
        timeout_seconds=limits.timeout_seconds,
        memory_gib=limits.memory_gib,
        costs=Costs(started=datetime.now(UTC).isoformat(timespec="seconds")),
    )


def _game_entry(chosen: AuditProtocol, game: Game, settings: Settings) -> GameEntry:
    by_protocol = chosen.exclusion(game)
    reasons = {"machine": by_protocol, "network": by_protocol or network_exclusion(settings.network, game)}
    exclusions = {subject: reasons[subject] for subject in settings.subjects if reasons[subject]}
    return GameEntry(rom_id=game.rom_id, title=game.title, rom_md5=game.rom_md5, exclusions=exclusions)


def parse_subjects(selection: str) -> tuple[Subject, ...]:
    """The subjects of a comma-separated list, in their own order.

    >>> parse_subjects("network, machine")
    ('machine', 'network')

    Raises:
        UnknownName: no such subject.
        WrongUsage: none at all.
    """
    wanted = [part.strip() for part in selection.split(",") if part.strip()]
    for part in wanted:
        if part not in SUBJECTS:
            raise unknown_name("subject", part, SUBJECTS)
    if not wanted:
        raise WrongUsage(f"--subject: expected {' or '.join(SUBJECTS)}, or both with a comma, got none; name one")
    return tuple(subject for subject in SUBJECTS if subject in wanted)


def describe_network(settings: Settings, games: Sequence[GameEntry], limits: Limits) -> NetworkEntry:
    """The network of a run, built once for the first game that it is asked about, in a process of its own.

    Raises:
        WrongUsage: it can't be built.
    """
    asked = [game.rom_id for game in games if "network" not in game.exclusions]
    if settings.network == READOUT or "network" not in settings.subjects or not asked:
        return NetworkEntry(spec=settings.network)
    with tempfile.TemporaryDirectory(prefix="veritari-") as scratch:
        answer = Path(scratch) / "network.json"
        arguments = (settings.network, asked[0], str(answer))
        report = run_job(Job(work.describe_network, arguments, pid_file=Path(f"{answer}.pid")), limits)
        if report.status != "ok":
            name = "" if settings.network in report.text else f"{settings.network}: "
            raise WrongUsage(f"--network: {name}{report.text}")
        return NetworkEntry.model_validate_json(answer.read_bytes())


def _contestants(described: Sequence[MethodEntry], settings: Settings) -> tuple[MethodEntry, ...]:
    """The methods that explain a subject of the run.

    Raises:
        WrongUsage: none of them does.
    """
    fitting = tuple(entry for entry in described if set(entry.subjects) & set(settings.subjects))
    if described and not fitting:
        labels, subjects = ", ".join(entry.label for entry in described), " or ".join(settings.subjects)
        raise WrongUsage(f"methods: expected one that explains {subjects}, got {labels}; change --subject or --methods")
    return fitting


def method_specs(selection: str) -> list[str]:
    """The specifications that a selection stands for: `default`, `all`, and anything else as it is."""
    groups = {"default": DEFAULT_METHODS, "all": tuple(registered())}
    return [spec for part in split_specs(selection) for spec in groups.get(part, (part,))]


def describe_methods(specs: Sequence[str], limits: Limits) -> tuple[MethodEntry, ...]:
    """What each method says of itself, asked in a process of its own.

    A plugin that is there but broken stays in the run: its tasks fail, and the others go on.
    """
    with tempfile.TemporaryDirectory(prefix="veritari-") as scratch:
        answers = [Path(scratch) / f"entry-{index}.json" for index in range(len(specs))]
        entries = tuple(_describe(spec, answer, limits) for spec, answer in zip(specs, answers, strict=True))
    for label, count in Counter(entry.label for entry in entries).items():
        if count > 1:
            raise WrongUsage(f"methods: expected each once, got {label} {count} times; leave one out")
        if label in CONTROLS:
            raise WrongUsage(f"methods: the name {label!r} is a control's; rename the method")
    return entries


def _describe(spec: str, answer: Path, limits: Limits) -> MethodEntry:
    report = run_job(Job(work.describe, (spec, str(answer)), pid_file=Path(f"{answer}.pid")), limits)
    if report.status == "refused":
        raise WrongUsage(report.text)
    if report.status != "ok":
        return _broken(spec, report.text)
    try:
        entry = MethodEntry.model_validate_json(answer.read_bytes())
    except (OSError, ValidationError) as error:
        return _broken(spec, f"{spec}: expected a description, got {type(error).__name__}")
    if entry.spec != spec or len(entry.label) > LONGEST_LABEL:
        return _broken(
            spec, f"{spec}: expected a description of itself with a label of at most {LONGEST_LABEL} characters"
        )
    return entry


def _broken(spec: str, reason: str) -> MethodEntry:
    return MethodEntry(
        spec=spec,
        label=spec[:LONGEST_LABEL],
        title=spec[:LONGEST_LABEL],
        family="unknown",
        domain="unknown",
        access="unknown",
        source="",
        broken=reason,
    )


def require_same_plugins(manifest: Manifest, limits: Limits) -> None:
    """Refuse to continue a run whose methods or network have changed since.

    Raises:
        BadRun: naming which.
    """
    stored = [entry for entry in manifest.methods if entry.label not in CONTROLS and not entry.broken]
    if manifest.network != describe_network(manifest.settings, manifest.games, limits):
        raise BadRun(
            f"network {manifest.network.spec}: expected it as it was when the run started, it has changed; "
            "start a new run"
        )
    for before, now in zip(stored, describe_methods([entry.spec for entry in stored], limits), strict=True):
        if before != now:
            raise BadRun(
                f"method {before.label}: expected it as it was when the run started, it has changed; start a new run"
            )


def describe_broken_again(methods: Sequence[MethodEntry], limits: Limits) -> tuple[MethodEntry, ...]:
    """The methods of a run, those asked anew whose plugin was broken: it may have been mended."""
    return tuple(describe_methods([entry.spec], limits)[0] if entry.broken else entry for entry in methods)
