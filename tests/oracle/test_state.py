"""Traces: the prefix up to f* and the tail to the horizon."""

import pytest

from oracle.errors import InvalidState
from oracle.state import Trace


def test_prefix_and_tail_split_at_the_frame():
    """The first `frame` actions are the prefix, the others the tail."""
    trace = Trace((5, 6, 7, 8, 9), 3)
    assert ((5, 6, 7), (8, 9)) == (trace.prefix, trace.tail)


@pytest.mark.parametrize("frame", [2, 4])
def test_the_outermost_frames_are_allowed(frame):
    """f* may lie right after the two warm-up frames or right before the last action."""
    assert frame == len(Trace((0,) * 5, frame).prefix)


@pytest.mark.parametrize("frame", [-1, 1, 5])
def test_a_frame_without_warm_up_or_tail_is_refused(frame):
    """f* needs two frames before it, for the exact recipe, and at least one after it."""
    with pytest.raises(InvalidState, match=rf"expected an analysis frame in 2\.\.4, got {frame}"):
        Trace((0,) * 5, frame)
