"""The exact recipe is exact, and the comparison that says so can fail: both shortcuts fail it on the same sequences."""

from dataclasses import dataclass

import numpy as np
import pytest

from games.catalog import game
from oracle.effects import live_trace, measure
from oracle.emulator import Emulator, silenced_stderr
from oracle.intervention import RamWrite
from oracle.ram_v1 import RamV1
from oracle.ram_v2 import RamV2
from oracle.rollout import ExactRollouts, replay
from tests.naive import oracle as naive

pytestmark = pytest.mark.ale

# Game, number of interventions of the sequence with seed 1; each holds one after which a plain restore goes wrong.
SEQUENCES = {"tutankham": 10, "montezuma_revenge": 8, "krull": 8, "up_n_down": 4}


@dataclass(frozen=True)
class Verified:
    """The interventions of one game with their true ends: each played once on an interface of its own."""

    rom_id: str
    interventions: list
    truth: list

    @property
    def trace(self):
        return RamV1().trace(game(self.rom_id), 0)

    def fresh(self):
        return Emulator(game(self.rom_id))

    def ram_mismatches(self, rams):
        return [index for index, ram in enumerate(rams) if not np.array_equal(ram, self.truth[index].ram)]

    def screen_mismatches(self, screens):
        return [index for index, screen in enumerate(screens) if not np.array_equal(screen, self.truth[index].screen)]


def random_interventions(n, *, generator):
    """Half of them poke one byte, half 2 to 128 bytes."""
    sequence = []
    for _ in range(n):
        n_bytes = int(generator.integers(2, 129)) if generator.random() < 0.5 else 1
        addresses = generator.choice(128, n_bytes, replace=False)
        sequence.append([RamWrite(int(address), int(generator.integers(256))) for address in addresses])
    return sequence


@pytest.fixture(scope="module", params=SEQUENCES)
def verified(request):
    """The random interventions of one game with their true ends."""
    rom_id = request.param
    interventions = random_interventions(SEQUENCES[rom_id], generator=np.random.default_rng(1))
    trace = RamV1().trace(game(rom_id), 0)
    with silenced_stderr():
        truth = [replay(lambda: Emulator(game(rom_id)), trace, each) for each in interventions]
    return Verified(rom_id, interventions, truth)


def test_exact_rollouts_match_fresh_interfaces(verified):
    """Every rollout of a sequence of random interventions has the RAM and screen of a fresh interface."""
    rollouts = ExactRollouts(verified.fresh, verified.trace)
    with silenced_stderr():
        ends = [rollouts.run(each) for each in verified.interventions]
    assert verified.ram_mismatches([end.ram for end in ends]) == []
    assert verified.screen_mismatches([end.screen for end in ends]) == []


@pytest.mark.parametrize("rom_id", ["tutankham", "seaquest"])
def test_rollouts_are_exact_at_states_of_ram_v2(rom_id):
    """The same at a live state of ram-v2, with a prefix of its own."""
    trace = live_trace(RamV2(), game(rom_id), 0)
    interventions = random_interventions(6, generator=np.random.default_rng(1))
    rollouts = ExactRollouts(lambda: Emulator(game(rom_id)), trace)
    with silenced_stderr():
        truth = [replay(lambda: Emulator(game(rom_id)), trace, each) for each in interventions]
        ends = [rollouts.run(each) for each in interventions]
    for true, found in zip(truth, ends, strict=True):
        assert np.array_equal(true.ram, found.ram)
        assert np.array_equal(true.screen, found.screen)


def test_plain_restore_and_run_fails_the_comparison(verified):
    """Restoring a checkpoint at f* and running on gives wrong RAM somewhere in each of these sequences."""
    plain = naive.PlainRollouts(verified.fresh, verified.trace.prefix, verified.trace.tail)
    with silenced_stderr():
        ends = [plain.run(each) for each in verified.interventions]
    assert verified.ram_mismatches([ram for ram, _ in ends])


@pytest.mark.parametrize("verified", ["tutankham", "montezuma_revenge"], indirect=True)
def test_the_recipe_without_its_check_fails_the_comparison(verified):
    """Without comparing state and screens before every rollout, a poisoned interface gives wrong RAM."""
    unchecked = naive.UncheckedRollouts(verified.fresh, verified.trace.prefix, verified.trace.tail)
    with silenced_stderr():
        ends = [unchecked.run(each) for each in verified.interventions]
    assert verified.ram_mismatches([ram for ram, _ in ends])


@pytest.mark.parametrize("verified", ["tutankham"], indirect=True)
def test_a_poisoned_interface_is_rebuilt(verified):
    """On `tutankham` the check finds the interface poisoned once in this sequence and rebuilds it."""
    rollouts = ExactRollouts(verified.fresh, verified.trace)
    with silenced_stderr():
        for each in verified.interventions:
            rollouts.run(each)
    assert rollouts.n_rebuilds == 1


@pytest.mark.parametrize("verified", ["tutankham"], indirect=True)
def test_the_order_of_rollouts_does_not_matter(verified):
    """Running the sequence backwards gives every intervention the same end."""
    rollouts = ExactRollouts(verified.fresh, verified.trace)
    with silenced_stderr():
        backwards = [rollouts.run(each) for each in reversed(verified.interventions)]
    assert verified.ram_mismatches([end.ram for end in reversed(backwards)]) == []
    assert verified.screen_mismatches([end.screen for end in reversed(backwards)]) == []


def test_effects_of_a_game_equal_the_straight_line_measurement():
    """The effects of all causes of `pong` are those of one fresh interface per cause."""
    answer_key = measure(RamV1(), game("pong"), 0)
    question = answer_key.question
    interventions = [cause.intervention for cause in question.causes]
    # Byte 54 is the content output of `pong`.
    expected = naive.effects(
        lambda: Emulator(game("pong")), question.trace.prefix, question.trace.tail, interventions, 54
    )
    assert expected == list(zip(*answer_key.effects.tolist(), strict=True))
