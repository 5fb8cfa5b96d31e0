"""Methods that do not come back."""

import signal
import time

from methods.method import method

SHARED = {"domain": "ram", "family": "gradient", "access": "read", "source": "none"}


@method("sleeps", **SHARED)
def sleeps(task, *, generator):
    """Waits in Python."""
    time.sleep(3600)


@method("computes_in_c", **SHARED)
def computes_in_c(task, *, generator):
    """One instruction that no signal handler of Python interrupts."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    return 3 ** (10**9)


@method("ignores_signals", **SHARED)
def ignores_signals(task, *, generator):
    """Can be ended by force only."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)
