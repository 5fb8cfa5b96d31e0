"""What the design relies on in ale-py, and how `Emulator` guards against the rest."""

import os
import subprocess
import sys
from pathlib import Path

import ale_py
import numpy as np
import pytest
from ale_py import roms

from games.catalog import Game, game
from games.errors import UnsupportedRom
from oracle.effects import measure
from oracle.emulator import Emulator, require_supported_ale, silenced_stderr, snapshot
from oracle.errors import InvalidState, UnsupportedEmulator
from oracle.ram_v1 import ACTIONS, PREFIX_FRAMES, RamV1
from oracle.rollout import ExactRollouts
from oracle.state import Trace

ale = pytest.mark.ale

# MD5 of the ROMs that ale-py ships and cannot play.
UNPLAYABLE = {
    "combat": "0ef64cdbecccb7049752a3de0b7ade14",
    "joust": "3276c777cbe97cdd2b4a63ffc16b7151",
    "maze_craze": "ed2218b3075d15eaa34e3356025ccca3",
    "warlords": "cbe5a166550a8129a5e6d374901dffad",
}


def played(rom_id, actions=ACTIONS[:PREFIX_FRAMES]):
    """A fresh machine after these actions, at f* of ram-v1 by default."""
    machine = Emulator(game(rom_id))
    for action in actions:
        machine.act(action)
    return machine


@ale
@pytest.mark.parametrize(("rom_id", "rom_md5"), UNPLAYABLE.items())
def test_an_unsupported_rom_is_refused_before_it_is_loaded(rom_id, rom_md5):
    """A ROM that ale-py cannot play raises our error, and the process goes on."""
    unplayable = Game(rom_id=rom_id, title="Unplayable", gymnasium_id="ALE/Unplayable-v5", rom_md5=rom_md5)
    with pytest.raises(UnsupportedRom, match=f"{rom_id}: expected a ROM that ale-py can play, got .*{rom_id}.bin"):
        Emulator(unplayable)


@ale
def test_loading_an_unsupported_rom_ends_the_process():
    """The reason for asking first: `loadROM` itself ends the process with status 1."""
    rom = Path(roms.__file__).parent / "combat.bin"
    program = f"import ale_py, pathlib; ale_py.ALEInterface().loadROM(pathlib.Path({str(rom)!r})); print('alive')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
    assert (1, "") == (ended.returncode, ended.stdout)


@ale
@pytest.mark.parametrize(
    ("rom_id", "n_rows"),
    [("pong", 210), ("carnival", 214), ("pooyan", 220), ("journey_escape", 230), ("air_raid", 250), ("pacman", 250)],
)
def test_screens_have_several_heights(rom_id, n_rows):
    """The screen is 160 wide and as high as the game makes it."""
    assert (n_rows, 160) == Emulator(game(rom_id)).screen().shape


@ale
@pytest.mark.parametrize("rom_id", ["pong", "breakout", "qbert", "tetris", "assault", "tutankham"])
def test_two_fresh_interfaces_agree(rom_id):
    """The same actions on two fresh interfaces give the same RAM, screen, state and reward."""
    first, second = Emulator(game(rom_id)), Emulator(game(rom_id))
    rewards = [(first.act(action), second.act(action)) for action in ACTIONS]
    assert [one for one, _ in rewards] == [other for _, other in rewards]
    assert first.serialized() == second.serialized()
    np.testing.assert_array_equal(first.ram(), second.ram())
    np.testing.assert_array_equal(first.screen(), second.screen())


@ale
def test_a_used_interface_does_not_start_again():
    """The reason for fresh interfaces: `reset_game` on a used one starts `assault` with other RAM."""
    machine = Emulator(game("assault"))
    fresh = machine.ram()
    for action in ACTIONS:
        machine.act(action)
    machine._ale.reset_game()
    assert (machine.ram() != fresh).any()


@ale
def test_one_act_is_one_frame():
    """One `act` plays one frame and repeats no action at random."""
    machine = played("pong", ACTIONS[:7])
    assert machine._ale.getEpisodeFrameNumber() == 7
    assert (0.0, 1) == (machine._ale.getFloat("repeat_action_probability"), machine._ale.getInt("frame_skip"))


@ale
def test_the_screen_is_stale_after_restore():
    """After `restore` the RAM is that of the checkpoint and the screen still the old one, until the next `act`."""
    machine = played("pong")
    checkpoint, ram = machine.checkpoint(), machine.ram()
    machine.act(ACTIONS[PREFIX_FRAMES])
    next_screen = machine.screen()
    for action in ACTIONS[PREFIX_FRAMES + 1 :]:
        machine.act(action)
    last_screen = machine.screen()
    machine.restore(checkpoint)
    np.testing.assert_array_equal(ram, machine.ram())
    np.testing.assert_array_equal(last_screen, machine.screen())
    machine.act(ACTIONS[PREFIX_FRAMES])
    np.testing.assert_array_equal(next_screen, machine.screen())
    assert (next_screen != last_screen).any()


@ale
def test_states_do_not_travel():
    """The reason for replaying: a `qbert` checkpoint continued on another interface gives other RAM."""
    owner, stranger = played("qbert"), Emulator(game("qbert"))
    stranger.restore(owner.checkpoint())
    for action in ACTIONS[PREFIX_FRAMES:]:
        owner.act(action)
        stranger.act(action)
    assert (owner.ram() != stranger.ram()).any()


