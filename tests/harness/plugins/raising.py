"""Methods that raise, the last ones in ways that a process which passes exceptions on would not survive."""

from methods.method import NotApplicable, method

SHARED = {"domain": "ram", "family": "gradient", "access": "read", "source": "none"}


@method("raises", **SHARED)
def raises(task, *, generator):
    """The common case."""
    raise ValueError("expected a sprite, got none")


@method("raises_lines", **SHARED)
def raises_lines(task, *, generator):
    """A reason of many lines."""
    raise ValueError("first line\nsecond line\n" + "and so on " * 1000)


class NeedsArguments(Exception):
    """Pickles, but does not unpickle: its constructor wants more than its arguments."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


@method("raises_unpicklable", **SHARED)
def raises_unpicklable(task, *, generator):
    """Breaks the reader of a pipe that passes exceptions on."""
    raise NeedsArguments("one", "two")


class Unreducible(Exception):
    """Can't be pickled at all, and says so with an exit."""

    def __reduce__(self):
        """Leave."""
        raise SystemExit(7)


@method("raises_unreducible", **SHARED)
def raises_unreducible(task, *, generator):
    """Breaks the writer of a pipe that passes exceptions on."""
    raise Unreducible("it has no other form")


class Unprintable(Exception):
    """Has no text."""

    def __str__(self):
        """Raise instead of telling."""
        raise self


@method("raises_unprintable", **SHARED)
def raises_unprintable(task, *, generator):
    """Breaks whoever wants to say what it was."""
    raise Unprintable


class UnprintableRefusal(NotApplicable):
    """An exception of ours, made unprintable."""

    def __init__(self, first, second):
        super().__init__(first, second)

    def __str__(self):
        """Raise instead of telling."""
        raise self


@method("raises_unprintable_refusal", **SHARED)
def raises_unprintable_refusal(task, *, generator):
    """Breaks whoever trusts our own exceptions."""
    raise UnprintableRefusal("one", "two")


@method("raises_surrogates", **SHARED)
def raises_surrogates(task, *, generator):
    """A text that no file takes."""
    raise ValueError("no sprite in \udcff")


class NotEvenAnError(BaseException):
    """Outside of what `except Exception` catches."""


@method("raises_base_exception", **SHARED)
def raises_base_exception(task, *, generator):
    """As an interrupt would."""
    raise NotEvenAnError("not an Exception")


@method("raises_interrupt", **SHARED)
def raises_interrupt(task, *, generator):
    """Pretends that the user pressed a key."""
    raise KeyboardInterrupt


@method("leaves", **SHARED)
def leaves(task, *, generator):
    """sys.exit: an exception that ends the process of whoever does not catch it."""
    raise SystemExit(0)
