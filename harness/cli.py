"""The command `veritari`. Its commands import what they need when they run: `--help` must not wait for torch."""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from games.errors import BrokenTable, UnknownName, UnsupportedRom, VeritariError
from harness.cli_catalogue import games_app, methods_app, readouts_app
from harness.errors import BadRun, CannotWrite, Interrupted, WrongUsage
from harness.options import (
    FAILED,
    INTERRUPTED,
    WRONG_USAGE,
    Games,
    Json,
    Memory,
    NetworkSpec,
    ProtocolName,
    RunPath,
    Seed,
    Timeout,
    Workers,
)
from methods.spec import BadSpec

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Grades attribution methods against measured truth: the Atari 2600, one intervention at a time.",
)
app.add_typer(methods_app, name="methods")
app.add_typer(games_app, name="games")
app.add_typer(readouts_app, name="readouts")

USAGE_ERRORS = (UnknownName, UnsupportedRom, BrokenTable, BadSpec, WrongUsage, BadRun)
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
    protocol: ProtocolName = "ram-v1",
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

        if resume:
            finished = api.resume(resume, workers=workers, retry_failed=retry_failed, store=store, progress=progress)
        else:
            finished = api.run(
                protocol=protocol,
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
        print_text(views.to_json(finished.leaderboard))
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
    settings = ("protocol", "games", "methods", "subject", "network", "seed", "seeds", "out", "timeout", "memory")
    sources = {name: context.get_parameter_source(name) for name in settings}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        raise WrongUsage(
            f"--resume: expected the settings of its manifest, got --{', --'.join(given)} as well; leave them out"
        )


@app.command()
def show(
    run_path: RunPath,
    *,
    game: Annotated[str, typer.Option(help="The drill-down of one game.")] = "",
    method: Annotated[str, typer.Option(help="The games of one method; with --game, only its claims.")] = "",
    cause: Annotated[str, typer.Option(help="With --game: only this cause, such as 'ram[49]:set'.")] = "",
    state: Annotated[int, typer.Option(min=0, help="With --game: which state.")] = 0,
    image: Annotated[
        Path | None,
        typer.Option(help="PNG file: with --game, where each method looks; with --cost, F against rollouts."),
    ] = None,
    subject: Annotated[str, typer.Option(help="Only this subject, machine or network.")] = "",
    cost: Annotated[bool, typer.Option("--cost", help="F beside rollouts, gradients and seconds per task.")] = False,
    json: Json = False,
) -> None:
    """Show a run: its leaderboard, the games of a method, what methods cost, or one game."""
    from harness import api, views
    from harness.leaderboard import joined
    from harness.terminal import print_table, print_text

    _require_selection_fits(game, cause=cause, image=image, cost=cost)
    shown = api.load_run(run_path)
    selection = views.Selection(game, state, method, cause, subject)
    if cost:
        _show_costs(run_path, subject, image, json=json)
        return
    if game and json:
        print_text(views.to_json(views.game_view(shown, selection)))
    elif game:
        views.print_game(shown, selection)
    elif method:
        table = views.method_view(shown, method, subject)
        print_text(views.to_json(table)) if json else print_table(table, title=f"{method}: per game")
    elif json:
        print_text(views.to_json(joined(board.leaderboard for board in views.boards_of(shown, subject))))
    else:
        views.print_leaderboards(shown, subject)
    if image:
        from harness.picture import draw_game

        _write_image(image, draw_game(shown, selection))
        # With --json, stdout is for JSON alone.
        typer.echo(f"picture: {image}", err=json)


def _show_costs(run_path: Path, subject: str, image: Path | None, *, json: bool) -> None:
    from harness import api, views
    from harness.costs import cost_picture, cost_table
    from harness.leaderboard import joined
    from harness.terminal import print_table, print_text

    shown = api.load_run(run_path)
    tables = [cost_table(shown, board) for board in views.boards_of(shown, subject)]
    if json:
        print_text(views.to_json(joined(tables)))
    else:
        for table in tables:
            print_table(table, title="F against cost, cheapest first", n_key_columns=2)
    if image:
        _write_image(image, cost_picture(tables))
        typer.echo(f"picture: {image}", err=json)


def _require_selection_fits(game: str, *, cause: str, image: Path | None, cost: bool) -> None:
    if cause and not game:
        raise WrongUsage("--cause: expected with --game GAME; add it")
    if image and not (game or cost):
        raise WrongUsage("--image: expected with --game GAME or --cost; add one")
    if cost and game:
        raise WrongUsage("--cost: expected without --game; leave one out")
    if image and image.suffix != ".png":
        raise WrongUsage(f"--image: expected a file that ends in .png, got {image}; rename it")


def _write_image(image: Path, content: bytes) -> None:
    from oracle.store import write_atomically

    try:
        write_atomically(image, content)
    except OSError as error:
        raise CannotWrite(
            f"{image}: expected a file that can be written, got {error.strerror}; choose another --image"
        ) from error


@app.command()
def rescore(run_path: RunPath, *, json: Json = False) -> None:
    """Score stored claims again and write the tables anew."""
    from harness import api, views
    from harness.terminal import print_text

    finished = api.rescore(run_path)
    if json:
        print_text(views.to_json(finished.leaderboard))
    else:
        views.print_leaderboards(finished)


@app.command()
def verify(
    *,
    games: Games = "scored",
    protocol: ProtocolName = "ram-v1",
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
    from harness.pool import Limits
    from harness.terminal import Bar, print_table, print_text
    from harness.verify import verify as verify_games
    from harness.views import to_json
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

    from harness.doctor import examine
    from harness.terminal import print_table, print_text
    from harness.views import to_json
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
