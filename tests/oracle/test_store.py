"""The store of answer keys: content-addressed, checked, written whole or not at all."""

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path

import ale_py
import pytest

from games.catalog import NamedByte
from oracle import store as store_module
from oracle.effects import measure
from oracle.errors import DamagedFile
from oracle.protocol import customised
from oracle.ram_v1 import RamV1
from oracle.ram_v2 import RamV2
from oracle.store import Store, default_store, store_key, write_atomically
from tests.toy import ToyMachine, ToyProtocol, toy_game, toy_protocol

KEY = store_key(toy_protocol(), toy_game(), 0)


@pytest.fixture(scope="module")
def answer_key():
    """The toy's answer key."""
    return measure(toy_protocol(), toy_game(), 0, ToyMachine)


@pytest.fixture
def store(tmp_path):
    """A store in a folder that does not exist yet."""
    return Store(tmp_path / "cache" / "oracle")


def test_an_empty_store_has_nothing(store):
    """A store that was never written, its folder missing, answers None."""
    assert store.load(KEY) is None


def test_what_is_saved_is_loaded(store, answer_key):
    """An entry comes back as it was saved; another key stays a miss."""
    store.save(KEY, answer_key)
    assert answer_key.to_bytes() == store.load(KEY).to_bytes()
    assert store.load(store_key(toy_protocol(), toy_game(), 1)) is None


def test_equal_content_gives_equal_files(tmp_path, answer_key):
    """Two stores that saved the same measurement hold the same bytes."""
    for name in ("one", "other"):
        Store(tmp_path / name).save(KEY, measure(toy_protocol(), toy_game(), 0, ToyMachine))
    one, other = (Store(tmp_path / name).path(KEY).read_bytes() for name in ("one", "other"))
    assert one == other


def test_saving_twice_keeps_one_file(store, answer_key):
    """Saving an entry again replaces it and leaves no other file behind."""
    store.save(KEY, answer_key)
    store.save(KEY, answer_key)
    assert [store.path(KEY)] == list(store.folder.iterdir())


def test_a_flipped_byte_is_noticed(store, answer_key):
    """An entry with one byte changed, in its header or in a sample of the rest, is damaged and named."""
    store.save(KEY, answer_key)
    path = store.path(KEY)
    content = path.read_bytes()
    # The header line has 81 bytes.
    for index in [*range(81), *range(81, len(content), 11)]:
        path.write_bytes(content[:index] + bytes([content[index] ^ 0x20]) + content[index + 1 :])
        with pytest.raises(DamagedFile, match=f"{re.escape(str(path))}: expected a checksum"):
            store.load(KEY)


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_a_truncated_entry_is_noticed(store, answer_key, kept):
    """An entry that was cut off anywhere, down to nothing, is damaged, and the message names its path."""
    store.save(KEY, answer_key)
    path = store.path(KEY)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DamagedFile, match=f"{re.escape(str(path))}: expected a checksum"):
        store.load(KEY)


def test_a_damaged_entry_can_be_replaced(store, answer_key):
    """Saving over a damaged entry makes it whole."""
    store.save(KEY, answer_key)
    store.path(KEY).write_bytes(b"rubbish")
    store.save(KEY, answer_key)
    assert answer_key.reference_hash == store.load(KEY).reference_hash


