"""The games that can be played, read from `tables/<rom id>.toml`, and the named sets of `sets.toml`.

Sources of the named bytes: AtariARI (Anand et al. 2019, arXiv 1906.08226) and OCAtari (Delfosse et al. 2024,
arXiv 2306.08649). They are labels for people. What poking a byte does is measured (`oracle.roles`) and stands beside
its name: `veritari games verify --write` writes it there.
"""

import hashlib
import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from ale_py import roms
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from games.errors import BrokenTable, RomMismatch, UnsupportedRom, unknown_name

TABLES = Path(__file__).parent / "tables"
SETS = Path(__file__).parent / "sets.toml"

# What a byte does, the strongest first; `oracle.roles` says how each is measured.
Role = Literal["x", "y", "xy", "lives", "score", "appearance", "internal", "nothing"]


class NamedByte(BaseModel):
    """One RAM byte with the name that a published annotation gives it.

    `role` and `evidence` are what was measured, whatever the name says; both are None where nobody has.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    address: Annotated[int, Field(ge=0, le=127)]
    name: Annotated[str, Field(min_length=1)]
    source: Literal["AtariARI", "OCAtari"]
    role: Role | None = None
    # It stands between plain quotes in its table.
    evidence: Annotated[str, Field(pattern=r"^[^\"\\\n]+$")] | None = None

    @model_validator(mode="after")
    def _a_role_has_its_evidence(self) -> "NamedByte":
        if (self.role is None) != (self.evidence is None):
            raise ValueError(
                f"expected role and evidence together, got {'evidence' if self.evidence else 'role'} alone"
            )
        return self


class Game(BaseModel):
    """An ALE title. `named_bytes` keeps the order of its table, which protocol ram-v1 depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rom_id: str
    title: Annotated[str, Field(min_length=1)]
    gymnasium_id: Annotated[str, Field(pattern=r"^ALE/\w+-v5$")]
    rom_md5: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    named_bytes: tuple[NamedByte, ...] = ()

    @field_validator("named_bytes", mode="before")
    @classmethod
    def _rows(cls, rows: object) -> object:
        """TOML has no tuples, and strict validation takes nothing else."""
        return tuple(rows) if isinstance(rows, list) else rows

    @field_validator("named_bytes")
    @classmethod
    def _addresses_are_unique(cls, rows: tuple[NamedByte, ...]) -> tuple[NamedByte, ...]:
        first_row: dict[int, int] = {}
        for row, byte in enumerate(rows, start=1):
            if byte.address in first_row:
                raise ValueError(f"row {row}: address {byte.address} stands already in row {first_row[byte.address]}")
            first_row[byte.address] = row
        return rows


def read_table(path: Path) -> Game:
    """The game described by one table file.

    Raises:
        BrokenTable: not TOML, or a wrong key, type, address; the message names file, row and reason.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BrokenTable(f"{path}: expected a TOML table, got a file that does not parse: {error}") from error
    if "rom_id" in content:
        raise BrokenTable(f"{path}: rom_id: unexpected key; the file's name is the ROM id, so delete the line")
    try:
        return Game(rom_id=path.stem, **content)
    except ValidationError as error:
        reasons = "; ".join(_reason(detail["loc"], detail["msg"]) for detail in error.errors())
        raise BrokenTable(f"{path}: {reasons}; correct the table") from error


def _reason(location: tuple[int | str, ...], message: str) -> str:
    """pydantic's location in the words of someone who has the file open: rows count from 1."""
    places = [f"row {place + 1}" if isinstance(place, int) else place for place in location]
    return f"{', '.join(places)}: {message.removeprefix('Value error, ')}"


@cache
def game_ids() -> tuple[str, ...]:
    """ROM ids of all games, sorted."""
    return tuple(sorted(path.stem for path in TABLES.glob("*.toml")))


@cache
def game(rom_id: str) -> Game:
    """The game with this ROM id.

    Raises:
        UnsupportedRom: a ROM that ships with ale-py but that the emulator cannot play.
        UnknownName: no such game.
        BrokenTable: its table is broken.
    """
    if rom_id in game_ids():
        return read_table(TABLES / f"{rom_id}.toml")
    if rom_id in roms.get_all_rom_ids():
        raise UnsupportedRom(f"{rom_id}: ale-py ships this ROM but cannot play it; choose another game")
    raise unknown_name("game", rom_id, game_ids())


@cache
def game_sets() -> dict[str, tuple[str, ...]]:
    """The named sets of games: `core`, `scored`, `all`."""
    sets = tomllib.loads(SETS.read_text(encoding="utf-8"))
    return {name: tuple(members) for name, members in sets.items()} | {"all": game_ids()}


def select_games(selection: str) -> tuple[Game, ...]:
    """The games of a set (`core`) or of a comma-separated list of ROM ids and sets (`pong,breakout`), each once.

    >>> [each.rom_id for each in select_games("pong,core")][:3]
    ['pong', 'breakout', 'space_invaders']

    Raises:
        UnknownName: a part is neither a set nor a game.
    """
    sets = game_sets()
    chosen: dict[str, Game] = {}
    for part in (piece.strip() for piece in selection.split(",")):
        if part not in sets and part not in game_ids() and part not in roms.get_all_rom_ids():
            raise unknown_name("game or set", part, (*game_ids(), *sets))
        for rom_id in sets.get(part, (part,)):
            chosen[rom_id] = game(rom_id)
    return tuple(chosen.values())


def rom_path(played: Game) -> Path:
    """Where ale-py keeps the ROM, after its MD5 has been compared with the table's.

    Raises:
        RomMismatch: the file is missing or another one.
    """
    path = Path(roms.__file__).parent / f"{played.rom_id}.bin"
    try:
        found = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    except OSError as error:
        raise RomMismatch(f"{played.rom_id}: expected its ROM at {path}, got {error}; reinstall ale-py") from error
    if found != played.rom_md5:
        raise RomMismatch(f"{path}: expected MD5 {played.rom_md5}, got {found}; reinstall ale-py")
    return path
