"""`veritari games verify`: names beside measured roles, and what is written where."""

import json
import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from games.catalog import TABLES, game, game_ids, read_table
from games.errors import BrokenTable
from harness import roles as roles_module
from harness.api import Silent
from harness.cli import app
from harness.errors import CannotWrite, WrongUsage
from harness.pool import Limits
from harness.roles import agrees, expected_roles, named_table, require_fitting, roles_of_games, summary, write_roles
from oracle.protocol import protocol
from oracle.store import store_key

LIMITS = Limits(workers=2, timeout_seconds=100.0, memory_gib=4.0)
TABLE = """# Kept.
title = "Pong"   # a comment
rom_md5 = "60e0ea3cbe0913d39803477945e9e5ec"

named_bytes = [
    { address = 49, name = "ball_x", source = "AtariARI" },   # the ball
    { address = 4, name = "role = }", source = "OCAtari" },\r
    # { address = 4, name = "none", source = "OCAtari" },
    { address = 13, name = "score", source = "OCAtari" }
]
gymnasium_id = "ALE/Pong-v5"
"""
WRITTEN = TABLE.replace('"AtariARI" }', '"AtariARI", role = "x", evidence = "x, slope +1.00 (state 1)" }').replace(
    '"role = }", source = "OCAtari"', '"role = }", source = "OCAtari", role = "nothing", evidence = "none (a)"'
)
ROWS = {49: ("x", "x, slope +1.00 (state 1)"), 4: ("nothing", "none (a)")}


# --- names ---


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, "x xy") for name in ("x", "ball_x", "ball.x", "enemy_car_x[3]", "enemy_x1", "x0", "player_column")),
        *((name, "xy y") for name in ("y", "ball_y", "enemy_y3", "player_missile_y2", "third_row", "coil_prev_y")),
        *((name, "x xy y") for name in ("xy", "player.xy", "player._xy", "p2s.hook_position")),
        *((name, "score") for name in ("score", "score_1_2", "SCORE[0]", "score.value", "player_score_low", "scorev")),
        *((name, "lives") for name in ("lives", "num_lives", "life", "lives.lives", "lives_v", "lifeu.value")),
        # The last word decides: these are about something else.
        *((name, "") for name in ("player_score_sprite", "num_lives_direction", "x_drift", "targets_row_variation")),
        *((name, "") for name in ("None", "value", "v", "[3]", "box", "basex", "exy", "health", "player_direction")),
    ],
)
def test_the_last_word_of_a_name_says_what_to_expect(name, expected):
    """The roles that agree with a name are those of its last word, numbers and fillers passed over."""
    assert expected == " ".join(sorted(expected_roles(name)))


@pytest.mark.parametrize(
    ("name", "role", "expected"),
    [
        ("ball_x", "x", "yes"),
        ("ball_x", "xy", "yes"),
        ("ball_x", "y", "no"),
        ("ball.xy", "y", "yes"),
        ("ball.xy", "appearance", "no"),
        ("score", "score", "yes"),
        ("score", "lives", "no"),
        ("lives", "nothing", "no"),
        ("level", "nothing", "unclear"),
        ("ball_x", None, "unclear"),
    ],
)
def test_a_name_agrees_with_what_it_leads_to_expect(name, role, expected):
    """A role that the name stands for agrees, another does not, and without either it is unclear."""
    assert expected == agrees(name, role)


def test_every_committed_name_has_been_measured():
    """All named bytes of all games have a role with its evidence."""
    assert [] == [
        (rom_id, byte.address) for rom_id in game_ids() for byte in game(rom_id).named_bytes if byte.role is None
    ]


def test_roles_do_not_change_store_keys():
    """What was measured of a byte is no part of the key under which effects are stored."""
    chosen, pong = protocol("ram-v1"), game("pong")
    bare = tuple(byte.model_copy(update={"role": None, "evidence": None}) for byte in pong.named_bytes)
    assert store_key(chosen, pong, 0) == store_key(chosen, pong.model_copy(update={"named_bytes": bare}), 0)


# --- tables ---


@pytest.fixture
def table(tmp_path):
    """A table with comments, an odd order, two kinds of line ends and a name that looks like TOML."""
    path = tmp_path / "pong.toml"
    path.write_bytes(TABLE.encode())
    return path


def test_writing_keeps_every_other_byte(table):
    """Role and evidence are added to the rows that were measured, and nothing else changes."""
    write_roles(table, ROWS)
    assert WRITTEN == table.read_bytes().decode()
    assert [*ROWS.values(), (None, None)] == [(byte.role, byte.evidence) for byte in read_table(table).named_bytes]


def test_writing_twice_changes_nothing(table):
    """The same measurements again leave the same file, and others take the place of the first."""
    write_roles(table, ROWS)
    write_roles(table, ROWS)
    assert WRITTEN == table.read_bytes().decode()
    write_roles(table, {49: ("y", "other")})
    expected = WRITTEN.replace('role = "x", evidence = "x, slope +1.00 (state 1)"', 'role = "y", evidence = "other"')
    assert expected == table.read_bytes().decode()


@pytest.mark.parametrize(
    "row",
    [
        '{ name = "ball_x", address = 49, source = "AtariARI" }',
        '{address=49,name="ball_x",source="AtariARI"}',
        '{ address = 49, source = "AtariARI", name = "ball_x" }',
    ],
)
def test_another_layout_is_refused(table, row):
    """A table whose rows are laid out in another way is not written, half or at all."""
    content = TABLE.replace('{ address = 49, name = "ball_x", source = "AtariARI" }', row).encode()
    table.write_bytes(content)
    with pytest.raises(BrokenTable, match=r"pong\.toml: expected one row per line, .* nothing was written"):
        write_roles(table, ROWS)
    assert content == table.read_bytes()


