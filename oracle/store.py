"""The content-addressed store of answer keys, shared by all runs of a user.

An entry's name is the SHA-256 of everything that decides its content, so nothing is ever invalidated: another ROM,
ale-py, protocol or version of the oracle has another name. Its first line is a checksum of the rest.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

import ale_py
import platformdirs
import torch

from games.catalog import Game
from oracle.effects import ORACLE_VERSION, AnswerKey
from oracle.errors import DamagedFile
from oracle.network import Network
from oracle.protocol import AuditProtocol

HEADER = "veritari-store 1"
# How the name of a file ends that is being written.
PARTIAL = ".partial"


def default_store() -> Path:
    """The folder under the user's cache directory."""
    return Path(platformdirs.user_cache_dir("veritari")) / "oracle"


def store_key(protocol: AuditProtocol, game: Game, state: int, network: Network | None = None) -> str:
    """The name of the entry of one game-state, of the machine or of a network with an identity."""
    named = [(byte.address, byte.name) for byte in game.named_bytes]
    # How many states are asked for, which a custom protocol's name tells too, does not change what one of them is.
    parameters = protocol.parameters() | {"name": protocol.name.partition("(")[0], "n_states": None}
    identity = [game.rom_id, game.rom_md5, named, ale_py.__version__, parameters, state, ORACLE_VERSION]
    if network:
        identity += [network.name, network.identity, [asdict(each) for each in network.outputs], torch.__version__]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


class Store:
    """Answer keys on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        """Where the entry of this key lies or would lie."""
        return self.folder / f"{key}.npz"

    def load(self, key: str) -> AnswerKey | None:
        """The entry, or None if there is none.

        Raises:
            DamagedFile: the entry is not what was written; the message names it.
        """
        path = self.path(key)
        try:
            header, _, content = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if header != _header(content):
            raise DamagedFile(f"{path}: expected a checksum that fits the content, got another; it is measured again")
        return AnswerKey.from_bytes(content, str(path))

    def save(self, key: str, answer_key: AnswerKey) -> None:
        """Write an entry, whole or not at all."""
        content = answer_key.to_bytes()
        write_atomically(self.path(key), _header(content) + b"\n" + content)


def _header(content: bytes) -> bytes:
    return f"{HEADER} {hashlib.sha256(content).hexdigest()}".encode()


def _umask() -> int:
    """The permissions that new files are not to have; it can be read only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it: temporary file, fsync, rename.

    Raises:
        OSError: the disk is full or the folder can't be written; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PARTIAL)
    try:
        # mkstemp makes files for one user only; results are for whoever may read the folder.
        os.fchmod(descriptor, 0o666 & ~_umask())
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
