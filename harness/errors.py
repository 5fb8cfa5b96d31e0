"""What can go wrong with a run and its files."""

from games.errors import VeritariError


class BadRun(VeritariError):
    """A run directory that can't be read, continued or written."""


class DirectoryBusy(BadRun):
    """Another process writes this run directory."""


class WrongUsage(VeritariError):
    """The command line or a function call asks for something that does not fit together."""


class CannotWrite(VeritariError):
    """The disk is full, or a file of a run can't be written; what was finished before is kept."""


class Interrupted(VeritariError):
    """The user stopped a run; what was finished before is kept."""
