"""What surfaces are planned of: games that a protocol can ask about, and bytes."""

import pytest

from harness.errors import WrongUsage
from harness.pool import Limits
from harness.surface_files import surfaces_table
from harness.surface_plan import parse_addresses, plan_surfaces

LIMITS = Limits(workers=1, timeout_seconds=100.0, memory_gib=4.0)


def test_excluded_games_are_listed_and_none_alone_is_refused():
    """A game that the protocol can't ask about is a row with its reason; without another one there is nothing to do."""
    table = surfaces_table(plan_surfaces("ram-v1", "pong,amidar", (49,), LIMITS))
    assert [["amidar", "excluded", "no named bytes"]] == table[["game", "status", "reason"]].to_numpy().tolist()
    with pytest.raises(WrongUsage, match=r"got none \(amidar: no named bytes\)"):
        plan_surfaces("ram-v1", "amidar", (49,), LIMITS)


def test_addresses():
    """Numbers and ranges in any order are each byte once, in order."""
    assert (4, 49, 50, 51) == parse_addresses("50-51, 4,49-50")
    for wrong in ("", "5-4", "128", "-1", "a", "1-2-3", "²"):
        with pytest.raises(WrongUsage, match="--addresses: expected numbers"):
            parse_addresses(wrong)
