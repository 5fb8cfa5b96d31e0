"""Protocols: how states, causes and outputs are chosen. Everything else is the same for all of them."""

from typing import Any, Protocol, runtime_checkable

from games.catalog import Game
from games.errors import unknown_name
from oracle.intervention import Cause
from oracle.output import Output
from oracle.ram_v1 import RamV1
from oracle.responses import Responses
from oracle.rollout import ExactRollouts
from oracle.state import Trace
from oracle.task import SamplerGeometry


@runtime_checkable
class AuditProtocol(Protocol):
    """What a protocol decides."""

    @property
    def name(self) -> str:
        """Its name in records and on the command line."""

    @property
    def score_version(self) -> str:
        """The version of the scores it is graded with."""

    @property
    def n_states(self) -> int:
        """States per game."""

    def parameters(self) -> dict[str, Any]:
        """Its name and whatever else makes it this protocol: part of every record and store key."""

    def exclusion(self, game: Game) -> str:
        """Why a game can't be asked about at all; empty if it can."""

    def trace(self, game: Game, state: int) -> Trace:
        """The actions that lead to a state and on to the horizon."""

    def causes(self, game: Game, rollouts: ExactRollouts) -> tuple[Cause, ...]:
        """What is intervened on, in the order of all columns."""

    def outputs(self, game: Game, responses: Responses) -> tuple[Output, ...]:
        """What is explained, chosen in view of the measured responses; `DegenerateTask` if nothing can be."""

    def geometry(self, game: Game, rollouts: ExactRollouts, responses: Responses) -> SamplerGeometry | None:
        """What the bilinear-sampler read renders; None where there is no sprite."""


PROTOCOLS: dict[str, AuditProtocol] = {protocol.name: protocol for protocol in (RamV1(),)}
DEFAULT_PROTOCOL = "ram-v1"


def protocol(name: str) -> AuditProtocol:
    """The protocol with this name.

    Raises:
        UnknownName: no such protocol.
    """
    if name not in PROTOCOLS:
        raise unknown_name("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
