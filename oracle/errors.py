"""What can go wrong while the truth is measured."""

from games.errors import VeritariError


class UnsupportedEmulator(VeritariError):
    """An ale-py whose version or serialized state has another layout than the one this code was checked with."""


class UnknownLayout(UnsupportedEmulator):
    """A serialized emulator state that does not parse."""


class InvalidState(VeritariError):
    """A trace whose prefix or reference tail reaches game over: there is nothing to intervene on."""


class NotDeterministic(VeritariError):
    """Two runs of the same actions differ: no effect can be measured."""


class DegenerateTask(VeritariError):
    """A question without an answer to rank: the effects are all zero or all equal, or a protocol's gate rejects it."""


class BudgetExceeded(VeritariError):
    """A method asked for more rollouts than its task allows."""


class DamagedFile(VeritariError):
    """A file of ours whose content is not what was written; the message names it."""


class BadProtocol(VeritariError):
    """A protocol whose parameters can't be meant."""
