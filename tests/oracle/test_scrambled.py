"""The same state under another program: what is scrambled, what stays, and what the exact rollouts then run."""

import numpy as np
import pytest

from games.catalog import game, rom_path
from oracle.effects import measure
from oracle.emulator import silenced_stderr
from oracle.errors import InvalidState
from oracle.intervention import RamWrite
from oracle.protocol import protocol
from oracle.rollout import replay
from oracle.scrambled import N_MOVED, ScrambledEmulator, ScrambledRollouts, measure_program, scrambled

ale = pytest.mark.ale

# Two programs of Pong that run: one moves other things, one stands still. Another draws nothing.
RUNS, BLANK = 7, 0


@pytest.fixture(scope="module")
def key():
    """Pong as it is."""
    return measure(protocol("ram-v1"), game("pong"), 0)


def rollouts(key, program):
    """Rollouts of another program from Pong's state."""
    with silenced_stderr():
        return ScrambledRollouts(game("pong"), program, key.question.trace, key.question.ram)


@pytest.mark.parametrize("n_bytes", [2048, 4096, 8192])
def test_some_bytes_stand_elsewhere_and_the_end_of_every_bank_stays(n_bytes):
    """The same bytes; as many as are moved differ, where all are unlike; vectors and bank switches are untouched."""
    # No two of a place and its neighbour in the ring are alike: 251 is prime to the size.
    rom = np.arange(n_bytes, dtype=np.int64) % 251
    code = rom.astype(np.uint8).tobytes()
    touched = np.zeros(n_bytes, dtype=bool)
    for seed in range(400):
        moved = scrambled(code, generator=np.random.default_rng(seed))
        differs = np.frombuffer(moved, np.uint8) != np.frombuffer(code, np.uint8)
        assert sorted(code) == sorted(moved)
        assert 2 <= differs.sum() <= N_MOVED
        touched |= differs
    bank = min(n_bytes, 4096)
    ends = np.arange(n_bytes) % bank >= bank - 16
    assert not touched[ends].any()
    assert all(part.any() for part in np.split(touched, n_bytes // bank))


def test_a_seed_is_a_program():
    """The same generator scrambles alike, another one differently."""
    code = bytes(range(256)) * 16
    first, again, other = (scrambled(code, generator=np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert first == again != other


@ale
def test_no_file_of_the_program_stays(tmp_path, monkeypatch):
    """It loads though its checksum is another; the cartridge of the package is as it was, and no file is left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = rom_path(game("pong")).read_bytes()
    with silenced_stderr():
        machine = ScrambledEmulator(game("pong"), RUNS)
        machine.act(0)
    assert [] == list(tmp_path.iterdir())
    assert before == rom_path(game("pong")).read_bytes()


@ale
def test_rollouts_begin_with_the_ram_of_the_true_state(key):
    """Each is the run of a fresh machine on which the true RAM, then the intervention, was written."""
    other = rollouts(key, RUNS)
    assert np.array_equal(key.question.ram, other.ram)
    assert not np.array_equal(key.question.ram, other.prefix_ram[-1])
    writes = [RamWrite(address, int(value)) for address, value in enumerate(key.question.ram)]
    for interventions in ([], [RamWrite(49, 200)], [RamWrite(54, 0), RamWrite(60, 1)]):
        expected = replay(other.fresh_machine, other.trace, [*writes, *interventions])
        found = other.run(interventions)
        assert np.array_equal(expected.ram, found.ram)
        assert np.array_equal(expected.screen, found.screen)


@ale
def test_effects_are_those_of_the_other_program(key):
    """What a cause does there is the difference of two of its rollouts, for the same causes and outputs."""
    other = rollouts(key, RUNS)
    program = measure_program(protocol("ram-v1"), game("pong"), key.question, other)
    reference = other.run([])
    content = key.question.outputs[0]
    finals = [other.run([cause.intervention]) for cause in key.question.causes]
    address = content.ram_address
    naive_content = [int(final.ram[address]) - int(reference.ram[address]) for final in finals]
    naive_position = [int((final.screen != reference.screen).sum()) for final in finals]
    assert naive_content == program.effects_on(0).tolist()
    assert naive_position == program.effects_on(1).tolist()
    assert program.effects_on(1).tolist() != key.effects[1].tolist()
    asked = program.question(key.question)
    # What the sampler renders is the other program's; this one happens to render the same.
    other_geometry = program.model_copy(update={"geometry": None})
    assert key.question.geometry is not None
    assert other_geometry.question(key.question).geometry is None
    assert (key.question.causes, key.question.outputs) == (asked.causes, asked.outputs)
    assert np.array_equal(key.question.ram, asked.ram)


@ale
def test_a_program_without_a_picture_is_refused(key):
    """A screen of one colour shows nothing to explain."""
    with pytest.raises(
        InvalidState, match=r"^scrambled program: expected a game that runs and draws, got none; try another"
    ):
        rollouts(key, BLANK).reference()
