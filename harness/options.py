"""Options and exit codes that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

# What a process can address.
MOST_GIB = 2**17
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Games = Annotated[str, typer.Option(help="A set (core, scored, all) or games, separated by commas.")]
ProtocolName = Annotated[str, typer.Option("--protocol", help="How states, causes and outputs are chosen.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes; as many as there are cores if not given.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that one unit of work may take.")]
Memory = Annotated[float, typer.Option(min=0.5, max=MOST_GIB, help="GiB of address space that a worker may take.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything that is random.")]
NetworkSpec = Annotated[
    str, typer.Option(help="The network that is explained: readout, or path/file.py:build, package.module:build.")
]
RunPath = Annotated[Path, typer.Argument(help="A run directory.")]
