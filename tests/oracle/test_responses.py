"""From differences of do-values to effects of causes, against a loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oracle.responses import effects_of_causes
from tests.naive import ram_v2 as naive


@st.composite
def differences(draw):
    """Whole differences of some causes with one to four do-values each."""
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    owners = [cause for cause, count in enumerate(counts) for _ in range(count)]
    return draw(st.lists(st.integers(-255, 255), min_size=len(owners), max_size=len(owners))), owners


@given(differences())
def test_effects_are_their_replica(given_differences):
    """The effect is the loop's, with one column and with several beside each other."""
    values, owners = given_differences
    expected = naive.effects_of_causes(values, owners)
    column = np.array(values, dtype=np.float64)
    assert expected == effects_of_causes(column, np.array(owners)).tolist()
    pair = effects_of_causes(np.stack([column, -2 * column], axis=1), np.array(owners))
    assert expected == pair[:, 0].tolist()
    assert naive.effects_of_causes([-2 * value for value in values], owners) == pair[:, 1].tolist()


def test_effects_by_hand():
    """A single do-value keeps its sign; of several the sizes are averaged, so that opposite ones do not cancel."""
    found = effects_of_causes(np.array([-7.0, 3.0, -3.0, 0.0, 5.0]), np.array([0, 1, 1, 1, 2]))
    assert [-7.0, 2.0, 5.0] == found.tolist()
