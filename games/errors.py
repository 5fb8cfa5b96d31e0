"""The errors that a user of Veritari may meet, under one base class.

They live in the lowest package because every other package raises them.
"""

import difflib
from collections.abc import Iterable


class VeritariError(Exception):
    """Base of all errors with a message for the user: one line that says expected, got, what to do."""


class UnknownName(VeritariError):
    """A game, set, method or protocol that nobody has registered."""


class BrokenTable(VeritariError):
    """A game table that does not follow the format; the message names file, row and reason."""


class RomMismatch(VeritariError):
    """The shipped ROM is not the one that the game table describes."""


class UnsupportedRom(VeritariError):
    """A ROM that the emulator cannot play."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """The error for an unknown `name`: the nearest known ones first, then the full list.

    >>> print(unknown_name("set", "cores", ["core", "scored", "all"]))
    unknown set 'cores'; did you mean core, scored? Known: all, core, scored
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(nearest)}?" if nearest else "."
    return UnknownName(f"unknown {kind} {name!r}{hint} Known: {', '.join(names)}")
