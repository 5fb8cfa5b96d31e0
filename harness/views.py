"""What `veritari show` shows: leaderboard, a method's games, and the drill-down of one game."""

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from games.catalog import game as game_of
from games.errors import unknown_name
from harness.api import Run
from harness.board_texts import ONLY_FOR, ONLY_IN, board_headings, plain_number, printed
from harness.controls import CONTROLS
from harness.errors import WrongUsage
from harness.findings import CurvePoint, Findings, ProgramPoint
from harness.leaderboard import Board, joined
from harness.manifest import SUBJECTS
from harness.terminal import bar, print_table, print_text
from oracle.network import N_FRAMES
from oracle.protocol import is_custom

SCORE_COLUMNS = [
    "method",
    "seed",
    "F",
    "F_partial",
    "spearman",
    "S",
    "M",
    "precision_at_3",
    "deletion_auc",
    "insertion_auc",
    "F_cross",
    "F_log",
    "S_log",
    "deletion_diff",
    "insertion_diff",
    "status",
    "reason",
]
RANDOMISATION = (
    "cascading weight randomisation (Adebayo et al. 2018): rank correlation with the map of the trained network"
)
PROGRAMS = (
    "the same state under other programs (scrambled code): rank correlation of effects and claims with the true ones"
)
# A longer table of causes is shortened to those that matter.
MOST_ROWS = 60
PROGRAMS_LEGEND = (
    "program: the seed that its code was scrambled with; effects: how the sizes of the true effects correlate; "
    "absolute, signed: how the claims do, by their sizes and with signs"
)
GAME_COLUMNS = ["subject", "game", "F", "F_content", "F_position", "F_partial", "S", "M", "note"]


def protocol_title(name: str) -> str:
    """A protocol as it heads a table: one with other parameters than its own is called custom.

    >>> protocol_title("ram-v2(horizon=30)")
    'custom ram-v2(horizon=30)'
    """
    return f"custom {name}" if is_custom(name) else name


def boards_of(run: Run, subject: str) -> list[Board]:
    """The boards of one subject, or of all where it is empty.

    Raises:
        UnknownName: the run is not about this subject.
    """
    if subject and subject not in run.manifest.settings.subjects:
        raise unknown_name("subject of this run", subject, run.manifest.settings.subjects)
    return [board for board in run.boards.values() if subject in ("", board.subject)]


def leaderboard_view(run: Run, board: Board) -> pd.DataFrame:
    """A leaderboard as printed, with the seconds per task that equal runs do not share."""
    rows = [row for _, row in board.leaderboard.iterrows()]
    view = pd.DataFrame(
        {heading: [printed(row, name) for row in rows] for name, heading in board_headings(board).items()}
    )
    view["seconds/task"] = [
        f"{seconds:.3f}" if not math.isnan(seconds) else "—"
        for seconds in run.seconds_per_task(board.subject, board.leaderboard["method"])
    ]
    return view


def print_leaderboards(run: Run, subject: str = "") -> None:
    """The leaderboard of each subject, or of one; what is excluded, what failed, what is still to do.

    Raises:
        UnknownName: the run is not about this subject.
    """
    settings = run.manifest.settings
    for board in boards_of(run, subject):
        about = " ".join(part for part in (board.subject, run.manifest.network_of(board.subject)) if part)
        print_table(
            leaderboard_view(run, board),
            title=f"{protocol_title(settings.protocol)}, {about}, games {settings.games}, seed {settings.seed}",
            n_key_columns=2,
        )
        if board.subject == "network":
            print_text(_network_legend(board))
        print_text(_reach_in_words(board))
        for line in _undecided(board):
            print_text(line)
        left_out = {
            "excluded": board.excluded,
            "not applicable": board.not_applicable,
            "degenerate": board.degenerate,
            "declined": _declined(run, board.subject),
        }
        for what, reasons in left_out.items():
            for name, reason in reasons.items():
                print_text(f"{what}: {board.subject} {name}: {reason}")
    failures = run.failures
    if len(failures):
        print_text(f"{len(failures)} failures, see {run.path / 'failures.csv'}; the first: {_first_failure(failures)}")
    if not run.is_finished:
        print_text(f"unfinished: continue with: veritari run --resume {shlex.quote(str(run.path))}")


def _reach_in_words(board: Board) -> str:
    reach = board.reach
    return (
        f"{reach['games_with_a_state']} of {reach['games']} games have a valid state ({reach['valid_states']} of "
        f"{reach['states']} states), {reach['games_with_content']} a content output, {reach['games_with_position']} a "
        f"position output"
    )


