"""The drill-down of one game: the truth about every cause beside what each method claims of it."""

from dataclasses import dataclass

import pandas as pd

from games.catalog import game as game_of
from games.errors import unknown_name
from harness.api import Run
from harness.board_texts import ONLY_FOR, ONLY_IN
from harness.controls import CONTROLS
from harness.errors import WrongUsage
from harness.manifest import SUBJECTS
from harness.terminal import bar, print_table, print_text
from harness.views import boards_of
from oracle.network import N_FRAMES

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


# A longer table of causes is shortened to those that matter.
MOST_ROWS = 60


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
