"""Seeds: every random number comes from a generator whose seed says what it is for."""

import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_of(run_seed: int, *identity: object) -> int:
    """A seed of 63 bits from the run's seed and whatever identifies the draw (protocol, task, method).

    >>> seed_of(0, "ram-v1", "pong") == seed_of(0, "ram-v1", "pong"), seed_of(0, "a") == seed_of(1, "a")
    (True, False)
    """
    # As JSON, so that no text can look like two.
    text = json.dumps([str(part) for part in (run_seed, *identity)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


@contextmanager
def seeded_global_generators(seed: int) -> Iterator[None]:
    """Inside, the global generators are seeded; afterwards they stand where they were."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002  # put back below
    seed_global_generators(seed)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002  # as above
        torch.set_rng_state(states[2])


def seed_global_generators(seed: int) -> None:
    """For foreign code that draws from the global generators: it must not depend on the process that it runs in."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  # the very generator that such code draws from
    torch.manual_seed(seed)


def global_generators() -> dict[str, bytes]:
    """Where the global generators stand, by the name that Python knows them under."""
    kind, key, *rest = np.random.get_state()  # noqa: NPY002  # looked at only
    return {
        "random": repr(random.getstate()).encode(),
        "numpy.random": repr((kind, rest)).encode() + np.asarray(key).tobytes(),
        "torch": torch.get_rng_state().numpy().tobytes(),
    }


def reset_torch() -> None:
    """What foreign code may have left behind: the next to come must not notice."""
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.set_num_threads(1)
