"""The catalogue of games: complete, and the same as what ale-py ships and gymnasium registers."""

import hashlib
import shutil
from pathlib import Path

import gymnasium
import pytest
from ale_py import roms

from games.catalog import game, game_ids, game_sets, rom_path, select_games
from games.errors import RomMismatch, UnknownName, UnsupportedRom

SHIPPED_ROMS = Path(roms.__file__).parent
UNPLAYABLE = ("combat", "joust", "maze_craze", "warlords")


def test_there_are_104_games():
    """Every ROM that ale-py ships is a game, but for the four that it cannot play."""
    assert sorted(set(roms.get_all_rom_ids()) - set(UNPLAYABLE)) == list(game_ids())
    assert len(game_ids()) == 104


@pytest.mark.parametrize("rom_id", game_ids())
def test_the_rom_is_the_one_that_ships(rom_id):
    """The MD5 in the table is that of the ROM inside ale-py."""
    shipped = (SHIPPED_ROMS / f"{rom_id}.bin").read_bytes()
    assert hashlib.md5(shipped, usedforsecurity=False).hexdigest() == game(rom_id).rom_md5
    assert SHIPPED_ROMS / f"{rom_id}.bin" == rom_path(game(rom_id))


def test_every_gymnasium_id_is_registered_for_its_rom():
    """The gymnasium id of every game is registered by ale-py, and for the very ROM of that game."""
    registered = {rom_id: gymnasium.spec(game(rom_id).gymnasium_id).kwargs["game"] for rom_id in game_ids()}
    assert {rom_id: rom_id for rom_id in game_ids()} == registered


def test_titles_tell_games_apart():
    """No two games share a title, an id or a ROM."""
    for field in ("title", "gymnasium_id", "rom_md5"):
        assert len({getattr(game(rom_id), field) for rom_id in game_ids()}) == 104, field


def test_sets_of_games():
    """The sets are core (6), scored (42) and all (104), without doubles and each inside the next."""
    sets = game_sets()
    assert {"core": 6, "scored": 42, "all": 104} == {name: len(set(members)) for name, members in sets.items()}
    assert {"core": 6, "scored": 42, "all": 104} == {name: len(members) for name, members in sets.items()}
    assert ("pong", "breakout", "space_invaders", "seaquest", "ms_pacman", "qbert") == sets["core"]
    assert set(sets["core"]) < set(sets["scored"]) < set(sets["all"])


def test_games_with_named_bytes():
    """51 games have named bytes, and every scored game is one of them."""
    with_names = {rom_id for rom_id in game_ids() if game(rom_id).named_bytes}
    assert len(with_names) == 51
    assert set(game_sets()["scored"]) <= with_names


PUBLISHED_NAMES = {
    "pong": [
        (13, "enemy_score"),
        (14, "player_score"),
        (45, "enemy_x"),
        (46, "player_x"),
        (49, "ball_x"),
        (50, "enemy_y"),
        (51, "player_y"),
        (54, "ball_y"),
    ],
    "breakout": [
        (30, "block_bit_map"),
        (72, "player_x"),
        (77, "blocks_hit_count"),
        (84, "score"),
        (99, "ball_x"),
        (101, "ball_y"),
        (0, "blocks"),
        (57, "lives"),
        (76, "score"),
    ],
    "battle_zone": [(47, "None"), (48, "None"), (53, "None"), (54, "None"), (74, "con1.xy"), (82, "con1.xy")],
}


@pytest.mark.parametrize("rom_id", PUBLISHED_NAMES)
def test_named_bytes_keep_the_published_order(rom_id):
    """Named bytes stand in the order of the published audit, which is not that of their addresses."""
    assert PUBLISHED_NAMES[rom_id] == [(byte.address, byte.name) for byte in game(rom_id).named_bytes]


def test_named_bytes_say_where_their_name_is_from():
    """Every name has its source, and one game may draw on both."""
    # AtariARI knows the first six bytes of Breakout, OCAtari adds three.
    assert ["AtariARI"] * 6 + ["OCAtari"] * 3 == [byte.source for byte in game("breakout").named_bytes]


