"""Arrays and plain values in one file: an `.npz` that holds a JSON text beside its arrays, and no pickle."""

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from oracle.errors import DamagedFile

TEXT = "json"
DAMAGE = (
    *(ValueError, LookupError, TypeError, SyntaxError, OSError, EOFError, MemoryError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)


def pack(values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of an archive; equal content gives equal bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **{TEXT: np.array(json.dumps(values))}, **arrays)
    return buffer.getvalue()


def unpack(content: bytes, name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The values and arrays of an archive.

    Raises:
        DamagedFile: not an archive; `name` says which.
    """
    with naming_damage(name), np.load(io.BytesIO(content), allow_pickle=False) as archive:
        # All checksums first: a damaged shape would end the reading of a part before zip compares its own.
        if damaged := archive.zip.testzip():
            raise ValueError(f"a wrong checksum of {damaged}")
        arrays = {key: archive[key] for key in archive.files}
        return json.loads(str(arrays.pop(TEXT))), arrays


@contextmanager
def naming_damage(name: str) -> Iterator[None]:
    """Turn whatever zip, zlib, numpy, JSON and pydantic raise on damaged bytes into one error that names the file."""
    try:
        yield
    except DAMAGE as error:
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise DamagedFile(f"{name}: expected an archive of ours, got {reason}; delete it to have it rebuilt") from error
