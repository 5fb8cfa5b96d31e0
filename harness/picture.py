"""One game as a picture: its frame, the region that truly matters for each output, and where each method looks."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from games.catalog import Game
from games.catalog import game as game_of
from harness.api import Run
from harness.controls import CONTROLS
from harness.drawing import Colours, Panel, Row, png, shortened
from harness.errors import WrongUsage
from harness.game_views import OutputView, Selection, game_view
from harness.regions import Weights, direct_footprints, is_picture, on_screen, painted, strengths, unseen_share
from harness.units import Claim, Status, task_id
from oracle.effects import AnswerKey
from oracle.emulator import Emulator, silenced_stderr
from oracle.state import Trace

WITHOUT_CLAIM: tuple[Status, ...] = ("failed", "timeout", "not_applicable", "excluded")
ORACLE = "oracle"
LONGEST_LABEL = 32


def draw_game(run: Run, selection: Selection) -> bytes:
    """The picture of one game-state as PNG: a row per output with its frame, the true region, and every method's.

    Raises:
        UnknownName: the run has no such game, method, subject or cause.
        WrongUsage: nor such a state, or nothing of it is scored.
    """
    if not game_view(run, selection):
        reasons = [board.excluded[selection.game] for board in run.boards.values() if selection.game in board.excluded]
        reason = "; ".join(dict.fromkeys(reasons)) or "no task of it is finished"
        raise WrongUsage(f"{selection.game}: expected a game with scores, got none ({reason}); choose another --game")
    game = game_of(selection.game)
    # Shares are of all causes, also where one alone is shown.
    views = game_view(run, replace(selection, cause=""))
    states = {
        subject: GamePainter(run, selection, game, run.directory.answer_key(subject, game.rom_id, selection.state))
        for subject in dict.fromkeys(view.subject for view in views)
    }
    rows = [states[view.subject].row(view) for view in views]
    return png(frame_at(game, states[views[0].subject].trace), rows)


def frame_at(game: Game, trace: Trace) -> Colours:
    """The screen at f*, as a player sees it."""
    with silenced_stderr():
        emulator = Emulator(game)
        for action in trace.prefix:
            emulator.act(action)
        return emulator.colours()


class GamePainter:
    """One game-state of one subject: its causes are measured once, and painted for every output and method."""

    def __init__(self, run: Run, selection: Selection, game: Game, answer_key: AnswerKey) -> None:
        self._run, self._selection, self._game = run, selection, game
        self._question = answer_key.question
        # A network's horizon is two frames: its footprints are direct ones.
        is_direct = self._question.subject == "network"
        self._footprints = (
            answer_key.footprints if is_direct else direct_footprints(lambda: Emulator(game), self._question)
        )
        self._labels = [cause.label for cause in self._question.causes]

    @property
    def trace(self) -> Trace:
        """The actions that lead to f*."""
        return self._question.trace

    def row(self, view: OutputView) -> Row:
        """Everything that is drawn of one output."""
        causes = view.causes.set_index("cause").loc[self._labels]
        truth = self._through_causes("truth (oracle)", causes["effect"].to_numpy())
        return Row(self._heading(view), (truth, *self._methods(view, causes)))

    def _heading(self, view: OutputView) -> str:
        names = {
            f"{kind}[{byte.address}]": f" {byte.name}" for byte in self._game.named_bytes for kind in ("ram", "readout")
        }
        output = f"{view.regime} output {view.output}{names.get(view.output, '')}"
        return f"{self._game.title}, frame {view.frame}: {view.subject}, {output}"

    def _methods(self, view: OutputView, causes: pd.DataFrame) -> Iterator[Panel]:
        records = self._run.records
        records = records[records["seed"] == self._run.manifest.settings.seed]
        for name in ("subject", "game", "state", "output"):
            records = records[records[name] == getattr(view, name)]
        by_method = {str(record["method"]): record for _, record in records.iterrows()}
        for entry in self._run.manifest.methods_on(view.subject):
            if not self._is_chosen(entry.label):
                continue
            if entry.label in by_method:
                yield self._method(view, causes[entry.label], by_method[entry.label])
            else:
                yield Panel(_title(entry.label, math.nan), instead="no claim yet")

    def _is_chosen(self, label: str) -> bool:
        # The oracle's claim is the truth, which stands beside it anyway.
        return label not in CONTROLS if not self._selection.method else label == self._selection.method != ORACLE

    def _method(self, view: OutputView, claim: pd.Series, record: pd.Series) -> Panel:
        title = _title(str(record["method"]), record["F"], record["F_partial"])
        if record["status"] in WITHOUT_CLAIM:
            return Panel(title, instead=f"{record['status'].replace('_', ' ')}: {record['reason']}")
        if record["vanished"]:
            return Panel(title, instead="vanished: every cause has the same claim")
        pixels = self._pixel_map(view, str(record["method"]))
        if pixels is None:
            return self._through_causes(title, claim.to_numpy())
        if not is_picture(pixels):
            return Panel(title, instead=f"map of shape {pixels.shape}")
        return Panel(title, on_screen(pixels, self._footprints.shape[1:]), note="map of the network's input")

    def _pixel_map(self, view: OutputView, method: str) -> np.ndarray | None:
        [output] = [each for each in self._question.outputs if each.name == view.output]
        return self._run.directory.pixel_map(Claim(task=task_id(self._question, output), method=method, status="ok"))

    def _through_causes(self, title: str, weights: Weights) -> Panel:
        strength = strengths(weights, self._footprints)
        if self._selection.cause:
            strength = np.where([label == self._selection.cause for label in self._labels], strength, 0.0)
        if not strength.any():
            return Panel(title, instead="no region: what it names changes no pixel within two frames")
        unseen = unseen_share(weights, self._footprints)
        note = f"{unseen:.0%} of it in causes that change no pixel within two frames" if unseen else ""
        return Panel(title, painted(strength, self._footprints), note=note)


def _title(label: str, faithfulness: float, partial: float = math.nan) -> str:
    """On networks F alone misleads: how much a cause moves is a good guess already."""
    scores = {"F": faithfulness} | ({} if math.isnan(partial) else {"partial": partial})
    texts = [f"{name} = {'—' if math.isnan(score) else f'{score:.2f}'}" for name, score in scores.items()]
    return ", ".join([shortened(label, LONGEST_LABEL), *texts])
