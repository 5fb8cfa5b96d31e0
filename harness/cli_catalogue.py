"""The commands `veritari methods`, `readouts` and `games`: what there is, and how good it is."""

from pathlib import Path
from typing import Annotated

import typer

from harness.options import (
    CHECK_PROTOCOL,
    DEFAULT_PROTOCOL,
    FAILED,
    Games,
    Json,
    Memory,
    NetworkSpec,
    ProtocolName,
    Seed,
    Timeout,
    Workers,
)

methods_app = typer.Typer(no_args_is_help=True, help="List methods, start a new one, and check one.")
readouts_app = typer.Typer(no_args_is_help=True, help="Train the networks that are explained, and list them.")
games_app = typer.Typer(no_args_is_help=True, help="List games, show one, and verify the names of its bytes.")


@methods_app.command("list")
def methods_list(*, json: Json = False) -> None:
    """The registered methods and the controls."""
    import pandas as pd

    from harness.as_json import to_json
    from harness.controls import control_entries
    from harness.plan import describe_methods, method_specs
    from harness.pool import Limits
    from harness.terminal import print_table, print_text
    from oracle.protocol import protocol

    columns = ["label", "title", "family", "subjects", "access", "domain", "parameters", "source", "broken"]
    entries = (
        *describe_methods(method_specs("all"), Limits(1, 120.0, 4.0)),
        *control_entries(protocol(DEFAULT_PROTOCOL)),
    )
    table = pd.DataFrame([entry.model_dump() for entry in entries])[columns]
    if json:
        print_text(to_json(table))
    else:
        table["parameters"] = [
            ", ".join(f"{key}={value!r}" for key, value in each.items()) for each in table["parameters"]
        ]
        table["domain"] = [
            ", ".join(dict.fromkeys(entry.domain_on(subject) for subject in entry.subjects)) for entry in entries
        ]
        table["subjects"] = [", ".join(each) for each in table["subjects"]]
        print_table(table if table["broken"].any() else table.drop(columns="broken"), title="methods")


@methods_app.command("new")
def methods_new(
    name: Annotated[str, typer.Argument(help="The method's name, in snake case.")],
    *,
    domain: Annotated[
        str, typer.Option(help="What it gives one number for: ram (bytes), cause, or pixels (of a network's input).")
    ] = "ram",
    package: Annotated[bool, typer.Option("--package", help="Write a package that can be installed.")] = False,
    folder: Annotated[Path, typer.Option(help="Where it is written; the working directory if not given.")] = Path(),
) -> None:
    """Write a small method that works, to start from: a file, or a package."""
    typer.echo(f"veritari methods new: {name}", err=True)
    from harness.scaffold import new_method
    from harness.terminal import print_text

    written = new_method(name, domain=domain, folder=folder, package=package)
    for file in written.files:
        print_text(f"wrote {file}")
    print_text("next:")
    for command in written.commands:
        print_text(f"  {command}")


@methods_app.command("check")
def methods_check(
    spec: Annotated[
        str, typer.Argument(help="A registered name, path/file.py:name or package.module:name(parameter=1).")
    ],
    *,
    protocol: ProtocolName = CHECK_PROTOCOL,
    game: Annotated[str, typer.Option(help="The game it is asked about.")] = "pong",
    subject: Annotated[
        str | None,
        typer.Option(help="On what: machine, network, or both with a comma; all that it explains if not given."),
    ] = None,
    network: NetworkSpec = "readout",
    seed: Seed = 0,
    timeout: Timeout = 120.0,
    memory: Memory = 4.0,
    json: Json = False,
) -> None:
    """Check that a method keeps the contract; what to run while writing one."""
    typer.echo(f"veritari methods check: {spec} on {game}", err=True)
    from harness.check import check_method
    from harness.check_views import findings_json, print_findings
    from harness.plan import parse_subjects
    from harness.pool import Limits
    from harness.terminal import print_text
    from harness.trial import Trial

    subjects = None if subject is None else parse_subjects(subject)
    found = check_method(spec, Trial(protocol, game, seed, subjects, network), Limits(1, timeout, memory))
    print_text(findings_json(found)) if json else print_findings(found, title=spec)
    if not all(verdict.kept for verdict in found.verdicts):
        raise typer.Exit(FAILED)


ReadoutFolder = Annotated[Path | None, typer.Option("--folder", help="Where readouts lie; with Veritari if not given.")]


