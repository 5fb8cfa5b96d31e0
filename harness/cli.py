"""The command `veritari`. Its commands import what they need when they run: `--help` must not wait for torch."""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from games.errors import BrokenTable, UnknownName, UnsupportedRom, VeritariError
from harness.cli_catalogue import games_app, methods_app, readouts_app
from harness.cli_compare import compare
from harness.cli_oracle import oracle
from harness.cli_show import show
from harness.errors import BadRun, Interrupted, WrongUsage
from harness.options import (
    DEFAULT_PROTOCOL,
    FAILED,
    INTERRUPTED,
    WRONG_USAGE,
    Games,
    Json,
    Memory,
    NetworkSpec,
    Overrides,
    ProtocolName,
    RunPath,
    Seed,
    States,
    Timeout,
    Workers,
)
from methods.spec import BadSpec
from oracle.errors import BadProtocol

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Grades attribution methods against measured truth: the Atari 2600, one intervention at a time.",
)
app.add_typer(methods_app, name="methods")
app.add_typer(games_app, name="games")
app.add_typer(readouts_app, name="readouts")
app.command()(show)
app.command()(oracle)

app.command()(compare)

USAGE_ERRORS = (BadProtocol, UnknownName, UnsupportedRom, BrokenTable, BadSpec, WrongUsage, BadRun)
# Typer carries its own copy of click and exports its exceptions only in part.
CommandLineError: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


def _print_version(wanted: bool) -> bool:  # noqa: FBT001  # how Typer calls it
    if wanted:
        from importlib.metadata import version

        typer.echo(f"veritari {version('veritari')}")
        raise typer.Exit
    return wanted


