"""A method that looks for the measured effects in all that can be reached from its task, and in its whole process."""

import gc

import numpy as np
import torch

from methods.method import method

SHARED = {"domain": "ram", "family": "gradient", "access": "read", "source": "none"}
LARGEST = 1_000_000


class FoundError(Exception):
    """The effects are within reach."""


class Hunt:
    """From one object to all that it refers to: attributes, closures, globals, members."""

    def __init__(self, negated, n_causes):
        # The method is told what to look for with other signs, so that it does not find what it was told.
        self.wanted = [
            np.array([-float(effects.get(cause, 0)) + 0.0 for cause in range(n_causes)]) for effects in negated
        ]
        self.wanted += [np.abs(effects) for effects in self.wanted]
        self._own = {id(each) for each in (self, vars(self), self.wanted, *self.wanted)}

    def follow(self, roots):
        """Look at everything from `roots` on; every object is kept alive, so that its id stays its own."""
        seen, waiting = {}, list(roots)
        while waiting:
            value = waiting.pop()
            if id(value) in seen or id(value) in self._own or value is seen or value is waiting:
                continue
            seen[id(value)] = value
            self._compare(value)
            waiting += gc.get_referents(value)
        return len(seen)

    def _compare(self, value):
        if isinstance(value, (bytes, bytearray)):
            if len(value) <= LARGEST and any(each.tobytes() in value for each in self.wanted):
                raise FoundError(f"the effects are in {type(value).__name__}")
            return
        rows = numbers_of(value)
        if rows is not None and any((rows == each).all(axis=1).any() for each in self.wanted if fits(rows, each)):
            raise FoundError(f"the effects are in a {type(value).__name__}")


def fits(rows, effects):
    """Whether these rows could be the effects."""
    return rows.shape[1] == len(effects)


def numbers_of(value):
    """The rows of an array, a tensor or a sequence of numbers; None for anything else."""
    if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.device.type == "cpu":
        value = value.detach().to(torch.float64).numpy() if not value.is_complex() else np.zeros(0)
    if isinstance(value, (list, tuple)) and len(value) > 2 and all(type(each) in {int, float} for each in value):
        value = np.array([float(each) if abs(each) < 2**53 else 0.0 for each in value])
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or not 2 < value.size <= LARGEST:
        return None
    return value.reshape(-1, value.shape[-1])


@method("peeks", **SHARED)
def peeks(task, *, generator, negated: list = [], planted: str = ""):  # noqa: B006  # never changed
    """Fails if the effects are anywhere; as a control, it first hides them itself."""
    hunt = Hunt(negated, len(task.causes))
    if planted:
        plant(task, planted, [float(each) for each in hunt.wanted[0]])
    n_seen = hunt.follow([task])
    hunt.follow(gc.get_objects())
    return torch.full((128,), float(n_seen > 1000))


def plant(task, place, effects):
    """Put the effects where they could be."""
    build = task.rollout._build
    places = {
        "attribute": lambda: object.__setattr__(task.rollout, "notes", {"deep": (effects,)}),
        "array": lambda: object.__setattr__(task.read, "notes", np.array([effects, effects])),
        "closure": lambda: object.__setattr__(task.rollout, "_build", lambda: (build, effects)),
        "bytes": lambda: object.__setattr__(task.rollout, "notes", b"head" + np.array(effects).tobytes()),
    }
    places[place]()
