"""Seeds: every random number comes from a generator whose seed says what it is for."""

import hashlib
import json


def seed_of(run_seed: int, *identity: object) -> int:
    """A seed of 63 bits from the run's seed and whatever identifies the draw (protocol, task, method).

    >>> seed_of(0, "ram-v1", "pong") == seed_of(0, "ram-v1", "pong"), seed_of(0, "a") == seed_of(1, "a")
    (True, False)
    """
    # As JSON, so that no text can look like two.
    text = json.dumps([str(part) for part in (run_seed, *identity)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
