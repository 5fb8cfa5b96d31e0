"""Seeds: one per draw, the same for the same draw."""

import contextlib
import hashlib
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.seeds import global_generators, seed_of, seeded_global_generators

# The longest seed has 63 bits: what torch and numpy both take.
LARGEST = 2**63 - 1


def test_seed_is_the_start_of_a_digest():
    """The seed is the first 63 bits of the SHA-256 of what identifies the draw: known without Python's own hash."""
    # The run's seed alone, as text. The last of the first 64 bits is dropped.
    assert int(hashlib.sha256(b'["7"]').hexdigest()[:16], 16) // 2 == seed_of(7)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0, "ram-v1", "pong"), (1, "ram-v1", "pong")),
        ((0, "ram-v1", "pong"), (0, "ram-v1", "breakout")),
        ((0, "ab"), (0, "a", "b")),
        ((0, "a", "b"), (0, "b", "a")),
        ((0, "a", ""), (0, "a")),
        ((0, 1, 23), (0, 12, 3)),
        ((1, "2"), (12, "")),
        # A method's label may hold any text that `repr` writes.
        ((0, "pong", "blur"), (0, r"pong\x1fblur")),
    ],
)
def test_different_draws_have_different_seeds(one, other):
    """Seeds differ with the run's seed, with every part of the identity, and with where one part ends."""
    assert seed_of(*one) != seed_of(*other)


@given(run_seed=st.integers(0, 2**31), parts=st.lists(st.one_of(st.text(), st.integers()), max_size=4))
def test_every_generator_takes_the_seed(run_seed, parts):
    """The same draw has the same seed, and both torch and numpy take it as it is."""
    seed = seed_of(run_seed, *parts)
    assert seed == seed_of(run_seed, *parts)
    assert seed == torch.Generator().manual_seed(seed).initial_seed()
    assert seed == seed & LARGEST
    assert np.random.default_rng(seed).random() == np.random.default_rng(seed_of(run_seed, *parts)).random()


def test_global_generators_are_put_back():
    """Inside, the global generators are seeded; afterwards, also after an error, they go on where they were."""
    states = [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]  # noqa: NPY002
    drawn = []
    for _ in range(2):
        with contextlib.suppress(ValueError), seeded_global_generators(7):
            drawn.append((random.random(), float(np.random.random()), torch.rand(1).item()))  # noqa: NPY002, S311
            raise ValueError("on purpose")
    assert drawn[0] == drawn[1]
    assert states == [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]  # noqa: NPY002


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("random", random.random),
        ("numpy.random", np.random.random),  # the one that is watched
        ("numpy.random", lambda: np.random.seed(5)),  # noqa: NPY002  # as above
        ("torch", lambda: torch.rand(1)),
        ("torch", lambda: torch.manual_seed(5)),
    ],
)
def test_a_draw_moves_one_global_generator(name, draw):
    """Drawing from a global generator, or seeding it, shows in its state and in no other; looking shows in none."""
    with seeded_global_generators(7):
        before = global_generators()
        assert before == global_generators()
        draw()
        assert [name] == [each for each, state in global_generators().items() if state != before[each]]
