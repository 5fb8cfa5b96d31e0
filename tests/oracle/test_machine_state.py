"""Reading and editing the serialized state of the console."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from games.catalog import game
from games.errors import UnknownName, VeritariError
from oracle.emulator import Emulator
from oracle.errors import UnknownLayout
from oracle.machine_state import DEVICES, FALSE, TRUE, MachineState
from oracle.ram_v1 import ACTIONS, PREFIX_FRAMES

ALL_REGISTERS = [
    (device, marked.rstrip("?#"), marked[-1])
    for device, names in DEVICES.items()
    for marked in names
    if marked[-1] != "!"
]


def text(name):
    """A string as the state holds it, its length before it."""
    return struct.pack("<I", len(name)) + name.encode()


def block(device, n_words=None, word=7):
    """A device of a made-up state: its name and its words, truth values true and colours a byte repeated."""
    stored = {"?": TRUE, "#": 0x0E0E0E0E}
    words = [stored.get(name[-1], word) for name in DEVICES[device]][:n_words]
    return text(device) + struct.pack(f"<{len(words)}I", *words)


def made_up_state(*, cpu=None, riot=None, tia=None):
    """A state with the three devices, any of which can be replaced."""
    devices = (cpu or block("M6502Low"), riot or block("M6532"), tia or block("TIA"))
    return b"".join([text("System"), b"\0" * 4, *devices, text("TIASound"), b"\1\2\3"])


@pytest.fixture(scope="module")
def pong():
    """`pong` at f* of ram-v1."""
    machine = Emulator(game("pong"))
    for action in ACTIONS[:PREFIX_FRAMES]:
        machine.act(action)
    return machine


def test_a_made_up_state_is_read():
    """Plain words, truth values and colours are each read in their own way."""
    state = MachineState(made_up_state(cpu=block("M6502Low", word=0x01020304)))
    found = (state.read("M6502Low", "PC"), state.read("M6502Low", "N"), state.read("TIA", "COLUBK"))
    # A word as it is, a marker word as 1, a colour as the byte that is repeated four times.
    assert (0x01020304, 1, 0x0E) == found


@pytest.mark.parametrize(("device", "register", "kind"), ALL_REGISTERS)
def test_every_register_reads_back_what_was_written(device, register, kind):
    """An edit changes the four bytes of its register at most, and the register reads back the value."""
    original = made_up_state()
    value = 0 if kind == "?" else 0xA5
    edited = MachineState(original).with_value(device, register, value)
    assert value == MachineState(edited).read(device, register)
    changed = [index for index, pair in enumerate(zip(original, edited, strict=True)) if pair[0] != pair[1]]
    assert changed[-1] - changed[0] < 4
    present = MachineState(original).read(device, register)
    assert original == MachineState(edited).with_value(device, register, present)


def test_every_register_has_its_own_place():
    """Writing all registers one after the other leaves every one with its own value: no two share a word."""
    content = made_up_state()
    values = {}
    for number, (device, register, kind) in enumerate(ALL_REGISTERS):
        values[device, register] = number % 2 if kind == "?" else number % 256
        content = MachineState(content).with_value(device, register, values[device, register])
    state = MachineState(content)
    assert values == {(device, register): state.read(device, register) for device, register, _ in ALL_REGISTERS}


def test_a_truth_value_is_stored_as_its_marker():
    """True and false are the two marker words of the emulator, not 1 and 0."""
    state = MachineState(made_up_state())
    falsified = state.with_value("M6502Low", "N", 0)
    # N is the seventh word of the processor.
    offset = falsified.index(text("M6502Low")) + len(text("M6502Low")) + 6 * 4
    assert FALSE == int.from_bytes(falsified[offset : offset + 4], "little")
    assert TRUE == int.from_bytes(state.with_value("M6502Low", "N", 1)[offset : offset + 4], "little")


@given(st.binary(max_size=400))
@example(b"")
@example(text("M6502Low"))
@example(text("M6502Low") + text("M6532") + text("TIA") + text("TIASound"))
def test_arbitrary_bytes_are_an_unknown_layout(content):
    """Bytes that are no state are refused with our own error, whatever they are."""
    with pytest.raises(UnknownLayout, match="emulator state: expected"):
        MachineState(content)


@given(st.data())
def test_a_damaged_state_is_parsed_or_refused(data):
    """Cutting a piece out of a state, or putting one in, gives a state or an unknown layout, and no other error."""
    content = made_up_state()
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, len(content)))
    inserted = data.draw(st.binary(max_size=12))
    damaged = content[:start] + inserted + content[stop:]
    try:
        state = MachineState(damaged)
    except UnknownLayout:
        return
    # It was accepted, so every register can be written back; only a colour's four bytes may have been made to differ.
    for device, register, kind in ALL_REGISTERS:
        assert kind == "#" or damaged == state.with_value(device, register, state.read(device, register))


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        ("M6502Low", "expected the device M6502Low once, found it 0 times"),
        ("M6532", "expected 14 words of M6502Low and then M6532"),
        ("TIA", "expected 136 words of M6532 and then TIA"),
    ],
)
def test_a_missing_device_is_refused(device, reason):
    """A state without one of the devices is refused, and the message names it."""
    content = made_up_state().replace(text(device), text("X" * len(device)))
    with pytest.raises(UnknownLayout, match=reason):
        MachineState(content)


@pytest.mark.parametrize("device", DEVICES)
def test_a_duplicated_device_is_refused(device):
    """A state in which a device stands twice is refused: nobody could say which one counts."""
    with pytest.raises(UnknownLayout, match=f"expected the device {device} once, found it 2 times"):
        MachineState(made_up_state() + block(device))


@pytest.mark.parametrize(("device", "following"), [("M6502Low", "M6532"), ("M6532", "TIA"), ("TIA", "TIASound")])
def test_a_device_of_another_size_is_refused(device, following):
    """A device that lacks its last word is refused: every register behind the gap would be misread."""
    key = {"M6502Low": "cpu", "M6532": "riot", "TIA": "tia"}[device]
    shorter = block(device, n_words=len(DEVICES[device]) - 1)
    with pytest.raises(UnknownLayout, match=rf"expected {len(DEVICES[device])} words of {device} and then {following}"):
        MachineState(made_up_state(**{key: shorter}))


def test_a_wrong_truth_value_is_refused():
    """A truth value that is neither of the two markers is refused, and the message names the register."""
    content = made_up_state()
    offset = content.index(text("M6502Low")) + len(text("M6502Low")) + 6 * 4
    with pytest.raises(UnknownLayout, match=r"M6502Low\.N: expected a truth value"):
        MachineState(content[:offset] + struct.pack("<I", 1) + content[offset + 4 :])


def test_an_unknown_register_answers_with_the_nearest():
    """A misspelt register is answered with the nearest names of its device."""
    with pytest.raises(UnknownName, match=r"unknown register of TIA 'COLUBG'; did you mean .*COLUBK"):
        MachineState(made_up_state()).read("TIA", "COLUBG")


def test_an_unknown_device_answers_with_the_known_ones():
    """A misspelt device is answered with the nearest name and the full list."""
    with pytest.raises(UnknownName, match=r"unknown device 'M6502'; did you mean .*M6502Low\? Known: M6502Low, M65"):
        MachineState(made_up_state()).with_value("M6502", "A", 0)


@pytest.mark.parametrize(
    ("device", "register", "value", "limit"),
    [
        ("M6502Low", "N", 2, 1),
        ("TIA", "COLUBK", 256, 255),
        ("M6532", "timer", 2**32, 2**32 - 1),
        ("M6532", "timer", -1, 2**32 - 1),
    ],
)
def test_a_value_that_does_not_fit_is_refused(device, register, value, limit):
    """A value outside the register's range is refused, with the range."""
    with pytest.raises(VeritariError, match=rf"register value: expected 0\.\.{limit}, got {value}"):
        MachineState(made_up_state()).with_value(device, register, value)


