"""The command `veritari compare`: which methods of a run can be told apart, and does their family matter."""

import math
from typing import Annotated

import typer

from harness.errors import WrongUsage
from harness.options import Json, RunPath

REGIMES = ("both", "content", "position")


def compare(
    run_path: RunPath,
    *,
    method: Annotated[str, typer.Option(help="Only the pairs of this method.")] = "",
    subject: Annotated[str, typer.Option(help="Only this subject, machine or network.")] = "",
    regime: Annotated[str, typer.Option(help="F of which regime: both (its mean), content or position.")] = "both",
    json: Json = False,
) -> None:
    """Compare the methods of a run in pairs and by family: mean paired difference of F, interval, p."""
    if regime not in REGIMES:
        raise WrongUsage(f"--regime: expected {', '.join(REGIMES)}, got {regime}; choose one")
    from games.errors import unknown_name
    from harness import api, views
    from harness.as_json import to_json
    from harness.leaderboard import joined
    from harness.terminal import cell, print_table, print_text

    shown = api.load_run(run_path)
    boards = views.boards_of(shown, subject)
    tables = [joined(getattr(board, name) for board in boards) for name in ("comparisons", "families")]
    pairs, families = (table[table["regime"] == regime] for table in tables)
    if method:
        known = [entry.label for entry in shown.manifest.methods]
        if method not in known:
            raise unknown_name("method of this run", method, known)
        pairs = pairs[(pairs["method"] == method) | (pairs["other"] == method)]
    if json:
        print_text(to_json({"pairs": pairs, "families": families}))
        return
    # Three decimals would make every small p a 0.
    texts = {name: [cell(p) if math.isnan(p) else f"{p:.2g}" for p in pairs[name]] for name in ("p", "p_holm")}
    print_table(
        pairs.assign(**texts),
        title=f"F ({regime}): method minus other, over the games of both; p by sign flips, Holm's correction",
    )
    if len(families):
        print_table(families, title=f"F ({regime}): family minus other, the mean of their methods in each game")
