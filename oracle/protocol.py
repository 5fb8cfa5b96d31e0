"""Protocols: how states, causes and outputs are chosen. Everything else is the same for all of them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from games.catalog import Game
from games.errors import unknown_name
from oracle.errors import BadProtocol
from oracle.intervention import Cause
from oracle.output import Output
from oracle.ram_v1 import RamV1
from oracle.ram_v2 import RamV2
from oracle.removals import Removals
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

    def adjustable(self) -> dict[str, int]:
        """The parameters that may have other values, with their own; empty where none may."""

    def adjusted(self, name: str, values: Mapping[str, int]) -> "AuditProtocol":
        """The same with other values, under another name; raises `BadProtocol` where they do not fit together."""

    def parameters(self) -> dict[str, Any]:
        """Its name and whatever else makes it this protocol: part of every record and store key."""

    def exclusion(self, game: Game) -> str:
        """Why a game can't be asked about at all; empty if it can."""

    def candidates(self, game: Game, state: int) -> Iterable[Trace]:
        """Actions that lead to a state and on to the horizon; the first that is valid and has an output is taken."""

    def require_live(self, rollouts: ExactRollouts) -> None:
        """Refuse a state at which nothing can be asked; raises `InvalidState`."""

    def causes(self, game: Game, rollouts: ExactRollouts) -> tuple[Cause, ...]:
        """What is intervened on, in the order of all columns."""

    def outputs(self, game: Game, rollouts: ExactRollouts, responses: Responses) -> tuple[Output, ...]:
        """What is explained, chosen in view of the measured responses; `DegenerateTask` if nothing can be."""

    def geometry(self, game: Game, rollouts: ExactRollouts, responses: Responses) -> SamplerGeometry | None:
        """What the bilinear-sampler read renders where an output has no template; None where there is no sprite."""

    @property
    def controls(self) -> tuple[str, ...]:
        """Controls of its own, beside those of every board."""

    def controls_on(
        self, game: Game, rollouts: ExactRollouts, responses: Responses, outputs: Sequence[Output]
    ) -> dict[str, Float[np.ndarray, "output cause"]]:
        """What they claim of the machine; empty where it has none."""

    @property
    def breaks_ties_at_random(self) -> bool:
        """Whether equal claims are removed in random order, or in that of the causes."""

    def removal_steps(self, n_causes: int) -> tuple[int, ...]:
        """After how many removals a curve is measured."""

    def reference_curves(
        self, removals: Removals, game: Game, trace: Trace, effects: Float[np.ndarray, "output cause"]
    ) -> dict[str, np.ndarray]:
        """What the curves of a claim are compared with; empty where they stand for themselves."""


PROTOCOLS: dict[str, AuditProtocol] = {protocol.name: protocol for protocol in (RamV2(), RamV1())}
_NAME = re.compile(r"(?P<base>[^()]+)(?:\((?P<values>[^()]*)\))?")


def protocol(name: str) -> AuditProtocol:
    """The protocol with this name; parameters that differ from its own stand in parentheses.

    >>> protocol("ram-v2(horizon=30)").parameters()["horizon"]
    30

    Raises:
        UnknownName: no such protocol, or parameter of it.
        BadProtocol: a value that can't be meant.
    """
    found = _NAME.fullmatch(name.strip())
    if found is None:
        raise unknown_name("protocol", name, PROTOCOLS)
    pairs = [pair.partition("=") for pair in (found["values"] or "").split(",") if pair.strip()]
    return customised(found["base"].strip(), {key.strip(): value.strip() for key, _, value in pairs})


def customised(base: str, values: Mapping[str, object]) -> AuditProtocol:
    """A protocol with other values of some parameters; those that differ become part of its name.

    Raises:
        UnknownName: no such protocol, or parameter of it.
        BadProtocol: a value that can't be meant.
    """
    if base not in PROTOCOLS:
        raise unknown_name("protocol", base, PROTOCOLS)
    known = PROTOCOLS[base]
    free = known.adjustable()
    for name in values:
        if not free:
            raise BadProtocol(f"{base}: expected its own parameters, got {name}; it is fixed, choose another protocol")
        if name not in free:
            raise unknown_name(f"parameter of {base}", name, free)
    changed = {name: _whole_number(f"{base}: {name}", value) for name, value in sorted(values.items())}
    changed = {name: value for name, value in changed.items() if value != free[name]}
    label = ",".join(f"{name}={value}" for name, value in changed.items())
    return known.adjusted(f"{base}({label})", changed) if changed else known


def is_custom(name: str) -> bool:
    """Whether a protocol has other parameters than its own.

    >>> is_custom("ram-v2"), is_custom("ram-v2(n_states=1)")
    (False, True)
    """
    return "(" in name


def _whole_number(what: str, value: object) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = -1
    if number < 1:
        raise BadProtocol(f"{what}: expected a whole number above 0, got {value}; correct it")
    return number
