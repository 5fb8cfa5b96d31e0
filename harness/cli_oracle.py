"""The command `veritari oracle`: measure responses in bulk."""

import signal
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from harness.errors import WrongUsage
from harness.options import (
    DEFAULT_PROTOCOL,
    FAILED,
    Games,
    Json,
    Memory,
    Overrides,
    ProtocolName,
    States,
    Timeout,
    Workers,
)

SETTINGS = (*("protocol", "states", "overrides", "games", "causes", "values", "addresses", "out", "timeout", "memory"),)


def oracle(
    context: typer.Context,
    *,
    protocol: ProtocolName = DEFAULT_PROTOCOL,
    states: States = None,
    overrides: Overrides = None,
    games: Games = "core",
    causes: Annotated[str, typer.Option(help="What is intervened on: ram.")] = "ram",
    values: Annotated[str, typer.Option(help="What each byte is set to: all, its 255 other values.")] = "all",
    addresses: Annotated[str, typer.Option(help="RAM bytes, such as 49-56,4; all 128 if not given.")] = "0-127",
    workers: Workers = None,
    out: Annotated[
        Path | None, typer.Option(help="A new directory; results/surfaces/<time>-<protocol> if not given.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue in this directory, with its own settings.")] = None,
    timeout: Timeout = 600.0,
    memory: Memory = 4.0,
    store: Annotated[Path | None, typer.Option(help="Where measured effects are kept between runs.")] = None,
    json: Json = False,
) -> None:
    """Measure response surfaces: every output after each of the 255 other values of every RAM byte."""
    _require_settings_fit(context, resume=resume, causes=causes, values=values)
    what = f"resuming {resume}" if resume else f"protocol {protocol}, games {games}, bytes {addresses}"
    typer.echo(f"veritari oracle: {what}", err=True)
    from datetime import UTC, datetime
    from os import cpu_count

    from harness.terminal import Bar, print_table, print_text

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Bar() as progress:
        progress.wait("starting")
        from harness.as_json import to_json
        from harness.pool import Limits
        from harness.protocols import chosen_protocol
        from harness.surface_files import surfaces_table
        from harness.surface_plan import parse_addresses, plan_surfaces
        from harness.surfaces import begin_surfaces, resume_surfaces
        from oracle.store import default_store

        kept = store or default_store()
        if resume:
            path = resume
            manifest = resume_surfaces(path, workers, kept, progress)
        else:
            limits = Limits(workers or cpu_count() or 1, timeout, memory)
            chosen = chosen_protocol(protocol, states=states, overrides=overrides or ())
            path = out or Path("results/surfaces") / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{chosen}"
            manifest = plan_surfaces(chosen, games, parse_addresses(addresses), limits)
            manifest = begin_surfaces(path, manifest, kept, progress)
    table = surfaces_table(manifest)
    if json:
        print_text(to_json(table))
    else:
        print_table(table, title=f"response surfaces, {manifest.protocol}", n_key_columns=2)
        print_text(f"surfaces: {path}   read one: numpy.load('{path}/GAME-STATE.npz')['effect:OUTPUT']")
    n_failed = int(table["status"].isin(["failed", "timeout"]).sum())
    if n_failed:
        typer.echo(
            f"{n_failed} failed; they are tried again with: veritari oracle --resume {quote(str(path))}", err=True
        )
        raise typer.Exit(FAILED)


def _require_settings_fit(context: typer.Context, *, resume: Path | None, causes: str, values: str) -> None:
    if causes != "ram":
        raise WrongUsage(f"--causes: expected ram, got {causes}; surfaces are measured of RAM bytes only")
    if values != "all":
        raise WrongUsage(f"--values: expected all, got {values}; a surface has all values")
    sources = {name: context.get_parameter_source(name) for name in SETTINGS if resume}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        options = ", ".join("--set" if name == "overrides" else f"--{name}" for name in given)
        raise WrongUsage(f"--resume: expected the settings of its manifest, got {options} as well; leave them out")
