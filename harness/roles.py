"""`veritari games verify`: what named bytes do, measured, beside what their names say.

A name says what to expect by its last word. Names are cut into words at everything that is no letter; words of
`FILLERS` at the end are passed over, and `EXPECTED` has the roles that the last word of the rest stands for. So
`enemy_car_x[3]` is expected to move a sprite in x, `score_value` to be the score, and of `player_score_sprite` nothing
is expected.

A measured role that is expected agrees (`yes`), any other does not (`no`), and without an expectation it is `unclear`.
`no` does not refute a name: the byte may be a copy that nothing reads, or what it moves may not have been on the
screen.
"""

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from games.catalog import TABLES, Game, Role, read_table
from games.errors import BrokenTable
from harness import work
from harness.as_json import to_json
from harness.errors import CannotWrite, WrongUsage
from harness.guard import Report
from harness.pool import Job, Limits, run_jobs
from harness.runner import Progress
from oracle.intervention import N_BYTES
from oracle.roles import POSITIONS, ByteRuns, strongest
from oracle.store import write_atomically

ACROSS: frozenset[Role] = frozenset({"x", "xy"})
DOWN: frozenset[Role] = frozenset({"y", "xy"})
SCORE: frozenset[Role] = frozenset({"score"})
LIVES: frozenset[Role] = frozenset({"lives"})
# The last word of a name, and the roles that agree with it.
EXPECTED: dict[str, frozenset[Role]] = {
    **dict.fromkeys(("x", "column"), ACROSS),
    **dict.fromkeys(("y", "row"), DOWN),
    **dict.fromkeys(("xy", "position"), frozenset(POSITIONS)),
    **dict.fromkeys(("score", "scorev"), SCORE),
    **dict.fromkeys(("lives", "life", "lifeu", "nblives"), LIVES),
}
FILLERS = frozenset({"value", "v", "low", "high"})
COLUMNS = ["game", "address", "name", "role", "evidence", "agrees"]
KINDS = (".json", ".csv")
DULL = ("internal", "nothing")
# One row of a table of games, up to its name's source; what was measured before; the rest of the line.
ROW = re.compile(r'(\s*\{ address = (\d+), .*source = "\w+")(?:, role = "\w+", evidence = "[^"]*")?( \}.*)', re.DOTALL)


def expected_roles(name: str) -> frozenset[Role]:
    """The roles that agree with a name; none where it says nothing that could be measured here.

    >>> sorted(expected_roles("enemy_car_x[3]")), sorted(expected_roles("player_direction"))
    (['x', 'xy'], [])
    """
    words = re.findall(r"[a-z]+", name.lower())
    while words and words[-1] in FILLERS:
        words.pop()
    return EXPECTED.get(words[-1], frozenset()) if words else frozenset()


def agrees(name: str, role: Role | None) -> str:
    """Whether a measured role is what a name leads to expect: `yes`, `no`, or `unclear`.

    >>> agrees("ball_x", "x"), agrees("ball_x", "score"), agrees("level", "score")
    ('yes', 'no', 'unclear')
    """
    expected = expected_roles(name)
    if role is None or not expected:
        return "unclear"
    return "yes" if role in expected else "no"


def require_fitting(*, all_bytes: bool, write: bool, out: Path | None) -> None:
    """Found out before anything is measured.

    Raises:
        WrongUsage: options that do not fit together, or a file of an unknown kind.
    """
    if all_bytes and write:
        raise WrongUsage(
            "--write: expected without --all-bytes, as tables hold named bytes; use --out FILE.json or .csv"
        )
    if out and out.suffix not in KINDS:
        raise WrongUsage(f"--out: expected a file that ends in {' or '.join(KINDS)}, got {out}")


def roles_of_games(
    games: Sequence[Game], *, n_states: int, all_bytes: bool, limits: Limits, progress: Progress
) -> tuple[pd.DataFrame, dict[str, str]]:
    """One row per named byte, or per byte of RAM; and of games that could not be measured at all states the reasons.

    Raises:
        WrongUsage: no game has a name to verify.
    """
    asked = [game for game in games if all_bytes or game.named_bytes]
    if not asked:
        raise WrongUsage("games: expected one with named bytes, got none; add --all-bytes to measure those without")
    problems: dict[str, str] = {}
    rows = []
    with tempfile.TemporaryDirectory(prefix="veritari-") as scratch:
        jobs = {
            _job(game, state, all_bytes=all_bytes, folder=Path(scratch)): game
            for game in asked
            for state in range(n_states)
        }
        failed: dict[str, dict[int, str]] = {}
        measured: dict[str, list[ByteRuns]] = {game.rom_id: [] for game in asked}
        progress.start("verifying", len(jobs))

        def done(job: Job, report: Report) -> None:
            rom_id, state, _, answer = job.arguments
            if report.status == "ok":
                runs = json.loads(Path(answer).read_text(encoding="utf-8"))
                measured[rom_id] += [ByteRuns(**each) for each in runs]
            else:
                failed.setdefault(rom_id, {})[state] = report.text
            progress.advance()

        run_jobs(list(jobs), limits, done)
    problems |= {
        rom_id: "; ".join(f"state {state}: {reason}" for state, reason in sorted(reasons.items()))
        for rom_id, reasons in failed.items()
    }
    for game in asked:
        rows += _rows(game, measured[game.rom_id], _addresses(game, all_bytes=all_bytes))
    return pd.DataFrame(rows, columns=COLUMNS), problems


