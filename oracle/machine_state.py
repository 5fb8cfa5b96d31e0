"""Read and edit the serialized state of the console: CPU, RIOT and TIA registers as causes.

`ALEState.serialize()` is a sequence of little-endian 4-byte words and length-prefixed strings, one block per device of
Stella (the emulator inside ALE), each opened by the device's name. The blocks below have a fixed number of words, so a
register is a name in a list; the order is that of Stella's `save` functions. What follows `TIASound` belongs to the
cartridge and differs from game to game; it is carried along untouched.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from games.errors import UnknownName, VeritariError, unknown_name
from oracle.errors import UnknownLayout

# Stella writes a truth value as one of two marker words.
TRUE, FALSE = 0xFAB1FAB2, 0xBAD1BAD2

CPU_REGISTERS = "A X Y SP IR PC N? V? B? D? I? notZ? C? execution_status".split()

RIOT_REGISTERS = [
    "ram_size!",
    *(f"ram[{address}]" for address in range(128)),
    *"timer interval_shift cycles_when_timer_set cycles_when_interrupt_reset".split(),
    *"timer_read_after_interrupt? DDRA DDRB".split(),
]

TIA_REGISTERS = (
    "clock_when_frame_started clock_start_display clock_stop_display clock_at_last_update clocks_to_end_of_scan_line "
    "scanlines_of_last_frame current_scanline VSYNC_finish_clock enabled_objects VSYNC VBLANK NUSIZ0 NUSIZ1 "
    "COLUP0# COLUP1# COLUPF# COLUBK# CTRLPF playfield_priority REFP0? REFP1? PF GRP0 GRP1 DGRP0 DGRP1 "
    "ENAM0? ENAM1? ENABL? DENABL? HMP0 HMP1 HMM0 HMM1 HMBL VDELP0? VDELP1? VDELBL? RESMP0? RESMP1? collision "
    "POSP0 POSP1 POSM0 POSM1 POSBL current_GRP0 current_GRP1 last_HMOVE_clock HMOVE_blank? "
    "cosmic_ark_motion? cosmic_ark_counter dump_enabled? dump_disabled_cycle"
).split()

# One list per device, in the order of the file. A mark behind a name gives its kind: `?` a truth value, `#` a colour
# (the byte repeated four times), `!` part of the format and not to be written, none an unsigned word.
DEVICES: Mapping[str, list[str]] = {"M6502Low": CPU_REGISTERS, "M6532": RIOT_REGISTERS, "TIA": TIA_REGISTERS}
FOLLOWED_BY = {"M6502Low": "M6532", "M6532": "TIA", "TIA": "TIASound"}


@dataclass(frozen=True)
class Register:
    """Where one register lies and how it is stored."""

    offset: int
    kind: str

    def decode(self, word: int) -> int:
        """The register's value from its stored word."""
        if self.kind == "?":
            return int(word == TRUE)
        return word & 0xFF if self.kind == "#" else word

    def encode(self, value: int) -> int:
        """The word that stores `value`."""
        limit = {"?": 1, "#": 0xFF}.get(self.kind, 0xFFFFFFFF)
        if not 0 <= value <= limit:
            raise VeritariError(f"register value: expected 0..{limit}, got {value}; correct it")
        if self.kind == "?":
            return TRUE if value else FALSE
        return value * 0x01010101 if self.kind == "#" else value


class MachineState:
    """A parsed serialized state.

    Raises:
        UnknownLayout: a device is missing, out of order, of another size, or a truth value is no truth value.
    """

    def __init__(self, serialized: bytes) -> None:
        self._bytes = serialized
        self._registers = {device: _registers(serialized, device) for device in DEVICES}

    def read(self, device: str, register: str) -> int:
        """The value of a register, such as `read("TIA", "COLUBK")`."""
        place = self._place(device, register)
        return place.decode(_word(self._bytes, place.offset))

    def with_value(self, device: str, register: str, value: int) -> bytes:
        """The serialized state with one register changed and every other byte as it was.

        Raises:
            VeritariError: the value does not fit, or the word is no register but part of the format.
        """
        place = self._place(device, register)
        if place.kind == "!":
            raise VeritariError(f"{device}.{register}: expected a register, got a word of the format; choose another")
        word = struct.pack("<I", place.encode(value))
        return self._bytes[: place.offset] + word + self._bytes[place.offset + 4 :]

    def _place(self, device: str, register: str) -> Register:
        if device not in self._registers:
            raise unknown_name("device", device, self._registers)
        try:
            return self._registers[device][register]
        except KeyError:
            known: UnknownName = unknown_name(f"register of {device}", register, self._registers[device])
            raise known from None


def _registers(serialized: bytes, device: str) -> dict[str, Register]:
    names = DEVICES[device]
    start = _after_name(serialized, device)
    end = start + 4 * len(names)
    following = _prefixed(FOLLOWED_BY[device])
    if serialized[end : end + len(following)] != following:
        raise UnknownLayout(
            f"emulator state: expected {len(names)} words of {device} and then {FOLLOWED_BY[device]}, got another "
            "layout; install the ale-py of constraints.txt"
        )
    registers = {}
    for index, marked in enumerate(names):
        kind = marked[-1] if marked[-1] in "?#!" else ""
        offset = start + 4 * index
        if kind == "?" and _word(serialized, offset) not in (TRUE, FALSE):
            raise UnknownLayout(
                f"emulator state: {device}.{marked[:-1]}: expected a truth value; install the ale-py of constraints.txt"
            )
        registers[marked.rstrip("?#!")] = Register(offset, kind)
    return registers


def _after_name(serialized: bytes, device: str) -> int:
    name = _prefixed(device)
    if serialized.count(name) != 1:
        raise UnknownLayout(
            f"emulator state: expected the device {device} once, found it {serialized.count(name)} times; "
            "install the ale-py of constraints.txt"
        )
    return serialized.index(name) + len(name)


def _prefixed(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode()


def _word(serialized: bytes, offset: int) -> int:
    return int.from_bytes(serialized[offset : offset + 4], "little")
