"""The verification of exactness compares what it says, and can fail."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.catalog import game
from oracle.emulator import Emulator, silenced_stderr
from oracle.intervention import RamWrite
from oracle.ram_v1 import RamV1
from oracle.state import Trace
from oracle.verification import Digest, fresh_digests, random_interventions, recipe_digests
from tests.toy import (
    DRAG,
    IDLE,
    LASTING_POISON,
    PREFIX,
    SCREEN_POISON,
    TAIL,
    PoisonedMachine,
    ToyMachine,
    unsteady_machines,
)

TRACE = Trace((*PREFIX, *TAIL), len(PREFIX))
SEQUENCE = [[RamWrite(IDLE, LASTING_POISON)], [RamWrite(DRAG, 3)], [RamWrite(IDLE, SCREEN_POISON)], []]


@given(st.integers(0, 2**32 - 1))
def test_every_other_intervention_writes_one_byte(seed):
    """Interventions at even places write one byte, the others 2 to 128, no byte twice, all of them inside RAM."""
    sequence = random_interventions(12, generator=np.random.default_rng(seed))
    assert len(sequence) == 12
    for index, writes in enumerate(sequence):
        assert len(writes) in ({1} if index % 2 == 0 else range(2, 129))
        assert len(writes) == len({write.address for write in writes} & set(range(128)))


def test_large_interventions_reach_all_of_ram():
    """Among many interventions there is one of 2 bytes and one of all 128, and every value and address occurs."""
    sequence = random_interventions(4000, generator=np.random.default_rng(0))
    sizes = {len(writes) for writes in sequence}
    assert set(range(1, 129)) == sizes
    assert set(range(256)) == {write.value for writes in sequence for write in writes}
    assert set(range(128)) == {write.address for writes in sequence for write in writes}


def test_the_same_generator_gives_the_same_interventions():
    """A verification can be repeated: equal seeds give equal sequences, another seed another one."""
    first, again, other = (random_interventions(5, generator=np.random.default_rng(seed)) for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_digests_are_those_of_ram_and_screen():
    """A digest is the SHA-256 of the RAM and of the screen at the end of the rollout."""
    [digest] = fresh_digests(ToyMachine, TRACE, [[]])
    # The toy ends at 113 with all other cells as at boot.
    assert hashlib.sha256(bytes([113, 1, 7, 2, 0, 0])).hexdigest() == digest.ram
    screen = np.full((8, 10), 0x80, dtype=np.uint8)
    screen[3:5, 3:7] = 0x1F
    assert hashlib.sha256(screen.tobytes()).hexdigest() == digest.screen


def test_recipe_and_fresh_machines_agree_on_the_toy():
    """The promise holds on a machine that two of the four interventions poison."""
    assert fresh_digests(PoisonedMachine, TRACE, SEQUENCE) == recipe_digests(PoisonedMachine, TRACE, SEQUENCE)


def test_a_broken_promise_shows():
    """Where fresh machines differ from each other the digests of RAM and screen differ in every place."""
    fresh = fresh_digests(unsteady_machines(), TRACE, [[], [], []])
    recipe = recipe_digests(ToyMachine, TRACE, [[], [], []])
    # Only the first of the unsteady machines boots like the toy.
    assert [True, False, False] == [one.ram == other.ram for one, other in zip(fresh, recipe, strict=True)]
    assert [True, False, False] == [one.screen == other.screen for one, other in zip(fresh, recipe, strict=True)]


def test_ram_and_screen_are_compared_apart():
    """A screen that is wrong while the RAM is right can be told: only one of the two digests differs."""
    [poisoned] = fresh_digests(PoisonedMachine, TRACE, [[RamWrite(IDLE, SCREEN_POISON)]])
    [written] = fresh_digests(ToyMachine, TRACE, [[RamWrite(IDLE, SCREEN_POISON)]])
    assert Digest(written.ram, poisoned.screen) == poisoned
    assert written.screen != poisoned.screen


@pytest.mark.ale
def test_the_promise_holds_on_a_game():
    """On `asteroids` the recipe and fresh interfaces agree on a random sequence."""
    trace = RamV1().trace(game("asteroids"), 0)
    sequence = random_interventions(10, generator=np.random.default_rng(3))
    with silenced_stderr():
        expected = fresh_digests(lambda: Emulator(game("asteroids")), trace, sequence)
        assert expected == recipe_digests(lambda: Emulator(game("asteroids")), trace, sequence)
