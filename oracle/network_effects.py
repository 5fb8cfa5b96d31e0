"""The answer key of one game-state for a network: the measured effect of every cause on what the network says."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool

from games.catalog import Game
from oracle.effects import AnswerKey, hash_of_run, reference_run
from oracle.emulator import Emulator, Machine
from oracle.errors import NotDeterministic
from oracle.network import N_FRAMES, Network
from oracle.protocol import AuditProtocol
from oracle.responses import flagged
from oracle.rollout import ExactRollouts, Film, replay_film
from oracle.task import Question

# As the gate of ram-v1 has it: with fewer there is nothing to correlate.
LEAST_MOVERS = 4


def measure_network(
    protocol: AuditProtocol,
    game: Game,
    state: int,
    network: Network,
    fresh_machine: Callable[[], Machine] | None = None,
) -> AnswerKey:
    """Measure one game-state: every cause is run for two frames, the network looks at them, y is what it says.

    Causes that move no pixel of the network's input are left out: nothing that looks at pixels can tell them apart.

    Raises:
        InvalidState: the prefix or the reference tail reaches game over.
        NotDeterministic: two reference runs differ.
        BrokenNetwork: the network can't be asked.
    """
    rollouts = ExactRollouts(fresh_machine or (lambda: Emulator(game)), protocol.trace(game, state))
    reference = reference_run(rollouts)
    film = reference_film(rollouts)
    seen = network.look(film.frames)
    causes = protocol.causes(game, rollouts)
    films, flags = flagged(causes, lambda cause: rollouts.film([cause.intervention], N_FRAMES), lambda each: each.last)
    inputs = [network.look(each.frames) for each in films]
    movers = [index for index, each in enumerate(inputs) if not np.array_equal(each, seen)]
    few = f"{len(movers)} causes move a pixel of the network's input, at least {LEAST_MOVERS} are needed"
    outputs = network.outputs if len(movers) >= LEAST_MOVERS else ()
    reference_value = network.values(seen) if outputs else np.zeros(0)
    values = [network.values(inputs[index]) for index in movers] if outputs else []
    question = Question(
        protocol=protocol.name,
        subject="network",
        game=game.rom_id,
        state=state,
        trace=rollouts.trace,
        causes=tuple(causes[index] for index in movers),
        outputs=outputs,
        geometry=None,
        network=network.name,
        network_sha256=network.weights_sha256(),
        reference_pool=rollouts.prefix_ram,
        frames=seen,
    )
    return AnswerKey(
        question=question,
        exclusion="" if len(movers) >= LEAST_MOVERS else f"gate: {few}",
        unmet=network.unmet,
        reference_hash=hash_of_run(rollouts, reference),
        n_frames=rollouts.n_frames,
        n_rollouts=rollouts.n_rollouts,
        flags=tuple(flags[index] for index in movers),
        effects=np.array(values).reshape(len(movers), len(outputs)).T - reference_value[:, np.newaxis],
        reference_value=reference_value,
        moved=_stacked([inputs[index] - seen for index in movers], seen),
        final_ram=_stacked([films[index].last.ram for index in movers], film.last.ram),
        footprints=_stacked([changed_pixels(films[index], film) for index in movers], film.last.screen > 0),
        reference_ram=film.last.ram,
        reference_screen=film.last.screen,
    )


def reference_film(rollouts: ExactRollouts) -> Film:
    """The frames of the reference run that the network sees, by the exact recipe and straight through.

    Raises:
        NotDeterministic: the two differ.
    """
    film = rollouts.film([], N_FRAMES)
    again = replay_film(rollouts.fresh_machine, rollouts.trace, [], N_FRAMES)
    if not np.array_equal(film.frames, again.frames):
        raise NotDeterministic(
            f"two reference films: expected the same frames, got {int((film.frames != again.frames).sum())} pixels "
            "that differ; this game-state can't be measured"
        )
    return film


def changed_pixels(film: Film, reference: Film) -> Bool[np.ndarray, "row column"]:
    """The pixels that differ in any frame: what is written anew every frame is changed in the first one only.

    By luminance, and in the last frame also by colour.
    """
    return np.asarray(
        (film.frames != reference.frames).any(axis=0) | (film.last.screen != reference.last.screen), dtype=np.bool_
    )


def _stacked(rows: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    """One row per cause, also where there is none."""
    return np.array(rows, dtype=like.dtype).reshape(len(rows), *like.shape)
