"""The controls of ram-v2: what a claim can reach, and what it reaches without knowing the output."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from oracle.emulator import Snapshot
from oracle.intervention import N_BYTES, Cause, Intervention
from oracle.output import Finals, Output
from oracle.responses import Responses, effects_of_causes
from oracle.rollout import ExactRollouts

Effects = Float[np.ndarray, "cause byte"]


def eligible_bytes(effects: Effects, *, least: int) -> Int[np.ndarray, " eligible"]:
    """The bytes that at least `least` other bytes move; the first rows of `effects` are those of the bytes."""
    moves = effects[:N_BYTES] > 0
    np.fill_diagonal(moves, val=False)
    return np.flatnonzero(moves.sum(axis=0) >= least)


def hub_claims(
    effects: Effects, eligible: Int[np.ndarray, " eligible"], outputs: Sequence[Output]
) -> Float[np.ndarray, "output cause"]:
    """How much each cause matters for *other* outputs: a claim that knows nothing of the one that is explained.

    Cause u claims the mean, over the eligible bytes c' but the explained one and u itself, of its effect on c' as a
    share of the largest effect of any cause on c'.
    """
    largest = effects.max(axis=0)
    shares = np.divide(effects, largest, out=np.zeros_like(effects), where=largest > 0)
    return np.array([_hub_claim(shares, eligible, output) for output in outputs])


def _hub_claim(shares: Effects, eligible: Int[np.ndarray, " eligible"], output: Output) -> Float[np.ndarray, " cause"]:
    others = eligible[eligible != output.ram_address] if output.ram_address is not None else eligible
    counted = np.zeros(shares.shape, dtype=np.bool_)
    counted[:, others] = True
    own = np.arange(min(N_BYTES, len(shares)))
    counted[own, own] = False
    n_counted = counted.sum(axis=1)
    total = np.where(counted, shares, 0.0).sum(axis=1)
    return np.asarray(np.divide(total, n_counted, out=np.zeros(len(shares)), where=n_counted > 0))


def redrawn_effects(
    rollouts: ExactRollouts,
    responses: Responses,
    causes: Sequence[Cause],
    redrawn: Sequence[Cause],
    outputs: Sequence[Output],
) -> Float[np.ndarray, "output cause"]:
    """The effects of the same bytes with other do-values: what the best of claims can reach.

    Causes that were not drawn again keep their effects. A do-value that was run for `causes` is not run again.
    """
    interventions = [do for cause in causes for do in cause.interventions]
    rows = {do: row for row, do in enumerate(interventions)}
    wanted = [do for cause in redrawn for do in cause.interventions]
    seen = {do: rollouts.run([do]) for do in wanted if do not in rows}
    owners = np.repeat(np.arange(len(redrawn)), [len(cause.interventions) for cause in redrawn])
    finals = _finals(wanted, rows, responses.finals, seen)
    drawn = np.array(
        [effects_of_causes(output.values(finals) - responses.reference_value(output), owners) for output in outputs]
    )
    first = np.array([responses.effects(output) for output in outputs])
    return np.concatenate([drawn, first[:, len(redrawn) :]], axis=1)


def _finals(
    wanted: Sequence[Intervention], rows: dict[Intervention, int], known: Finals, seen: dict[Intervention, Snapshot]
) -> Finals:
    ram = np.stack([seen[do].ram if do in seen else known.ram[rows[do]] for do in wanted])
    screens = np.stack([seen[do].screen if do in seen else known.screens[rows[do]] for do in wanted])
    return Finals(ram, screens, known.reference_screen)