def no_space(descriptor):
    """What `fsync` does on a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_nothing_behind(store, answer_key, monkeypatch):
    """A write that fails raises the reason and leaves neither an entry nor a temporary file."""
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left on device"):
        store.save(KEY, answer_key)
    assert [] == list(store.folder.iterdir())
    assert store.load(KEY) is None


def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch):
    """A failed write over an existing file leaves the old content."""
    path = tmp_path / "file"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left on device"):
        write_atomically(path, b"new")
    assert (b"old", [path]) == (path.read_bytes(), list(tmp_path.iterdir()))


def test_an_interrupted_write_leaves_nothing_behind(tmp_path, monkeypatch):
    """Pressing Ctrl-C between writing and renaming leaves no file."""

    def interrupted(descriptor):
        raise KeyboardInterrupt("while writing")

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt, match="while writing"):
        write_atomically(tmp_path / "file", b"new")
    assert [] == list(tmp_path.iterdir())


def test_a_target_that_cannot_be_replaced_leaves_nothing_behind(tmp_path):
    """If the rename fails, here because a folder stands in the way, the temporary file is removed."""
    (tmp_path / "file" / "inside").mkdir(parents=True)
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        write_atomically(tmp_path / "file", b"new")
    assert [tmp_path / "file"] == list(tmp_path.iterdir())


def test_the_content_is_on_disk_before_the_name(tmp_path, monkeypatch):
    """The content is flushed to disk while the final name does not exist yet: nobody ever sees half a file."""
    path = tmp_path / "folder" / "file"
    seen = []

    def watching(descriptor):
        seen.append((path.exists(), os.fstat(descriptor).st_size))

    monkeypatch.setattr(os, "fsync", watching)
    write_atomically(path, b"12345")
    assert [(False, 5)] == seen
    assert path.read_bytes() == b"12345"


@dataclass(frozen=True)
class WithParameter(ToyProtocol):
    """The toy protocol with a parameter more."""

    horizon: int = 4


def changed_game(**changes):
    """The toy game with other values."""
    return toy_game().model_copy(update=changes)


RENAMED = (NamedByte(address=0, name="other", source="OCAtari"), *toy_game().named_bytes[1:])

OTHER_IDENTITIES = {
    "rom_id": store_key(toy_protocol(), changed_game(rom_id="other"), 0),
    "rom_md5": store_key(toy_protocol(), changed_game(rom_md5="1" * 32), 0),
    "a byte's name": store_key(toy_protocol(), changed_game(named_bytes=RENAMED), 0),
    "order of bytes": store_key(toy_protocol(), changed_game(named_bytes=toy_game().named_bytes[::-1]), 0),
    "protocol": store_key(RamV1(), toy_game(), 0),
    "a parameter": store_key(WithParameter(), toy_game(), 0),
    "a parameter's value": store_key(WithParameter(horizon=5), toy_game(), 0),
    "state": store_key(toy_protocol(), toy_game(), 1),
}


def test_every_part_of_the_identity_changes_the_key():
    """Changing the ROM, a named byte, the protocol, its parameters or the state gives a key of its own."""
    assert len({KEY, *OTHER_IDENTITIES.values()}) == 1 + len(OTHER_IDENTITIES)


def test_another_ale_py_has_another_key(monkeypatch):
    """An entry measured with another ale-py is never found."""
    monkeypatch.setattr(ale_py, "__version__", "0.99.0")
    assert store_key(toy_protocol(), toy_game(), 0) != KEY


def test_another_oracle_has_another_key(monkeypatch):
    """Raising the version of the oracle makes all entries misses."""
    monkeypatch.setattr(store_module, "ORACLE_VERSION", store_module.ORACLE_VERSION + 1)
    assert store_key(toy_protocol(), toy_game(), 0) != KEY


def test_the_key_is_the_same_every_time():
    """The key of equal identities is equal, and the game's title, which decides no number, is not in it."""
    assert store_key(toy_protocol(), toy_game(), 0) == KEY
    assert store_key(toy_protocol(), changed_game(title="Other"), 0) == KEY


def test_the_default_store_lies_in_the_user_cache(monkeypatch, tmp_path):
    """The default store is a folder of ours under the user's cache directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path / "veritari" / "oracle" == default_store()


def test_a_relative_folder_works(tmp_path, monkeypatch, answer_key):
    """A store in a relative folder saves and loads from there."""
    monkeypatch.chdir(tmp_path)
    Store(Path("here")).save(KEY, answer_key)
    assert (tmp_path / "here" / f"{KEY}.npz").is_file()


def test_parameters_are_part_of_the_key():
    """Every parameter of a custom protocol has a key of its own, but for how many states are asked for."""
    own = RamV2().adjustable()
    changed = {
        name: customised("ram-v2", {name: value + (-1 if name == "n_donors" else 1)}) for name, value in own.items()
    }
    keys = {name: store_key(other, toy_game(), 0) for name, other in changed.items()}
    plain = store_key(RamV2(), toy_game(), 0)
    assert ["n_states"] == [name for name, key in keys.items() if key == plain]
    assert len(own) == len(set(keys.values()))


def test_states_of_any_number_are_shared():
    """A state is the same entry however many are asked for; another state is another, with other parameters too."""
    few, many = (customised("ram-v2", {"horizon": 30, "n_states": n}) for n in (1, 9))
    assert store_key(few, toy_game(), 0) == store_key(many, toy_game(), 0)
    assert store_key(few, toy_game(), 0) != store_key(few, toy_game(), 1)
    assert store_key(few, toy_game(), 0) != store_key(customised("ram-v2", {"horizon": 29}), toy_game(), 0)
