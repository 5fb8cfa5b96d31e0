"""A method that looks through its process for the answer key, and writes down all that it finds."""

import gc
import json
import os
import sys
from pathlib import Path, PurePath

import numpy as np
import torch

from methods.method import method

SHARED = {"domain": "ram", "family": "gradient", "access": "read", "source": "none"}
LONGEST_TEXT = 5000
LARGEST_VECTOR = 10_000
DEEPEST = 4


class Search:
    """Everything that can be reached from this process: texts with a slash, vectors of numbers, class names."""

    def __init__(self):
        self.texts, self.vectors, self.classes = set(), set(), set()
        self._seen = {}

    def look(self, value, depth=0):
        """Note a value, and what is in it; a container without tracked members is not known to `gc`."""
        if id(value) in self._seen:
            return
        # Kept alive, so that its id stays its own.
        self._seen[id(value)] = value
        if isinstance(value, (str, PurePath)):
            self._note_text(str(value))
        elif isinstance(value, (bytes, bytearray)):
            self._note_text(bytes(value[:LONGEST_TEXT]).decode("latin-1"))
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and 2 < value.size <= LARGEST_VECTOR:
            self._note_vectors(value)
        elif isinstance(value, torch.Tensor) and value.layout == torch.strided and 2 < value.numel() <= LARGEST_VECTOR:
            self._note_vectors(value.detach().numpy())
        elif isinstance(value, (tuple, list, set, frozenset, dict)) and depth < DEEPEST:
            self._look_into(value, depth)

    def _look_into(self, container, depth):
        members = [*container.keys(), *container.values()] if isinstance(container, dict) else list(container)
        if len(members) > 2 and all(type(member) in {int, float} for member in members):
            self.vectors.add(tuple(float(member) for member in members if abs(member) < 2**53))
        for member in members:
            self.look(member, depth + 1)

    def _note_text(self, text):
        if "/" in text and len(text) <= LONGEST_TEXT:
            self.texts.add(text)

    def _note_vectors(self, array):
        rows = np.atleast_2d(array.astype(np.float64)).reshape(-1, array.shape[-1] if array.ndim else 1)
        self.vectors.update(tuple(row) for row in rows.tolist())

    def everywhere(self):
        """Arguments, environment, open files, locals of all frames, and all objects with what they refer to."""
        for text in (*sys.argv, *sys.orig_argv, *os.environ.values(), str(Path.cwd())):
            self._note_text(text)
        for descriptor in Path("/proc/self/fd").iterdir():
            if descriptor.is_symlink():
                self._note_text(str(descriptor.readlink()))
        frames = list(sys._current_frames().values())
        while frames:
            frame = frames.pop()
            self.look(list(frame.f_locals.values()))
            frames += [frame.f_back] if frame.f_back else []
        for tracked in gc.get_objects():
            self.classes.add(type(tracked).__name__)
            for referent in gc.get_referents(tracked):
                self.look(referent)


def report(task):
    """Search, and append what was found to the file that the environment names."""
    found = Search()
    found.everywhere()
    content = {
        "task": task.output,
        "texts": sorted(found.texts),
        "vectors": sorted(found.vectors),
        "classes": sorted(found.classes),
    }
    with Path(os.environ["VERITARI_TEST_FINDINGS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(content) + "\n")
    return task.ram


@method("spies", **SHARED)
def spies(task, *, generator):
    """Finds what is there."""
    return report(task)


class AnswerKey:
    """Not the real one, but of its name."""


@method("plants", **SHARED)
def plants(task, *, generator):
    """The control: finds what it has hidden itself, so that finding nothing means something."""
    hidden = AnswerKey()
    hidden.effects = {"values": np.array([[1.25, -2.5, 3.75]]), "as_numbers": ((4.25, 5.5, 6.75),)}
    hidden.place = ("store", {"path": Path("/planted/store/effects.npz")})
    hidden.message = b"\x80pickled /planted/run/oracle"
    return report(task)
