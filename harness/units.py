"""What a run stores while it works: one small file per finished unit, readable at any time.

A *claim* is one method's answer to one task, *curves* are the deletion and insertion rollouts for one claim, an *oracle
outcome* tells how measuring a game-state went (its answer key lies beside it as an archive).
"""

import hashlib
import re
from typing import Literal

from pydantic import BaseModel, ConfigDict

from methods.method import Subject
from oracle.output import Output, Regime
from oracle.task import Question

Status = Literal["ok", "not_applicable", "degenerate", "failed", "timeout", "excluded"]
UNANSWERED: tuple[Status, ...] = ("failed", "timeout")


class _Unit(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OracleOutcome(_Unit):
    """How measuring one game-state went."""

    subject: Subject
    game: str
    state: int
    status: Status
    reason: str = ""
    n_frames: int = 0
    n_rollouts: int = 0

    @property
    def identity(self) -> tuple[object, ...]:
        """What it is about."""
        return self.subject, self.game, self.state

    @property
    def filename(self) -> str:
        """Its path below `units/`."""
        return f"oracle/{self.subject}-{self.game}-{self.state}.json"


class TaskId(_Unit):
    """One output of one game-state; for a method that draws, with one seed."""

    subject: Subject
    game: str
    state: int
    output: str
    regime: Regime
    # Which of several seeds: the run's own plus this.
    repeat: int = 0

    @property
    def slug(self) -> str:
        """Safe as a file name."""
        again = f"-again{self.repeat}" if self.repeat else ""
        return f"{self.subject}-{self.game}-{self.state}-{slug(self.output)}{again}"


def task_id(question: Question, output: Output, repeat: int = 0) -> TaskId:
    """The identity of one output of a question."""
    return TaskId(
        subject=question.subject,
        game=question.game,
        state=question.state,
        output=output.name,
        regime=output.regime,
        repeat=repeat,
    )


class _OfTask(_Unit):
    """What came of one method on one task."""

    task: TaskId
    method: str
    status: Status
    reason: str = ""

    @property
    def identity(self) -> tuple[object, ...]:
        """What it is about."""
        return self.task, self.method


class Claim(_OfTask):
    """One method's answer to one task: a number >= 0 per cause, or why there is none.

    On its way from a worker to the judge, `values` of a pixel map are the map's own numbers in row-major order.
    """

    values: tuple[float, ...] = ()
    n_rollouts: int = 0
    n_gradients: int = 0

    @property
    def filename(self) -> str:
        """Its path below `units/`."""
        return f"claims/{slug(self.method)}/{self.task.slug}.json"


class Curves(_OfTask):
    """y while causes are removed (deletion) and put back (insertion), most important first; steps 0..n."""

    deletion: tuple[float, ...] = ()
    insertion: tuple[float, ...] = ()

    @property
    def filename(self) -> str:
        """Its path below `units/`."""
        return f"curves/{slug(self.method)}/{self.task.slug}.json"


def map_name(claim: Claim) -> str:
    """Where the pixel map behind a claim lies in a run."""
    return f"maps/{slug(claim.method)}/{claim.task.slug}.npz"


def slug(text: str) -> str:
    """A file name for any text: what can't be in one is replaced, and a hash keeps different texts apart.

    >>> slug("ram[54]"), slug("pong")
    ('ram_54_-d5ef14ee', 'pong')
    """
    safe = re.sub(r"[^a-z0-9_]", "_", text.lower())[:60]
    return safe if safe == text else f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