@pytest.mark.ale
@pytest.mark.parametrize("rom_id", ["pong", "venture", "qbert", "pitfall2"])
def test_ram_of_the_state_is_the_ram(rom_id):
    """The RAM words of a real state are the bytes that the emulator reports as RAM, cell by cell."""
    machine = Emulator(game(rom_id))
    for action in ACTIONS[:PREFIX_FRAMES]:
        machine.act(action)
    state = MachineState(machine.serialized())
    assert machine.ram().tolist() == [state.read("M6532", f"ram[{address}]") for address in range(128)]
    assert state.read("M6532", "ram_size") == 128


@pytest.mark.ale
def test_the_emulator_takes_every_edit(pong):
    """For every register of every device, the emulator restores the edited state and serializes it back unchanged."""
    checkpoint, original = pong.checkpoint(), pong.serialized()
    for device, register, kind in ALL_REGISTERS:
        present = pong.read_register(device, register)
        value = 1 - present if kind == "?" else (present + 1) % 256
        edited = MachineState(original).with_value(device, register, value)
        pong.write_register(device, register, value)
        assert value == pong.read_register(device, register), register
        assert edited == pong.serialized(), register
        pong.restore(checkpoint)
        assert original == pong.serialized(), register


@pytest.mark.ale
def test_names_stand_for_what_the_hardware_does(pong):
    """What console programs set up is found under its name: flags and stack of the processor, playfield control."""
    cpu = {register: pong.read_register("M6502Low", register) for register in ("I", "D", "SP")}
    # The first instructions of a cartridge forbid interrupts, leave decimal mode and put the stack at its top.
    assert {"I": 1, "D": 0, "SP": 0xFF} == cpu
    # Bit 2 of CTRLPF lays the playfield over the sprites: set in `pong` (0x15), not in `venture` (0x01).
    venture = Emulator(game("venture"))
    for action in ACTIONS[:PREFIX_FRAMES]:
        venture.act(action)
    found = [[each.read_register("TIA", name) for name in ("CTRLPF", "playfield_priority")] for each in (pong, venture)]
    assert [[0x15, 0x80], [0x01, 0]] == found