def _undecided(board: Board) -> list[str]:
    """Whom the methods can't be told from; nothing where there are too few games to tell anybody apart."""
    if board.comparisons["p"].isna().all():
        return []
    rows = board.leaderboard[board.leaderboard["rank"].notna()]
    return [
        f"not told apart: {row['method']} from {row['not_told_from']}"
        for _, row in rows.iterrows()
        if row["not_told_from"]
    ]


def _network_legend(board: Board) -> str:
    """What a newcomer would else read out of F."""
    uniform = board.leaderboard.set_index("method")["F"].to_dict()["uniform"]
    return (
        f"a map of ones (uniform) has F = {uniform:.3f} here: what moves many pixels matters more; "
        "F partial is what a map knows beyond that"
    )


def _declined(run: Run, subject: str) -> dict[str, str]:
    """Reasons by method of tasks that it did not take on, each reason once with its number of tasks."""
    records = run.records
    declined = records[
        (records["subject"] == subject) & (records["status"] == "not_applicable") & (records["output"] != "")
    ]
    counts = declined.groupby(["method", "reason"], sort=False, as_index=False).size()
    return {f"{row['method']!s}, {row['size']} tasks": str(row["reason"]) for _, row in counts.iterrows()}


def _first_failure(failures: pd.DataFrame) -> str:
    first = failures.iloc[0]
    return (
        " ".join(
            str(part) for part in (first["method"], first["subject"], first["game"], first["output"], first["status"])
        )
        + f": {first['reason']}"
    )


def method_view(run: Run, method: str, subject: str = "") -> pd.DataFrame:
    """One row per subject and game of a method.

    Raises:
        UnknownName: the run has no such method or subject.
    """
    per_game = joined(board.per_game for board in boards_of(run, subject))
    known = [entry.label for entry in run.manifest.methods]
    if method not in known:
        raise unknown_name("method of this run", method, known)
    return per_game[per_game["method"] == method][GAME_COLUMNS].reset_index(drop=True)


@dataclass(frozen=True)
class Selection:
    """Which part of a run to look at; an empty method, cause or subject stands for all."""

    game: str
    state: int = 0
    method: str = ""
    cause: str = ""
    subject: str = ""


@dataclass(frozen=True)
class OutputView:
    """One output of one game-state: the question, every claim beside the effects, and the scores."""

    subject: str
    game: str
    state: int
    frame: int
    horizon_frames: int
    output: str
    regime: str
    reference_value: float
    causes: pd.DataFrame
    scores: pd.DataFrame


def game_view(run: Run, selection: Selection) -> list[OutputView]:
    """The drill-down of one game-state: its outputs, each with its causes, largest effect first.

    Raises:
        UnknownName: the run has no such game, method or cause.
        WrongUsage: nor such a state.
    """
    known = [entry.rom_id for entry in run.manifest.games]
    if selection.game not in known:
        raise unknown_name("game of this run", selection.game, known)
    if not 0 <= selection.state < run.manifest.n_states:
        raise WrongUsage(f"--state: expected 0..{run.manifest.n_states - 1}, got {selection.state}; correct it")
    # Of several seeds the first: pictures and columns have room for one answer.
    is_first = run.claims["seed"] == run.manifest.settings.seed
    claims = run.claims[is_first & (run.claims["game"] == selection.game) & (run.claims["state"] == selection.state)]
    if selection.method:
        # Only what the method explains is about it.
        explained = [each for each in SUBJECTS if selection.method in _labels(run, each)]
        claims = claims[claims["subject"].isin(explained)]
    if selection.subject:
        boards_of(run, selection.subject)
        claims = claims[claims["subject"] == selection.subject]
    methods = [entry.label for entry in run.manifest.methods]
    if selection.method and selection.method not in methods:
        raise unknown_name("method of this run", selection.method, methods)
    if selection.cause and len(claims) and selection.cause not in set(claims["cause"]):
        raise unknown_name(f"cause of {selection.game} in this run", selection.cause, claims["cause"].unique())
    return [
        _output_view(run, selection, (str(subject), str(output)), rows)
        for (subject, output), rows in claims.groupby(["subject", "output"], sort=False)
    ]


def _labels(run: Run, subject: str) -> list[str]:
    return [entry.label for entry in run.manifest.methods_on(subject)]