@readouts_app.command("train")
def readouts_train(
    *,
    games: Games = "scored",
    seed: Seed = 0,
    frames: Annotated[int, typer.Option(min=500, help="Frames of random play per game.")] = 6000,
    folder: ReadoutFolder = None,
    workers: Workers = None,
    timeout: Timeout = 600.0,
    memory: Memory = 4.0,
    json: Json = False,
) -> None:
    """Train one small network per game on random play, and say how well it reads each named byte."""
    typer.echo(f"veritari readouts train: games {games}", err=True)
    from os import cpu_count

    from games.catalog import select_games
    from harness.as_json import to_json
    from harness.pool import Limits
    from harness.readouts import readouts_table, train_readouts
    from harness.terminal import Bar, print_error, print_table, print_text
    from oracle.readout import FOLDER

    chosen, target = select_games(games), folder or FOLDER
    limits = Limits(workers or cpu_count() or 1, timeout, memory)
    with Bar() as progress:
        failures = train_readouts(chosen, seed=seed, n_frames=frames, folder=target, limits=limits, progress=progress)
    table = readouts_table([game for game in chosen if game.rom_id not in failures], target)
    print_text(to_json(table)) if json else print_table(table, title=f"readouts in {target}")
    for rom_id, reason in failures.items():
        print_error(f"{rom_id}: {reason}")
    if failures:
        raise typer.Exit(FAILED)


@readouts_app.command("list")
def readouts_list(
    *,
    games: Games = "all",
    folder: ReadoutFolder = None,
    json: Json = False,
) -> None:
    """What the readouts can read; of one game, byte by byte."""
    from games.catalog import select_games
    from harness.as_json import to_json
    from harness.readouts import bytes_table, readouts_table
    from harness.terminal import print_table, print_text
    from oracle.readout import FOLDER

    chosen, source = select_games(games), folder or FOLDER
    table = bytes_table(chosen[0], source) if len(chosen) == 1 else readouts_table(chosen, source)
    print_text(to_json(table)) if json else print_table(table, title=f"readouts in {source}")


@games_app.command("list")
def games_list(*, games: Games = "all", json: Json = False) -> None:
    """The games, and which sets they are in."""
    import pandas as pd

    from games.catalog import game_sets, select_games
    from harness.as_json import to_json
    from harness.terminal import print_table, print_text

    sets = {name: members for name, members in game_sets().items() if name != "all"}
    rows = [
        (
            game.rom_id,
            game.title,
            game.gymnasium_id,
            len(game.named_bytes),
            " ".join(name for name, members in sets.items() if game.rom_id in members),
        )
        for game in select_games(games)
    ]
    table = pd.DataFrame(rows, columns=["game", "title", "gymnasium_id", "named_bytes", "sets"])
    print_text(to_json(table)) if json else print_table(table, title="games")


@games_app.command("show")
def games_show(rom_id: Annotated[str, typer.Argument(help="A game, such as pong.")], *, json: Json = False) -> None:
    """One game: title, ROM checksum and named bytes, with what was measured of each."""
    from games.catalog import game as game_of
    from harness.as_json import to_json
    from harness.roles import named_table
    from harness.terminal import print_table, print_text

    game = game_of(rom_id)
    if json:
        print_text(to_json(game.model_dump() | {"named_bytes": named_table(game)}))
        return
    print_text(f"{game.title} ({game.rom_id}), {game.gymnasium_id}, ROM MD5 {game.rom_md5}")
    if game.named_bytes:
        print_table(named_table(game), title="named bytes")
    else:
        print_text("no named bytes: excluded under ram-v1")


@games_app.command("verify")
def games_verify(
    *,
    games: Games = "scored",
    states: Annotated[int, typer.Option(min=1, help="Live states of ram-v2 per game.")] = 2,
    all_bytes: Annotated[bool, typer.Option("--all-bytes", help="All 128 bytes, of any game, named or not.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write role and evidence into the tables of games.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write all rows to this file, .json or .csv.")] = None,
    workers: Workers = None,
    timeout: Timeout = 600.0,
    memory: Memory = 4.0,
    json: Json = False,
) -> None:
    """Measure what named bytes do, by poking them, and say whether it is what their names say."""
    typer.echo(f"veritari games verify: games {games}, {states} states each", err=True)
    from os import cpu_count

    from games.catalog import select_games
    from harness import roles
    from harness.as_json import to_json
    from harness.pool import Limits
    from harness.terminal import Bar, print_error, print_table, print_text

    roles.require_fitting(all_bytes=all_bytes, write=write, out=out)
    limits = Limits(workers or cpu_count() or 1, timeout, memory)
    with Bar() as progress:
        table, problems = roles.roles_of_games(
            select_games(games), n_states=states, all_bytes=all_bytes, limits=limits, progress=progress
        )
    if out:
        roles.write_table(table, out)
    if write:
        roles.write_all_roles(table[~table["game"].isin(problems)])
    shown = roles.remarkable(table) if all_bytes else table
    if json:
        print_text(to_json(shown))
    else:
        print_table(shown, title="what bytes do", n_key_columns=2)
        print_text(roles.summary(table))
    for rom_id, reason in problems.items():
        print_error(f"{rom_id}: {reason}")
    if problems:
        raise typer.Exit(FAILED)
