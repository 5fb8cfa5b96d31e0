"""The answer key of one game-state for a network: the measured effect of every cause on what the network says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from games.catalog import Game
from oracle.effects import AnswerKey, hash_of_run, measure, reference_run
from oracle.emulator import Emulator, Machine
from oracle.errors import NotDeterministic
from oracle.intervention import Cause
from oracle.network import N_FRAMES, BrokenNetwork, Input, Network
from oracle.protocol import AuditProtocol
from oracle.responses import flagged
from oracle.rollout import ExactRollouts, Film, replay_film
from oracle.task import Question

# As the gate of ram-v1 has it: with fewer there is nothing to correlate.
LEAST_VISIBLE = 4


def measure_subject(
    protocol: AuditProtocol,
    game: Game,
    state: int,
    network: Network | None,
    *,
    fresh_machine: Callable[[], Machine] | None = None,
) -> AnswerKey:
    """The answer key of a game-state: of the machine, or of a network that looks at it; see `measure` and below."""
    if network is None:
        return measure(protocol, game, state, fresh_machine)
    return measure_network(protocol, game, state, network, fresh_machine=fresh_machine)


def measure_network(
    protocol: AuditProtocol,
    game: Game,
    state: int,
    network: Network,
    *,
    fresh_machine: Callable[[], Machine] | None = None,
) -> AnswerKey:
    """Measure one game-state: every cause is run for two frames, the network looks at them, y is what it says.

    Causes that move no pixel of the network's input are left out: nothing that looks at pixels can tell them apart.

    Raises:
        InvalidState: the prefix or the reference tail reaches game over.
        NotDeterministic: two reference runs differ.
        BrokenNetwork: the network can't be asked, or does not say the same twice.
    """
    rollouts = ExactRollouts(fresh_machine or (lambda: Emulator(game)), protocol.trace(game, state))
    reference, film = reference_run(rollouts), reference_film(rollouts)
    seen = _look_twice(network, film)
    shown = _visible(_watch(rollouts, protocol.causes(game, rollouts), network), seen)
    enough = len(shown) >= LEAST_VISIBLE
    gate = f"gate: {len(shown)} causes move a pixel of the network's input, at least {LEAST_VISIBLE} are needed"
    question = Question(
        protocol=protocol.name,
        subject="network",
        game=game.rom_id,
        state=state,
        trace=rollouts.trace,
        causes=tuple(each.cause for each in shown),
        outputs=network.outputs if enough else (),
        geometry=None,
        network=network.name,
        network_sha256=network.fingerprint(seen),
        reference_pool=rollouts.prefix_ram,
        frames=seen,
    )
    return AnswerKey(
        question=question,
        exclusion="" if enough else gate,
        unmet=network.unmet,
        reference_hash=hash_of_run(rollouts, reference),
        n_frames=rollouts.n_frames,
        n_rollouts=rollouts.n_rollouts,
        flags=tuple(each.flags for each in shown),
        **_answers(network, question, shown),
        moved=_stacked([each.seen - seen for each in shown], seen),
        final_ram=_stacked([each.film.last.ram for each in shown], film.last.ram),
        footprints=_stacked([changed_pixels(each.film, film) for each in shown], film.last.screen > 0),
        reference_ram=film.last.ram,
        reference_screen=film.last.screen,
    )


def _look_twice(network: Network, film: Film) -> Input:
    seen = network.look(film.frames)
    if not np.array_equal(network.look(film.frames), seen):
        raise BrokenNetwork(f"{network.name}: preprocessing: expected the same twice, got another; make it steady")
    return seen


@dataclass(frozen=True)
class _Watched:
    """What one cause does to the frames, and to the network's input."""

    cause: Cause
    film: Film
    seen: Input
    flags: str


def _watch(rollouts: ExactRollouts, causes: Sequence[Cause], network: Network) -> list[_Watched]:
    films, flags = flagged(causes, lambda cause: rollouts.film([cause.intervention], N_FRAMES), lambda each: each.last)
    return [
        _Watched(cause, film, network.look(film.frames), flag)
        for cause, film, flag in zip(causes, films, flags, strict=True)
    ]


def _visible(watched: Sequence[_Watched], seen: Input) -> list[_Watched]:
    for each in watched:
        if each.seen.shape != seen.shape:
            raise BrokenNetwork(
                f"preprocessing: expected inputs of one shape, got {seen.shape} and {each.seen.shape}; correct it"
            )
    return [each for each in watched if not np.array_equal(each.seen, seen)]


def _answers(network: Network, question: Question, shown: Sequence[_Watched]) -> dict[str, np.ndarray]:
    """Effects and reference values of all outputs that are explained."""
    if not question.outputs:
        return {"effects": np.zeros((0, len(shown))), "reference_value": np.zeros(0)}
    seen = question.frames
    network.require_steady(seen, shown[-1].seen)
    reference_value = network.values(seen)
    values = np.array([network.values(each.seen) for each in shown])
    if network.fingerprint(seen) != question.network_sha256:
        raise BrokenNetwork(f"{network.name}: expected its weights to stay, got others after it ran; make it steady")
    return {"effects": values.T - reference_value[:, np.newaxis], "reference_value": reference_value}


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
