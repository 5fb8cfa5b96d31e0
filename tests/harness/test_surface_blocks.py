"""Blocks as workers leave them: read as they were written, and never taken for another's."""

import re

import pytest

from games.catalog import game
from harness.surface_blocks import _standing_at as standing_at
from harness.surface_blocks import measure_block, read_block
from oracle.effects import measure
from oracle.errors import DamagedFile
from oracle.protocol import protocol

pytestmark = pytest.mark.ale


@pytest.fixture(scope="module")
def answer_key():
    """Of Pong under ram-v1."""
    return measure(protocol("ram-v1"), game("pong"), 0)


@pytest.fixture(scope="module")
def block(answer_key, tmp_path_factory):
    """The file of a block of one byte."""
    folder = tmp_path_factory.mktemp("block")
    (folder / "effects.npz").write_bytes(answer_key.to_bytes())
    report = measure_block(str(folder / "effects.npz"), (49,), str(folder / "block.npz"))
    assert ("ok", "") == (report.status, report.text)
    yield folder / "block.npz"
    # A worker keeps its emulator until it ends, this process does not.
    standing_at.cache_clear()


def test_a_block_is_read_as_it_was_written(answer_key, block):
    """A block tells its 255 rollouts, the seconds they took, and arrays of the shape of its outputs."""
    read = read_block(block, answer_key, (49,))
    assert ((2, 1, 256), 255) == (read.surface.differences.shape, read.surface.n_rollouts)
    assert read.seconds > 0
    assert read_block(block.parent / "none.npz", answer_key, (49,)) is None


def test_a_block_of_something_else_is_named(answer_key, block):
    """A block of other bytes, or beside another reference run, is refused by its name."""
    words = re.escape(f"{block}: expected a block of this game-state, got another's")
    with pytest.raises(DamagedFile, match=words):
        read_block(block, answer_key, (50,))
    with pytest.raises(DamagedFile, match=words):
        read_block(block, answer_key.model_copy(update={"reference_hash": "another"}), (49,))


def test_another_reference_run_is_refused(answer_key, tmp_path):
    """Where the machine does not play the run that effects were measured against, nothing is measured."""
    path = tmp_path / "effects.npz"
    path.write_bytes(answer_key.model_copy(update={"reference_hash": "another"}).to_bytes())
    report = measure_block(str(path), (49,), str(tmp_path / "block.npz"))
    assert ("failed", f"{path}: expected the reference run that its effects were measured against, got another") == (
        report.status,
        report.text.partition(";")[0],
    )
    assert not (tmp_path / "block.npz").exists()
