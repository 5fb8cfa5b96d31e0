"""Arrays and plain values in one file: an `.npz` that holds a JSON text beside its arrays, and no pickle."""

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from oracle.errors import DamagedFile

TEXT = "json"


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
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        return json.loads(str(arrays.pop(TEXT))), arrays
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedFile(
            f"{name}: expected an archive of ours, got {error!s}; delete it to have it rebuilt"
        ) from error