@pytest.mark.ale
def test_writing_back_what_was_read_changes_nothing(pong):
    """Writing every register's own value gives the real state back, byte for byte: nothing is lost in decoding."""
    original = pong.serialized()
    state = MachineState(original)
    for device, register, _ in ALL_REGISTERS:
        assert original == state.with_value(device, register, state.read(device, register)), register


@pytest.mark.ale
@pytest.mark.parametrize(("rom_id", "n_changed"), [("venture", 23297), ("pong", 0)])
def test_the_background_colour_changes_the_published_pixels(rom_id, n_changed):
    """do(COLUBK := 0x0E) at f* of ram-v1 changes as many pixels at frame 105 as the published audit found."""
    machine = Emulator(game(rom_id))
    for action in ACTIONS[:PREFIX_FRAMES]:
        machine.act(action)
    checkpoint = machine.checkpoint()
    for action in ACTIONS[PREFIX_FRAMES:]:
        machine.act(action)
    reference = machine.screen()
    machine.restore(checkpoint)
    machine.write_register("TIA", "COLUBK", 0x0E)
    for action in ACTIONS[PREFIX_FRAMES:]:
        machine.act(action)
    assert n_changed == (machine.screen() != reference).sum()


def test_a_word_of_the_format_is_no_register_to_write():
    """ALE refuses a state with another size of RAM, so that word can be read but not written."""
    with pytest.raises(VeritariError, match=r"M6532.ram_size: expected a register, got a word of the format"):
        MachineState(made_up_state()).with_value("M6532", "ram_size", 64)