@pytest.mark.parametrize("rows", [{49: ("sprite", "seen")}, {49: ("x", 'a "b"')}])
def test_a_wrong_measurement_is_not_written(table, rows):
    """What the loader would refuse never gets into a table."""
    with pytest.raises(BrokenTable, match=r"pong\.toml: "):
        write_roles(table, rows)
    assert TABLE.encode() == table.read_bytes()


# --- games ---


@pytest.mark.ale
def test_committed_roles_are_measured_again(tmp_path, monkeypatch):
    """Without what was measured, the tables of Pong and Freeway become the committed ones again, byte by byte."""
    committed = {name: (TABLES / f"{name}.toml").read_bytes() for name in ("pong", "freeway")}
    for name, content in committed.items():
        bare = re.sub(rb', role = "\w+", evidence = "[^"]*"', b"", content)
        assert bare != content
        (tmp_path / f"{name}.toml").write_bytes(bare)
    monkeypatch.setattr(roles_module, "TABLES", tmp_path)
    finished = CliRunner().invoke(app, ["games", "verify", "--games", "pong,freeway", "--workers", "2", "--write"])
    assert (0, committed) == (
        finished.exit_code,
        {name: (tmp_path / f"{name}.toml").read_bytes() for name in committed},
    )
    assert "2 games, 22 bytes measured; 22 names agree: 15 yes, 7 no, 0 unclear" in finished.output


@pytest.mark.ale
def test_all_bytes_of_a_game_without_names(tmp_path):
    """All 128 bytes are written, those that do something visible are printed, and no name is needed."""
    out = tmp_path / "rows.csv"
    finished = CliRunner().invoke(
        app,
        [
            *("games", "verify", "--games", "adventure", "--states", "1", "--workers", "1"),
            *("--all-bytes", "--json", "--out", str(out)),
        ],
    )
    rows = pd.read_csv(out, keep_default_na=False)
    assert (0, list(range(128)), {""}) == (finished.exit_code, rows["address"].tolist(), set(rows["name"]))
    visible = rows[~rows["role"].isin(["internal", "nothing"])]
    printed = json.loads(finished.output[finished.output.index("[\n") :])
    assert visible.to_dict("records") == printed
    assert 0 < len(visible) < 128
    assert "x" in set(visible["role"])
    # Where there is no name, nothing agrees or does not.
    assert {""} == set(rows["agrees"])


@pytest.mark.ale
def test_a_game_that_could_not_be_measured_says_why():
    """A state that runs out of time leaves its game out, with the reason."""
    limits = Limits(workers=1, timeout_seconds=0.1, memory_gib=4.0)
    table, problems = roles_of_games([game("pong")], n_states=1, all_bytes=True, limits=limits, progress=Silent())
    assert (0, {"pong": "state 0: no answer within 0.1 s"}) == (len(table), problems)


def test_games_without_names_are_refused():
    """Without a name there is nothing to verify, and the error says how to measure all the same."""
    with pytest.raises(WrongUsage, match="expected one with named bytes, got none; add --all-bytes"):
        roles_of_games([game("adventure")], n_states=1, all_bytes=False, limits=LIMITS, progress=Silent())


def test_options_that_do_not_fit_are_refused(tmp_path):
    """All bytes have no place in a table, and a file says its kind by its end."""
    with pytest.raises(WrongUsage, match="--write: expected without --all-bytes"):
        require_fitting(all_bytes=True, write=True, out=None)
    with pytest.raises(WrongUsage, match=r"--out: expected a file that ends in \.json or \.csv, got .*rows\.txt"):
        require_fitting(all_bytes=True, write=False, out=tmp_path / "rows.txt")


def test_both_kinds_of_file_hold_all_rows(tmp_path):
    """JSON and CSV have the same rows, and a place that can't be written is named."""
    table = named_table(game("pong"))
    for kind in ("json", "csv"):
        roles_module.write_table(table, tmp_path / f"rows.{kind}")
    read = [pd.read_json(tmp_path / "rows.json"), pd.read_csv(tmp_path / "rows.csv")]
    for each in read:
        pd.testing.assert_frame_equal(table, each, check_dtype=False)
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite, match=r"rows\.csv: expected a file that can be written, got"):
        roles_module.write_table(table, tmp_path / "file" / "rows.csv")


def test_a_game_is_shown_with_what_was_measured():
    """`veritari games show` has role, evidence and agreement of every named byte."""
    finished = CliRunner().invoke(app, ["games", "show", "pong", "--json"])
    [ball] = [row for row in json.loads(finished.output)["named_bytes"] if row["address"] == 49]
    expected = {
        "address": 49,
        "name": "ball_x",
        "source": "AtariARI",
        "role": "x",
        "evidence": "x, slope +1.00 (state 0)",
        "agrees": "yes",
    }
    assert expected == ball


def test_the_summary_counts_names():
    """Names are counted by agreement; bytes without a name are measured but agree with nothing."""
    rows = [("pong", 1, "x", "x", "", "yes"), ("pong", 2, "", "x", "", ""), ("qbert", 1, "y", "x", "", "no")]
    table = pd.DataFrame(rows, columns=roles_module.COLUMNS)
    assert "2 games, 3 bytes measured; 2 names agree: 1 yes, 1 no, 0 unclear" == summary(table)
