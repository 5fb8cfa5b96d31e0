"""The answer key of one game-state for a network: the measured effect of every cause on what the network says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from games.catalog import Game
from oracle.effects import AnswerKey, Measured, first_valid, hash_of_run, measure
from oracle.emulator import Machine
from oracle.errors import NotDeterministic
from oracle.intervention import Cause, Intervention
from oracle.movement import Movement
from oracle.network import N_FRAMES, BrokenNetwork, Input, Network
from oracle.protocol import AuditProtocol
from oracle.removals import Removals, Values, known_values
from oracle.responses import effects_of_causes, flagged
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
    return first_valid(
        protocol, game, state, fresh_machine, lambda found: _measure_at(protocol, game, state, found, network)
    )


def _measure_at(protocol: AuditProtocol, game: Game, state: int, found: Measured, network: Network) -> AnswerKey:
    rollouts, film = found.rollouts, reference_film(found.rollouts)
    seen = _look_twice(network, film)
    shown = _visible(_watch(rollouts, protocol.causes(game, rollouts), network), seen)
    views = [view for each in shown for view in each.views]
    owners = np.repeat(np.arange(len(shown)), [len(each.views) for each in shown])
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
    answers, known = _answers(network, question, views, owners)
    removals = Removals(_values(rollouts, network), question.causes, known)
    return AnswerKey(
        question=question,
        exclusion="" if enough else gate,
        unmet=network.unmet,
        reference_hash=hash_of_run(rollouts, found.reference),
        n_frames=rollouts.n_frames,
        n_rollouts=rollouts.n_rollouts,
        flags=tuple(each.flags for each in shown),
        reference_curves=protocol.reference_curves(removals, game, rollouts.trace, np.abs(answers["effects"])),
        **answers,
        movement=Movement.of([view.seen for view in views], seen, owners),
        final_ram=_stacked([view.film.last.ram for view in views], film.last.ram),
        footprints=_stacked([each.footprint(film) for each in shown], film.last.screen > 0),
        reference_ram=film.last.ram,
        reference_screen=film.last.screen,
    )


def _values(rollouts: ExactRollouts, network: Network) -> Values:
    """What the network says after some interventions."""
    return lambda interventions: network.values(network.look(rollouts.film(interventions, N_FRAMES).frames))


def _look_twice(network: Network, film: Film) -> Input:
    seen = network.look(film.frames)
    if not np.array_equal(network.look(film.frames), seen):
        raise BrokenNetwork(f"{network.name}: preprocessing: expected the same twice, got another; make it steady")
    return seen


@dataclass(frozen=True)
class _View:
    """What one do-value does to the frames, and what the network is shown of it."""

    film: Film
    seen: Input


@dataclass(frozen=True)
class _Watched:
    """One cause with a view per do-value."""

    cause: Cause
    views: tuple[_View, ...]
    flags: str

    def footprint(self, reference: Film) -> Bool[np.ndarray, "row column"]:
        """The pixels that any of its do-values changes."""
        masks = [changed_pixels(view.film, reference) for view in self.views]
        return np.asarray(np.logical_or.reduce(masks), dtype=np.bool_)


def _watch(rollouts: ExactRollouts, causes: Sequence[Cause], network: Network) -> list[_Watched]:
    films, owners, flags = flagged(causes, lambda do: rollouts.film([do], N_FRAMES), lambda each: each.last)
    views: list[list[_View]] = [[] for _ in causes]
    for film, owner in zip(films, owners, strict=True):
        views[owner].append(_View(film, network.look(film.frames)))
    return [_Watched(cause, tuple(seen), flag) for cause, seen, flag in zip(causes, views, flags, strict=True)]


def _visible(watched: Sequence[_Watched], seen: Input) -> list[_Watched]:
    for each in (view.seen for cause in watched for view in cause.views):
        if each.shape != seen.shape:
            raise BrokenNetwork(
                f"preprocessing: expected inputs of one shape, got {seen.shape} and {each.shape}; correct it"
            )
    return [each for each in watched if not all(np.array_equal(view.seen, seen) for view in each.views)]


def _answers(
    network: Network, question: Question, views: Sequence[_View], owners: Int[np.ndarray, " rollout"]
) -> tuple[dict[str, np.ndarray], dict[frozenset[Intervention], Float[np.ndarray, " output"]]]:
    """Effects and reference values of all outputs that are explained; and y after everything that was run."""
    if not question.outputs:
        return {"effects": np.zeros((0, len(question.causes))), "reference_value": np.zeros(0)}, {}
    seen = question.frames
    network.require_steady(seen, views[-1].seen)
    reference_value = network.values(seen)
    values = np.array([network.values(view.seen) for view in views])
    if network.fingerprint(seen) != question.network_sha256:
        raise BrokenNetwork(f"{network.name}: expected its weights to stay, got others after it ran; make it steady")
    effects = effects_of_causes(values - reference_value, owners)
    answers = {"effects": effects.T, "reference_value": reference_value}
    return answers, known_values(question.causes, values, reference_value)


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
    """One row each, also where there is none."""
    return np.array(rows, dtype=like.dtype).reshape(len(rows), *like.shape)
