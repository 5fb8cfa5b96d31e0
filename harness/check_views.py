"""What a check of a method found, for people and as JSON."""

from collections.abc import Sequence

import pandas as pd

from harness.as_json import to_json
from harness.findings import CurvePoint, Findings, ProgramPoint
from harness.terminal import bar, print_table, print_text

RANDOMISATION = (
    "cascading weight randomisation (Adebayo et al. 2018): rank correlation with the map of the trained network"
)


PROGRAMS = (
    "the same state under other programs (scrambled code): rank correlation of effects and claims with the true ones"
)


PROGRAMS_LEGEND = (
    "program: the seed that its code was scrambled with; effects: how the sizes of the true effects correlate; "
    "absolute, signed: how the claims do, by their sizes and with signs"
)


def print_findings(found: Findings, *, title: str) -> None:
    """What a check of a method found: the verdicts, then how its claims change with other programs and weights."""
    print_table(pd.DataFrame([vars(verdict) for verdict in found.verdicts]), title=title, folded="detail")
    if found.programs:
        _print_points(found.programs, title=PROGRAMS)
        print_text(PROGRAMS_LEGEND)
    if found.randomisation:
        _print_points(found.randomisation, title=RANDOMISATION)


def _print_points(points: Sequence[CurvePoint] | Sequence[ProgramPoint], *, title: str) -> None:
    table = pd.DataFrame([vars(point) for point in points])
    table["bar"] = [bar(max(share, 0.0)) for share in table["absolute"]]
    print_table(table, title=title, n_key_columns=2)


def findings_json(found: Findings) -> str:
    """The same as JSON; without a machine `programs` is empty, without a network `randomisation`."""
    return to_json({part: [*map(vars, rows)] for part, rows in vars(found).items()})
