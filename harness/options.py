"""Options and exit codes that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

# What a process can address.
MOST_GIB = 2**17
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130

# Said here again, since the oracle takes long to import.
DEFAULT_PROTOCOL = "ram-v2"
# What a method is checked on: the shapes of ram-v2, with a single do-value per byte, so that authors need not wait.
CHECK_PROTOCOL = f"{DEFAULT_PROTOCOL}(n_donors=1,n_orders=1,n_values=1)"

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Games = Annotated[str, typer.Option(help="A set (core, scored, all) or games, separated by commas.")]
ProtocolName = Annotated[
    str, typer.Option("--protocol", help="How states, causes and outputs are chosen: ram-v2, ram-v1, or a TOML file.")
]
States = Annotated[int | None, typer.Option("--states", min=1, help="States per game; 4 under ram-v2.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=NUMBER", help="Another value of a parameter of the protocol; may be repeated."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes; as many as there are cores if not given.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that one unit of work may take.")]
Memory = Annotated[float, typer.Option(min=0.5, max=MOST_GIB, help="GiB of address space that a worker may take.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything that is random.")]
NetworkSpec = Annotated[
    str, typer.Option(help="The network that is explained: readout, or path/file.py:build, package.module:build.")
]
RunPath = Annotated[Path, typer.Argument(help="A run directory.")]
