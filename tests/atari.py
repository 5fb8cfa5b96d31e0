"""Answer keys of real games that several files of tests look at, measured once per process."""

from functools import cache

from games.catalog import game
from oracle.effects import AnswerKey, measure
from oracle.ram_v2 import RamV2


@cache
def ram_v2_key(rom_id: str) -> AnswerKey:
    """The answer key of state 0 of a game under ram-v2."""
    return measure(RamV2(), game(rom_id), 0)