@ale
def test_acting_after_game_over_does_nothing():
    """After game over, `act` changes neither RAM nor screen and earns nothing."""
    machine = Emulator(game("klax"))
    n_frames = 0
    while not machine.terminal():
        machine.act(ACTIONS[n_frames % len(ACTIONS)])
        n_frames += 1
    ram, screen = machine.ram(), machine.screen()
    assert [0.0] * 5 == [machine.act(3) for _ in range(5)]
    np.testing.assert_array_equal(ram, machine.ram())
    np.testing.assert_array_equal(screen, machine.screen())


@ale
def test_a_trace_over_game_over_is_refused():
    """A trace whose prefix reaches game over is no state: `klax` is over after 451 frames."""
    actions = (ACTIONS * 5)[:460]
    with pytest.raises(InvalidState, match="expected a game that runs at frame 455, got game over"):
        ExactRollouts(lambda: Emulator(game("klax")), Trace(actions, 455))


@ale
def test_a_poke_can_end_the_game_and_is_flagged():
    """Occluding the lives of `breakout` ends the game; the effect is measured and the cause flagged."""
    answer_key = measure(RamV1(), game("breakout"), 0)
    flags = dict(zip((cause.label for cause in answer_key.question.causes), answer_key.flags, strict=True))
    assert ["ram[57]:occlude"] == [label for label, flag in flags.items() if "game_over" in flag]


@ale
def test_an_illegal_instruction_is_silenced_and_flagged(capfd):
    """A poke that makes the program run into data is flagged, and its noise on the C++ stream is not seen."""
    answer_key = measure(RamV1(), game("battle_zone"), 0)
    assert ("ram[47]:set", "illegal_instruction") == (answer_key.question.causes[0].label, answer_key.flags[0])
    assert capfd.readouterr().err == ""


@ale
def test_the_noise_is_there_without_silence(capfd):
    """The reason for silence: the same poke writes `Illegal Instruction` to the file descriptor of stderr."""
    machine = played("battle_zone")
    machine.write_ram(47, (int(machine.ram()[47]) + 17) % 256)
    for action in ACTIONS[PREFIX_FRAMES:]:
        machine.act(action)
    assert "Illegal Instruction" in capfd.readouterr().err


def test_silence_counts_what_was_written(capfd):
    """The silenced stream says how many bytes were written so far, and nothing of them comes through."""
    with silenced_stderr() as n_bytes_written:
        assert n_bytes_written() == 0
        os.write(2, b"12345")
        assert n_bytes_written() == 5
        os.write(2, b"678")
        assert n_bytes_written() == 8
    assert capfd.readouterr().err == ""


def test_silence_ends_with_an_error(capfd):
    """Stderr is put back when the block ends, also after an error, and no descriptor is left open."""
    n_open = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(RuntimeError, match="in the block"), silenced_stderr():
        raise RuntimeError("in the block")
    os.write(2, b"heard")
    assert capfd.readouterr().err == "heard"
    assert n_open == len(list(Path("/proc/self/fd").iterdir()))


@ale
@pytest.mark.parametrize("rom_id", ["pong", "qbert", "tetris", "tutankham", "pitfall2"])
def test_writing_the_own_values_changes_nothing(rom_id):
    """Writing all 128 bytes with the values they have changes neither the state nor the run after it."""
    written, untouched = played(rom_id), played(rom_id)
    for address, value in enumerate(written.ram().tolist()):
        written.write_ram(address, value)
    assert untouched.serialized() == written.serialized()
    for action in ACTIONS[PREFIX_FRAMES:]:
        written.act(action)
        untouched.act(action)
    np.testing.assert_array_equal(untouched.ram(), written.ram())
    np.testing.assert_array_equal(untouched.screen(), written.screen())


@ale
def test_the_paddle_position_is_not_in_ram():
    """Two machines with equal RAM and different paddles run on differently: actions are causes of their own."""
    still, moved = played("breakout"), played("breakout")
    for _ in range(3):
        still.act(0)
        moved.act(3)
    for address, value in enumerate(still.ram().tolist()):
        moved.write_ram(address, value)
    np.testing.assert_array_equal(still.ram(), moved.ram())
    for _ in range(3):
        still.act(0)
        moved.act(0)
    # Byte 72 holds the paddle's column once the program has read the paddle.
    assert still.ram()[72] != moved.ram()[72]


@ale
def test_a_snapshot_holds_copies():
    """A snapshot keeps RAM and screen as they were when the machine runs on."""
    machine = played("pong")
    taken = snapshot(machine, 2.5)
    ram, screen = taken.ram.copy(), taken.screen.copy()
    for action in ACTIONS[PREFIX_FRAMES:]:
        machine.act(action)
    np.testing.assert_array_equal(ram, taken.ram)
    np.testing.assert_array_equal(screen, taken.screen)
    assert (2.5, 0, False) == (taken.reward, taken.lives, taken.terminal)


@ale
def test_an_unknown_version_plays_no_game(monkeypatch):
    """An ale-py whose numbers nobody has checked is refused when a machine is made."""
    monkeypatch.setattr(ale_py, "__version__", "0.99.0")
    with pytest.raises(UnsupportedEmulator, match=r"ale-py: expected 0\.12\.1, got 0\.99\.0; install with"):
        Emulator(game("pong"))


def test_the_installed_version_is_supported():
    """The ale-py of this environment is one that the numbers were checked with."""
    assert ale_py.__version__ == "0.12.1"
    require_supported_ale()
