"""The archive format: plain values and arrays in one file."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from oracle.archive import pack, unpack
from oracle.errors import DamagedFile

NAMES = st.text("abcdefghij_", min_size=1, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
ARRAYS = st.sampled_from([np.uint8, np.bool_, np.int64, np.float64]).flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.dictionaries(NAMES, ARRAYS, max_size=3))
def test_what_is_packed_comes_back(values, named_arrays):
    """Unpacking gives the values and arrays that were packed, shapes and dtypes included."""
    back_values, back_arrays = unpack(pack(values, named_arrays), "test")
    assert values == back_values
    assert set(named_arrays) == set(back_arrays)
    for name, array in named_arrays.items():
        assert (array.dtype, array.shape) == (back_arrays[name].dtype, back_arrays[name].shape)
        np.testing.assert_array_equal(array, back_arrays[name])


@given(st.dictionaries(NAMES, ARRAYS, max_size=3))
def test_equal_content_gives_equal_bytes(named_arrays):
    """Packing the same content twice gives the same bytes: no clock and no random part is in them."""
    assert pack({"a": 1}, named_arrays) == pack({"a": 1}, named_arrays)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_a_damaged_file(content):
    """Bytes that are no archive are refused with the file's name, whatever they are."""
    with pytest.raises(DamagedFile, match="some/file: expected an archive of ours"):
        unpack(content, "some/file")


def test_a_truncated_archive_is_damaged():
    """Every proper beginning of an archive is refused."""
    content = pack({"a": 1}, {"b": np.arange(5)})
    for length in range(len(content)):
        with pytest.raises(DamagedFile, match="expected an archive of ours"):
            unpack(content[:length], "entry")


@pytest.mark.parametrize("flipped", [0xFF, 0x20, 0x01])
def test_a_flipped_byte_gives_nothing_wrong(flipped):
    """An archive with bits of any one byte flipped gives nothing wrong or is refused; no other error escapes."""
    content = pack({"a": 1}, {"b": np.arange(500), "c": np.zeros((3, 4), dtype=np.uint8)})
    packed = {"b": list(range(500)), "c": [[0] * 4] * 3}
    for index in range(len(content)):
        damaged = content[:index] + bytes([content[index] ^ flipped]) + content[index + 1 :]
        try:
            values, named_arrays = unpack(damaged, "entry")
        except DamagedFile:
            continue
        # An array may be lost, where the count of members is hit; what is there is right.
        read = {name: array.tolist() for name, array in named_arrays.items()}
        assert ({"a": 1}, packed) == (values, packed | read)


def test_a_zip_without_our_text_is_damaged():
    """An `.npz` of somebody else, without our JSON text, is refused."""
    buffer = io.BytesIO()
    np.savez(buffer, effects=np.zeros(3))
    with pytest.raises(DamagedFile, match="expected an archive of ours, got 'json'"):
        unpack(buffer.getvalue(), "entry")


def test_a_pickle_is_never_loaded():
    """An archive that holds a pickled object is refused instead of running its code."""
    buffer = io.BytesIO()
    np.savez(buffer, json=np.array("{}"), trap=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DamagedFile, match="allow_pickle=False"):
        unpack(buffer.getvalue(), "entry")


def test_an_object_array_cannot_be_packed():
    """Packing an array that would need a pickle is an error, not a file nobody can read."""
    with pytest.raises(ValueError, match="Object arrays cannot be saved when allow_pickle=False"):
        pack({}, {"b": np.array([{"a": 1}], dtype=object)})


def test_the_archive_is_an_ordinary_npz():
    """Anybody can open an archive with a zip tool: one member for the text and one per array."""
    with zipfile.ZipFile(io.BytesIO(pack({"a": 1}, {"b": np.arange(5)}))) as archive:
        assert ["json.npy", "b.npy"] == archive.namelist()
