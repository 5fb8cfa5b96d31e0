"""The sparse movement of a network's input against dense loops, and in an archive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.movement import Movement
from tests.naive import ram_v2 as naive

SHAPE = (2, 3, 4)
OWNERS = np.array([0, 0, 0, 1, 2, 2])
REFERENCE = np.random.default_rng(1).random(SHAPE).astype(np.float32)


def shown(seed):
    """What a network was shown after each do-value: most numbers as in the reference run."""
    generator = np.random.default_rng(seed)
    moves = generator.random((len(OWNERS), *SHAPE)) < 0.2
    return np.where(moves, generator.random((len(OWNERS), *SHAPE)), REFERENCE).astype(np.float32)


def movement(seed=0):
    """The movement of three causes with three, one and two do-values."""
    return Movement.of(list(shown(seed)), REFERENCE, OWNERS)


def rows(seed):
    """The same as lists of numbers."""
    return (shown(seed) - REFERENCE).reshape(len(OWNERS), -1).astype(float).tolist()


@given(st.integers(0, 10**6), st.booleans())
def test_projection_is_its_replica(seed, signed):
    """A map claims of each cause what the loop says, averaged over its do-values."""
    pixels = np.random.default_rng(seed + 1).normal(size=SHAPE)
    expected = naive.projection(pixels.ravel().tolist(), rows(seed), OWNERS.tolist(), signed=signed)
    assert pytest.approx(expected, rel=1e-9, abs=1e-12) == movement(seed).project(pixels, signed=signed).tolist()


@given(st.integers(0, 10**6))
def test_size_is_its_replica(seed):
    """The size of a cause is its sum of |dx|, averaged over its do-values."""
    expected = naive.projection([1.0] * REFERENCE.size, rows(seed), OWNERS.tolist(), signed=False)
    assert pytest.approx(expected, rel=1e-9) == movement(seed).size.tolist()


def test_projection_by_hand():
    """The signed sum of each do-value is taken without sign before the mean, so opposite ones do not cancel."""
    inputs = [np.array(each, np.float32) for each in ([3.0, 0.0], [-1.0, 0.0], [1.0, 2.0])]
    found = Movement.of(inputs, np.zeros(2, np.float32), np.array([0, 0, 1]))
    pixels = np.array([1.0, -1.0])
    # (3 + 1) / 2, |1 - 2|; without signs 1 + 2.
    assert [2.0, 1.0] == found.project(pixels, signed=True).tolist()
    assert [2.0, 3.0] == found.project(pixels, signed=False).tolist() == found.size.tolist()
    assert 2 == found.n_causes


def test_dense_is_what_was_shown():
    """Dense again it is what was shown after each do-value minus the reference, number by number."""
    found = movement().dense()
    assert (np.float32, (6, *SHAPE)) == (found.dtype, found.shape)
    assert (shown(0) - REFERENCE).tolist() == found.tolist()


def test_only_what_moves_is_kept():
    """No zero is stored: the number of stored values is that of the moved ones."""
    assert np.count_nonzero(shown(0) != REFERENCE) == movement().shifts.nnz == len(movement().shifts.data)


def test_archive_round_trip():
    """From its parts the movement comes back, and these are taken out of the others."""
    parts = {**movement().arrays(), "other": np.zeros(1)}
    back = Movement.from_arrays(parts)
    assert ["other"] == list(parts)
    assert (SHAPE, OWNERS.tolist()) == (back.shape, back.owners.tolist())
    assert movement().dense().tolist() == back.dense().tolist()
    assert [each.tobytes() for each in movement().arrays().values()] == [
        each.tobytes() for each in back.arrays().values()
    ]


def test_equal_content_gives_equal_bytes():
    """The same shifts from another reference have the same parts, byte for byte."""
    one = movement()
    other = Movement.of(list(one.dense()), np.zeros(SHAPE, np.float32), OWNERS)
    pairs = zip(one.arrays().items(), other.arrays().items(), strict=True)
    for (name, array), (other_name, other_array) in pairs:
        assert (name, array.dtype, array.tobytes()) == (other_name, other_array.dtype, other_array.tobytes())


def test_no_cause_at_all():
    """A movement of nothing has the input's shape, no claim, and survives the archive."""
    found = Movement.of([], REFERENCE, np.zeros(0, dtype=np.int64))
    back = Movement.from_arrays(found.arrays())
    assert (SHAPE, (0, *SHAPE)) == (back.shape, back.dense().shape)
    assert [] == back.size.tolist() == found.project(REFERENCE.astype(float), signed=True).tolist()