def _output_view(run: Run, selection: Selection, task: tuple[str, str], claims: pd.DataFrame) -> OutputView:
    subject, output = task
    answer_key = run.directory.answer_key(subject, selection.game, selection.state)
    question = answer_key.question
    index = [each.name for each in question.outputs].index(output)
    causes = _causes_table(claims, [entry.label for entry in run.manifest.methods], selection)
    is_first = run.records["seed"] == run.manifest.settings.seed
    at_state = is_first & (run.records["game"] == selection.game) & (run.records["state"] == selection.state)
    scores = run.records[at_state & (run.records["output"] == output) & (run.records["subject"] == subject)]
    if selection.method:
        scores = scores[scores["method"] == selection.method]
    return OutputView(
        subject=subject,
        game=question.game,
        state=question.state,
        frame=question.trace.frame,
        horizon_frames=N_FRAMES if subject == "network" else len(question.trace.tail),
        output=output,
        regime=question.outputs[index].regime,
        reference_value=float(answer_key.reference_value[index]),
        causes=causes[causes["cause"] == selection.cause] if selection.cause else causes,
        scores=scores[_score_columns(subject, run.manifest.score_version)],
    )


def _score_columns(subject: str, version: str) -> list[str]:
    return [
        name
        for name in SCORE_COLUMNS
        if ONLY_FOR.get(name, subject) == subject and ONLY_IN.get(name, version) == version
    ]


def _causes_table(claims: pd.DataFrame, methods: list[str], selection: Selection) -> pd.DataFrame:
    """One row per cause: name, signed effect, flags, and what each method claims; largest effect first."""
    table = claims.pivot(index="cause", columns="method", values="claim")
    # The oracle's claim is the effect, which stands beside it anyway.
    # A method that was not asked about this subject, or not yet, has no column.
    wanted = [selection.method] if selection.method else [label for label in methods if label != "oracle"]
    shown = [label for label in wanted if label in table]
    effects = claims.drop_duplicates("cause").set_index("cause")[["effect", "flags"]]
    joined = effects.join(table[shown])
    joined.insert(0, "name", [_byte_name(selection.game, str(label)) for label in joined.index])
    order = joined["effect"].abs().sort_values(ascending=False, kind="stable").index
    return joined.loc[order].reset_index()


def _byte_name(game: str, label: str) -> str:
    named = {f"ram[{byte.address}]": byte.name for byte in game_of(game).named_bytes}
    return named.get(label.partition(":")[0], "")


def print_game(run: Run, selection: Selection) -> None:
    """The drill-down of one game in the terminal."""
    views = game_view(run, selection)
    if not views:
        reasons = [board.excluded[selection.game] for board in run.boards.values() if selection.game in board.excluded]
        reason = "; ".join(dict.fromkeys(reasons)) or "no task of it is finished"
        print_text(f"{selection.game}: nothing to show: {reason}")
    for view in views:
        causes = _worth_a_row(view.causes)
        largest = causes["effect"].abs().max()
        causes.insert(3, "", [bar(abs(effect) / largest) if largest else "" for effect in causes["effect"]])
        at = f"state {view.state} (frame {view.frame}, horizon {view.horizon_frames})"
        y = f"{view.regime} output {view.output}, y(reference) = {view.reference_value:g}"
        heading = f"{view.game}, {view.subject}, {at}: {y}"
        print_table(causes, title=f"{heading}; {_shown_causes(view)}, claims per method", n_key_columns=2)
        if n_left_out := len(view.causes) - len(causes):
            print_text(f"{n_left_out} causes without an effect that no method names are left out; --json has them")
        print_table(view.scores, title=f"{view.game}, {view.subject}: scores on {view.output}")


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


def _worth_a_row(causes: pd.DataFrame) -> pd.DataFrame:
    """A copy without the causes that have no effect and that no method names, where there are many.

    The floors name every cause, so they decide nothing.
    """
    if len(causes) <= MOST_ROWS:
        return causes.copy()
    claims = causes.drop(columns=["cause", "name", "effect", "flags", *CONTROLS], errors="ignore")
    return causes[(causes["effect"] != 0) | (claims != 0).any(axis=1)].copy()


def _shown_causes(view: OutputView) -> str:
    """How many causes there are, and why a network has fewer."""
    return f"{len(view.causes)} causes{' that move its input' if view.subject == 'network' else ''}"


def to_json(value: Any) -> str:
    """JSON of tables and plain values, to the last bit; undefined is null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    """Lists, dictionaries, numbers and texts only."""
    if isinstance(value, pd.DataFrame):
        return [_plain(row) for row in value.to_dict("records")]
    if isinstance(value, OutputView):
        return _plain(vars(value))
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return plain_number(value)