def _job(game: Game, state: int, *, all_bytes: bool, folder: Path) -> Job:
    answer = folder / f"{game.rom_id}-{state}.json"
    return Job(work.roles, (game.rom_id, state, _addresses(game, all_bytes=all_bytes), str(answer)))


def _addresses(game: Game, *, all_bytes: bool) -> tuple[int, ...]:
    return tuple(range(N_BYTES)) if all_bytes else tuple(byte.address for byte in game.named_bytes)


def _rows(game: Game, measured: Sequence[ByteRuns], addresses: Sequence[int]) -> list[dict[str, object]]:
    names = {byte.address: byte.name for byte in game.named_bytes}
    # States end in any order, and the first of equals is taken.
    measured = sorted(measured, key=lambda runs: runs.state)
    rows = []
    for address in addresses:
        of_states = [runs for runs in measured if runs.address == address]
        if of_states:
            rows.append(_row(game, address, names.get(address, ""), *strongest(of_states)))
    return rows


def named_table(game: Game) -> pd.DataFrame:
    """One row per named byte of a game, as its table has it."""
    rows = [_row(game, byte.address, byte.name, byte.role, byte.evidence) for byte in game.named_bytes]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table.insert(2, "source", [byte.source for byte in game.named_bytes])
    return table.drop(columns="game")


def _row(game: Game, address: int, name: str, role: Role | None, evidence: str | None) -> dict[str, object]:
    found = (game.rom_id, address, name, role or "", evidence or "", agrees(name, role) if name else "")
    return dict(zip(COLUMNS, found, strict=True))


def remarkable(table: pd.DataFrame) -> pd.DataFrame:
    """The bytes that do something which can be seen."""
    return table[~table["role"].isin(DULL)]


def summary(table: pd.DataFrame) -> str:
    """How many names agree, in one line."""
    named = table[table["name"] != ""]
    counts = ", ".join(f"{int((named['agrees'] == word).sum())} {word}" for word in ("yes", "no", "unclear"))
    return f"{table['game'].nunique()} games, {len(table)} bytes measured; {len(named)} names agree: {counts}"


def write_roles(path: Path, rows: Mapping[int, tuple[str, str]]) -> None:
    """Write role and evidence, by address, into the table of a game; every other byte of the file stays.

    Raises:
        BrokenTable: the table can't be read, or its rows are not one to a line in the order of the committed ones.
        CannotWrite: the file can't be written.
    """
    game = read_table(path)
    lines = path.read_bytes().decode().splitlines(keepends=True)
    written = "".join(_with_role(line, rows) for line in lines)
    expected = [
        byte.model_copy(update=dict(zip(("role", "evidence"), rows[byte.address], strict=True)))
        if byte.address in rows
        else byte
        for byte in game.named_bytes
    ]
    with tempfile.TemporaryDirectory(prefix="veritari-") as scratch:
        trial = Path(scratch) / path.name
        trial.write_bytes(written.encode())
        if read_table(trial) != game.model_copy(update={"named_bytes": tuple(expected)}):
            raise BrokenTable(
                f"{path}: expected one row per line, address first and source last but for role and evidence, "
                "got another form; nothing was written, so lay the rows out like those of pong.toml"
            )
    try:
        write_atomically(path, written.encode())
    except OSError as error:
        raise CannotWrite(f"{path}: expected a table that can be written, got {error.strerror}") from error


def _with_role(line: str, rows: Mapping[int, tuple[str, str]]) -> str:
    row = ROW.fullmatch(line)
    if row is None or int(row[2]) not in rows:
        return line
    role, evidence = rows[int(row[2])]
    return f'{row[1]}, role = "{role}", evidence = "{evidence}"{row[3]}'


def write_all_roles(table: pd.DataFrame) -> None:
    """Write what was measured into the tables of all its games."""
    for rom_id in table["game"].unique().tolist():
        rows = table[table["game"] == rom_id]
        found = zip(rows["role"].tolist(), rows["evidence"].tolist(), strict=True)
        write_roles(TABLES / f"{rom_id}.toml", dict(zip(rows["address"].tolist(), found, strict=True)))


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write all rows as JSON or CSV, by the file's name.

    Raises:
        CannotWrite: the file can't be written.
    """
    text = to_json(table) + "\n" if path.suffix == ".json" else table.to_csv(index=False)
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise CannotWrite(f"{path}: expected a file that can be written, got {error.strerror}") from error