@pytest.mark.parametrize("rom_id", UNPLAYABLE)
def test_a_rom_that_cannot_be_played_is_unsupported(rom_id):
    """A ROM that ships but cannot be played is told apart from an unknown name."""
    with pytest.raises(UnsupportedRom, match=f"{rom_id}: ale-py ships this ROM but cannot play it; choose"):
        game(rom_id)


@pytest.mark.parametrize(("name", "nearest"), [("pongg", "pong"), ("mspacman", "ms_pacman"), ("sea-quest", "seaquest")])
def test_an_unknown_game_answers_with_the_nearest(name, nearest):
    """A misspelt game is answered with the nearest first, and the full list."""
    expected = rf"unknown game '{name}'; did you mean {nearest}\b.* Known: adventure, .*zaxxon"
    with pytest.raises(UnknownName, match=expected):
        game(name)


@pytest.mark.parametrize("name", ["", "../sets", "PONG", "pong.toml", "tables/pong"])
def test_a_name_is_never_a_path(name):
    """Only exact ROM ids are games: no path, no file name, no other case."""
    with pytest.raises(UnknownName, match="unknown game"):
        game(name)


def test_selecting_a_set():
    """The name of a set selects its games in the set's order."""
    assert list(game_sets()["scored"]) == [each.rom_id for each in select_games("scored")]


def test_selecting_a_list():
    """A list selects games and sets in its own order, each game once, blanks ignored."""
    selected = [each.rom_id for each in select_games(" qbert, core ,venture,qbert")]
    assert ["qbert", "pong", "breakout", "space_invaders", "seaquest", "ms_pacman", "venture"] == selected


@pytest.mark.parametrize("selection", ["pong,brakeout", "brakeout", "pong brakeout"])
def test_selecting_an_unknown_game_names_it(selection):
    """An unknown part of a list is named, with the nearest games and sets."""
    with pytest.raises(UnknownName, match=r"unknown game or set '.*brakeout'; did you mean .*breakout"):
        select_games(selection)


@pytest.mark.parametrize("selection", ["", "pong,", ",", "pong,,qbert"])
def test_an_empty_part_is_refused(selection):
    """An empty part of a list is an error, not a silently smaller selection."""
    with pytest.raises(UnknownName, match="unknown game or set ''"):
        select_games(selection)


def test_selecting_an_unsupported_rom_says_so():
    """A list with a ROM that cannot be played is refused for that reason."""
    with pytest.raises(UnsupportedRom, match="joust: ale-py ships this ROM but cannot play it"):
        select_games("pong,joust")


def test_a_misspelt_set_answers_with_the_sets():
    """A misspelt set is answered with the set that was meant."""
    with pytest.raises(UnknownName, match="unknown game or set 'scorred'; did you mean scored"):
        select_games("scorred")


@pytest.fixture
def shipped_elsewhere(tmp_path, monkeypatch):
    """A copy of one ROM in a folder of its own, which takes the place of ale-py's."""
    shutil.copy(SHIPPED_ROMS / "pong.bin", tmp_path / "pong.bin")
    monkeypatch.setattr(roms, "__file__", str(tmp_path / "__init__.py"))
    return tmp_path / "pong.bin"


def test_the_right_rom_is_found(shipped_elsewhere):
    """A ROM with the right MD5 is given by its path."""
    assert shipped_elsewhere == rom_path(game("pong"))


def test_another_rom_is_refused(shipped_elsewhere):
    """A ROM with one byte changed is refused with both checksums and what to do."""
    content = bytearray(shipped_elsewhere.read_bytes())
    content[100] ^= 1
    shipped_elsewhere.write_bytes(content)
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    expected = f"pong.bin: expected MD5 {game('pong').rom_md5}, got {found}; reinstall ale-py"
    with pytest.raises(RomMismatch, match=expected):
        rom_path(game("pong"))


def test_a_missing_rom_is_refused(shipped_elsewhere):
    """A ROM that is not there is refused with the path where it was expected."""
    shipped_elsewhere.unlink()
    with pytest.raises(RomMismatch, match=r"pong: expected its ROM at .*pong\.bin, got .*No such file.*; reinstall"):
        rom_path(game("pong"))
