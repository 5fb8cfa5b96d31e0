"""Causes and the interventions that change them. Plain values: nothing here reaches the emulator."""

from dataclasses import dataclass

from games.errors import VeritariError


@dataclass(frozen=True, order=True)
class RamWrite:
    """do(RAM[address] := value): one byte, once, before the first frame of the tail."""

    address: int
    value: int

    def __post_init__(self) -> None:
        _require_byte("RAM value", self.value)


@dataclass(frozen=True, order=True)
class RegisterWrite:
    """do(device[register] := value), once, before the first frame of the tail; see `oracle.machine_state`."""

    device: str
    register: str
    value: int


@dataclass(frozen=True, order=True)
class ActionWrite:
    """do(action of tail frame `offset` := action); the first tail frame has offset 0."""

    offset: int
    action: int

    def __post_init__(self) -> None:
        if not 0 <= self.action <= 17:
            raise VeritariError(f"action: expected an ALE action id 0..17, got {self.action}")


Intervention = RamWrite | RegisterWrite | ActionWrite


@dataclass(frozen=True)
class Cause:
    """Something we may intervene on.

    Attributes:
        label: unique within a task, such as `ram[49]:set`.
        intervention: what measures its effect.
        removal: what stands for "absent" in deletion and insertion curves; None where removing changes nothing.
        ram_address: the byte it belongs to; None for causes outside RAM.
        vacuous: the intervention sets the value that is there already, so its effect is zero by construction.
    """

    label: str
    intervention: Intervention
    removal: Intervention | None
    ram_address: int | None
    vacuous: bool


def _require_byte(what: str, value: int) -> None:
    if not 0 <= value <= 255:
        raise VeritariError(f"{what}: expected a byte 0..255, got {value}")
