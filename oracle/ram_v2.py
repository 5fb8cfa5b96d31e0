"""Protocol ram-v2: several live states per game, all bytes as causes, outputs that no answer key has picked.

What ram-v1 got wrong, and how it is mended here, is told in the README. Nothing here needs a name table.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from games.catalog import Game
from oracle.do_values import byte_causes, cause_of
from oracle.emulator import NOOP
from oracle.errors import BadProtocol, DegenerateTask, InvalidState
from oracle.hub import eligible_bytes, hub_claim
from oracle.intervention import N_BYTES, ActionWrite, Cause
from oracle.output import Output, content_output, displacement_output
from oracle.redraw import redrawn_effects
from oracle.removals import Removals, doubling_steps, reference_curves
from oracle.responses import Responses, effects_of_causes
from oracle.rollout import ExactRollouts
from oracle.sprites import FRAMES_TO_SHOW, find_sprites, template_at_horizon
from oracle.state import WARM_UP_FRAMES, Trace
from oracle.task import SamplerGeometry

# The first number of every seed: that of the protocol.
VERSION = 2
N_ACTIONS = 18
LONGEST_HOLD = 12
# Candidates of a state: first those that outlast a long intro, then those for games that end early.
N_LATE, N_EARLY = 16, 16
LATER_PER_STATE, LATER_PER_CANDIDATE = 120, 90
EARLY_PREFIX, EARLY_STEP = 90, 30
# What a live game does with an action: it is seen at once, and it stays.
SETTLING_FRAMES = 15
# Other values of a byte than the present one.
MOST_VALUES = 255
# The byte of each cause; the action has none.
ADDRESSES = np.append(np.arange(N_BYTES), -1)
# A column that correlates more than this with one that was taken asks the same again.
ALIKE = 0.9


@dataclass(frozen=True)
class RamV2:
    """Parameters of ram-v2; another value of any makes it another protocol.

    Attributes:
        n_states: states per game.
        horizon: frames from the intervention to the reading of y.
        prefix: frames before the first candidate of the first state.
        n_values, n_donors: do-values per byte, and how many of them at most have occurred.
        n_contents, n_sprites: outputs per state, at most, of each regime.
        n_orders: random orders that curves are compared with.
        least_pixels, least_bytes: what an action must change for a state to be live.
        least_movers: how many other bytes must move a byte for it to be an output.
    """

    name: str = "ram-v2"
    score_version: str = "v2"
    n_states: int = 4
    horizon: int = 15
    prefix: int = 180
    n_values: int = 8
    n_donors: int = 4
    n_contents: int = 3
    n_sprites: int = 2
    n_orders: int = 20
    least_pixels: int = 8
    least_bytes: int = 2
    least_movers: int = 3

    def adjustable(self) -> dict[str, int]:
        """All numbers."""
        return {name: value for name, value in asdict(self).items() if isinstance(value, int)}

    def adjusted(self, name: str, values: Mapping[str, int]) -> "RamV2":
        """The same with other values.

        Raises:
            BadProtocol: more donors than values, or a horizon or prefix too short for the rollout recipe.
        """
        changed = RamV2(**{**asdict(self), **values, "name": name})
        if changed.n_donors > changed.n_values:
            raise BadProtocol(
                f"{name}: expected at most n_values={changed.n_values} donors, got {changed.n_donors}; lower n_donors"
            )
        if changed.n_values > MOST_VALUES:
            raise BadProtocol(
                f"{name}: expected at most {MOST_VALUES} values per byte, got {changed.n_values}; lower it"
            )
        if changed.prefix < WARM_UP_FRAMES or changed.horizon < FRAMES_TO_SHOW:
            raise BadProtocol(
                f"{name}: expected a prefix of {WARM_UP_FRAMES} frames and a horizon of {FRAMES_TO_SHOW} at least"
            )
        return changed

    def parameters(self) -> dict[str, Any]:
        """All of them."""
        return asdict(self)

    def exclusion(self, game: Game) -> str:
        """Every game can be asked about."""
        return ""

    def candidates(self, game: Game, state: int) -> Iterator[Trace]:
        """Actions drawn uniformly, each held for 1 to 12 frames; the same for all games."""
        for candidate in range(N_LATE + N_EARLY):
            frame = (
                self.prefix + LATER_PER_STATE * state + LATER_PER_CANDIDATE * candidate
                if candidate < N_LATE
                else EARLY_PREFIX + EARLY_STEP * (candidate - N_LATE)
            )
            yield Trace(held_actions(frame + self.horizon, [VERSION, state, candidate]), frame)

    def require_live(self, rollouts: ExactRollouts) -> None:
        """An action held over the horizon must be seen on the way, and still be felt some frames after it.

        Raises:
            InvalidState: none is, or the game is over by then.
        """
        rest = [NOOP] * SETTLING_FRAMES
        reference = rollouts.watch([*rollouts.trace.tail, *rest])
        if reference[-1].terminal:
            raise InvalidState("live: expected a game that runs for some frames more, got game over")
        most_pixels = most_bytes = 0
        for action in range(N_ACTIONS):
            seen = rollouts.watch([*[action] * self.horizon, *rest])
            differs = [one.screen != other.screen for one, other in zip(seen, reference, strict=True)]
            n_pixels = int(np.logical_or.reduce(differs[: self.horizon]).sum())
            n_bytes = int((seen[-1].ram != reference[-1].ram).sum())
            if n_pixels >= self.least_pixels and n_bytes >= self.least_bytes:
                return
            most_pixels, most_bytes = max(most_pixels, n_pixels), max(most_bytes, n_bytes)
        raise InvalidState(
            f"live: expected an action that changes {self.least_pixels} pixels and {self.least_bytes} bytes, "
            f"got at most {most_pixels} and {most_bytes}"
        )

    def causes(self, game: Game, rollouts: ExactRollouts) -> tuple[Cause, ...]:
        """All RAM bytes, then the action at f*, whose do-values are all others."""
        generator = self._generator(game, rollouts.trace, "do-values")
        pool = rollouts.prefix_ram
        bytes_of_ram = byte_causes(pool, generator=generator, n_values=self.n_values, n_donors=self.n_donors)
        played = rollouts.trace.tail[0]
        others = tuple(ActionWrite(0, action) for action in range(N_ACTIONS) if action != played)
        removal = None if played == NOOP else ActionWrite(0, NOOP)
        return (*bytes_of_ram, cause_of("action", others, removal=removal))

    def outputs(self, game: Game, rollouts: ExactRollouts, responses: Responses) -> tuple[Output, ...]:
        """Bytes drawn among those that others move, and sprites that are still located at the horizon.

        Raises:
            DegenerateTask: there is neither.
        """
        outputs = (*self._contents(game, rollouts, responses), *self._positions(rollouts, responses))
        if not outputs:
            raise DegenerateTask(
                f"outputs: no byte is moved by {self.least_movers} others, and no sprite is located at the horizon"
            )
        return outputs

    def _contents(self, game: Game, rollouts: ExactRollouts, responses: Responses) -> list[Output]:
        effects = ram_effects(responses)
        generator = self._generator(game, rollouts.trace, "contents")
        taken: list[int] = []
        eligible = eligible_bytes(effects, ADDRESSES, least=self.least_movers)
        for address in generator.permutation(np.flatnonzero(eligible)).tolist():
            if len(taken) == self.n_contents:
                break
            if not any(_asks_the_same(effects, address, other) for other in taken):
                taken.append(address)
        return [content_output(address) for address in taken]

    def _positions(self, rollouts: ExactRollouts, responses: Responses) -> list[Output]:
        found: list[Output] = []
        for sprite in find_sprites(rollouts):
            if len(found) == self.n_sprites:
                break
            template = template_at_horizon(rollouts, sprite, responses.reference.screen)
            if template is None:
                continue
            output = displacement_output(template)
            # A sprite that nothing displaces is nothing to explain.
            if np.ptp(responses.effects(output)) > 0:
                found.append(output)
        return found

    def geometry(self, game: Game, rollouts: ExactRollouts, responses: Responses) -> SamplerGeometry | None:
        """None: an output has a template."""
        return None

    @property
    def controls(self) -> tuple[str, ...]:
        """The effects of other do-values, and how much each byte matters for other outputs."""
        return "oracle_redraw", "hub"

    def controls_on(
        self, game: Game, rollouts: ExactRollouts, responses: Responses, outputs: Sequence[Output]
    ) -> dict[str, Float[np.ndarray, "output cause"]]:
        """Both, for every output."""
        if not outputs:
            return {}
        generator = self._generator(game, rollouts.trace, "redraw")
        pool = rollouts.prefix_ram
        redrawn = byte_causes(pool, generator=generator, n_values=self.n_values, n_donors=self.n_donors)
        effects = ram_effects(responses)
        eligible = eligible_bytes(effects, ADDRESSES, least=self.least_movers)
        hubs = [
            hub_claim(effects, eligible=eligible, addresses=ADDRESSES, output_byte=output.ram_address)
            for output in outputs
        ]
        again = redrawn_effects(rollouts, responses, self.causes(game, rollouts), redrawn, outputs)
        return {
            # A cause with a single do-value has an effect with a sign; a claim has none.
            "oracle_redraw": np.abs(again),
            "hub": np.array(hubs),
        }

    @property
    def breaks_ties_at_random(self) -> bool:
        """Nothing is won by the order of the causes."""
        return True

    def removal_steps(self, n_causes: int) -> tuple[int, ...]:
        """0, 1, 2, 4, ..., 64, and all."""
        return doubling_steps(n_causes)

    def reference_curves(
        self, removals: Removals, game: Game, trace: Trace, effects: Float[np.ndarray, "output cause"]
    ) -> dict[str, np.ndarray]:
        """Those of the oracle, and of random orders."""
        if not effects.size:
            return {}
        generator = self._generator(game, trace, "orders")
        steps = self.removal_steps(effects.shape[1])
        return reference_curves(removals, effects, steps, n_orders=self.n_orders, generator=generator)

    def _generator(self, game: Game, trace: Trace, purpose: str) -> np.random.Generator:
        """One for each purpose at each state of each game."""
        digest = hashlib.sha256(f"{VERSION} {game.rom_id} {trace} {purpose}".encode()).digest()
        return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))


def held_actions(n_frames: int, seed: Sequence[int]) -> tuple[int, ...]:
    """Actions for so many frames: each uniform on all 18, held for 1 to 12 frames."""
    generator = np.random.default_rng(seed)
    actions: list[int] = []
    while len(actions) < n_frames:
        action = int(generator.integers(N_ACTIONS))
        actions += [action] * int(generator.integers(1, LONGEST_HOLD + 1))
    return tuple(actions[:n_frames])


def ram_effects(responses: Responses) -> Float[np.ndarray, "cause byte"]:
    """The size of the effect of every cause on every byte, taken as a content output."""
    differences = responses.finals.ram.astype(np.float64) - responses.reference.ram
    return np.asarray(np.abs(effects_of_causes(differences, responses.owners)))


def _asks_the_same(effects: Float[np.ndarray, "cause byte"], address: int, taken: int) -> bool:
    """Whether the columns of two bytes are alike but for what these do themselves."""
    others = np.ones(len(effects), dtype=np.bool_)
    others[[address, taken]] = False
    column, known = effects[others, address], effects[others, taken]
    if np.ptp(column) == 0 or np.ptp(known) == 0:
        return False
    return bool(np.corrcoef(column, known)[0, 1] > ALIKE)