@app.callback()
def options(
    *,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Options of all commands."""
    del debug, version  # read by `main` and by the callback, before anything can go wrong


@app.command()
def run(
    context: typer.Context,
    *,
    protocol: ProtocolName = DEFAULT_PROTOCOL,
    states: States = None,
    overrides: Overrides = None,
    games: Games = "scored",
    methods: Annotated[
        str,
        typer.Option(
            help="default, all, or specifications: name, path/file.py:name, package.module:name(parameter=1)."
        ),
    ] = "default",
    subject: Annotated[
        str, typer.Option(help="What is explained: machine, network, or both with a comma.")
    ] = "machine,network",
    network: NetworkSpec = "readout",
    seed: Seed = 0,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Seeds that methods which draw are asked with.")] = 1,
    workers: Workers = None,
    out: Annotated[
        Path | None, typer.Option(help="A new directory for the run; results/runs/<time>-<protocol> if not given.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue this run, with its own settings.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="With --resume: try failures again.")] = False,
    timeout: Timeout = 120.0,
    memory: Memory = 4.0,
    store: Annotated[Path | None, typer.Option(help="Where measured effects are kept between runs.")] = None,
    json: Json = False,
) -> None:
    """Grade methods on games and print the leaderboard."""
    _require_settings_fit(context, resume=resume, retry_failed=retry_failed)
    # Before the heavy imports: who waits sees at once that something happens.
    what = f"resuming {resume}" if resume else f"protocol {protocol}, games {games}, methods {methods}"
    typer.echo(f"veritari run: {what}", err=True)
    from harness.terminal import Bar, print_text

    with Bar() as progress:
        progress.wait("starting")
        from harness import api, views
        from harness.as_json import to_json
        from harness.protocols import chosen_protocol

        if resume:
            finished = api.resume(resume, workers=workers, retry_failed=retry_failed, store=store, progress=progress)
        else:
            finished = api.run(
                protocol=chosen_protocol(protocol, states=states, overrides=overrides or ()),
                games=games,
                methods=methods,
                subject=subject,
                network=network,
                seed=seed,
                seeds=seeds,
                workers=workers,
                out=out,
                timeout_seconds=timeout,
                memory_gib=memory,
                store=store,
                progress=progress,
            )
    if json:
        print_text(to_json(finished.leaderboard))
    else:
        views.print_leaderboards(finished)
        print_text(f"run: {finished.path}   drill down: veritari show {finished.path} --game GAME")
    if len(finished.failures):
        raise typer.Exit(FAILED)


def _require_settings_fit(context: typer.Context, *, resume: Path | None, retry_failed: bool) -> None:
    if retry_failed and not resume:
        raise WrongUsage("--retry-failed: expected with --resume RUN; add it")
    if not resume:
        return
    settings = (
        "protocol",
        "states",
        "overrides",
        "games",
        "methods",
        "subject",
        "network",
        "seed",
        "seeds",
        "out",
        "timeout",
        "memory",
    )
    sources = {name: context.get_parameter_source(name) for name in settings}
    given = [
        "set" if name == "overrides" else name
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    ]
    if given:
        raise WrongUsage(
            f"--resume: expected the settings of its manifest, got --{', --'.join(given)} as well; leave them out"
        )


@app.command()
def rescore(run_path: RunPath, *, json: Json = False) -> None:
    """Score stored claims again and write the tables anew."""
    from harness import api, views
    from harness.as_json import to_json
    from harness.terminal import print_text

    finished = api.rescore(run_path)
    if json:
        print_text(to_json(finished.leaderboard))
    else:
        views.print_leaderboards(finished)


@app.command()
def verify(
    *,
    games: Games = "scored",
    protocol: ProtocolName = DEFAULT_PROTOCOL,
    interventions: Annotated[
        int, typer.Option(min=1, help="Interventions per game; half of them write 2 to 128 bytes.")
    ] = 50,
    seed: Seed = 0,
    workers: Workers = None,
    timeout: Timeout = 600.0,
    json: Json = False,
) -> None:
    """Check that rollouts are exact: random interventions against fresh interfaces in another process."""
    typer.echo(f"veritari verify: games {games}, {interventions} interventions each", err=True)
    from os import cpu_count

    from games.catalog import select_games
    from harness.as_json import to_json
    from harness.pool import Limits
    from harness.terminal import Bar, print_table, print_text
    from harness.verify import verify as verify_games
    from oracle.protocol import protocol as protocol_of

    limits = Limits(workers or cpu_count() or 1, timeout, 4.0)
    with Bar() as progress:
        table = verify_games(
            select_games(games),
            protocol=protocol_of(protocol).name,
            n_interventions=interventions,
            seed=seed,
            limits=limits,
            progress=progress,
        )
    unchecked = int((table["interventions"] == 0).sum())
    ram, screen = int(table["ram_mismatches"].sum()), int(table["screen_mismatches"].sum())
    if json:
        print_text(to_json(table))
    else:
        remarkable = table[table["note"] != ""]
        if len(remarkable):
            print_table(remarkable, title="games with a mismatch or a problem")
        print_text(
            f"{len(table)} games, {int(table['interventions'].sum())} interventions: "
            f"{ram} RAM mismatches, {screen} screen mismatches, {unchecked} games not checked"
        )
    if ram or unchecked:
        raise typer.Exit(FAILED)


@app.command()
def doctor(*, json: Json = False) -> None:
    """Examine this installation: emulator, ROMs, store, worker processes."""
    import pandas as pd

    from harness.as_json import to_json
    from harness.doctor import examine
    from harness.terminal import print_table, print_text
    from oracle.store import default_store

    findings = pd.DataFrame([vars(finding) for finding in examine(default_store())])
    print_text(to_json(findings)) if json else print_table(findings, title="veritari doctor")
    if not findings["fine"].all():
        raise typer.Exit(FAILED)


def main() -> None:
    """Run the command; every error of the user's is one line."""
    from harness.terminal import print_error

    # As Ctrl-C, for every command: its workers are stopped, and its temporary folders removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    try:
        code = app(arguments, standalone_mode=False) or 0
        # Typer makes an exit code of Ctrl-C, without a word.
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except CommandLineError as error:
        # Without a command, help was printed already and there is nothing to add.
        if text := error.format_message():  # type: ignore[attr-defined]
            print_error(f"{text.rstrip('.')}; see: veritari --help")
        sys.exit(WRONG_USAGE)
    except (KeyboardInterrupt, typer.Abort):
        print_error("interrupted")
        sys.exit(INTERRUPTED)
    except VeritariError as error:
        if debug:
            raise
        print_error(str(error))
        sys.exit(_exit_code(error))


def _exit_code(error: VeritariError) -> int:
    if isinstance(error, Interrupted):
        return INTERRUPTED
    return WRONG_USAGE if isinstance(error, USAGE_ERRORS) else FAILED
