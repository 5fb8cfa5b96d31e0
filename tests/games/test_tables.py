"""A broken table is refused with its file, its row and the reason."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from games.catalog import game, read_table
from games.errors import BrokenTable

MD5 = "60e0ea3cbe0913d39803477945e9e5ec"
HEAD = f"""title = "Pong"
gymnasium_id = "ALE/Pong-v5"
rom_md5 = "{MD5}"
"""


def row(address="13", name='"enemy_score"', source='"AtariARI"', more=""):
    """One row of a table; every value is TOML text."""
    return f"    {{ address = {address}, name = {name}, source = {source}{more} }},\n"


def rows(*written):
    """A whole table with these rows."""
    return HEAD + "named_bytes = [\n" + "".join(written) + "]\n"


@pytest.fixture
def broken(tmp_path):
    """Writes a table and gives the text of the error that it raises."""

    def error_of(content):
        path = tmp_path / "pong.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(BrokenTable, match=r"pong\.toml: ") as raised:
            read_table(path)
        return str(raised.value)

    return error_of


def test_a_whole_table_is_read(tmp_path):
    """A table that follows the format gives its game, the ROM id from the file's name."""
    path = tmp_path / "pong.toml"
    path.write_text(rows(row(), row("127", '"last"', '"OCAtari"'), row("0", '"first"')), encoding="utf-8")
    found = read_table(path)
    assert ("pong", "Pong", "ALE/Pong-v5") == (found.rom_id, found.title, found.gymnasium_id)
    assert [13, 127, 0] == [byte.address for byte in found.named_bytes]


def test_a_table_without_named_bytes_is_whole(tmp_path):
    """Named bytes may be missing: half of the games have none."""
    path = tmp_path / "pong.toml"
    path.write_text(HEAD, encoding="utf-8")
    assert read_table(path).named_bytes == ()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("128", "less than or equal to 127"),
        ("-1", "greater than or equal to 0"),
        ('"5"', "valid integer"),
        ("5.0", "valid integer"),
        ("true", "valid integer"),
    ],
)
def test_a_wrong_address_is_refused(broken, address, reason):
    """An address outside RAM, or one that is no integer, is refused with its row, counted from 1."""
    message = broken(rows(row(), row(address)))
    assert "named_bytes, row 2, address: " in message
    assert reason in message


def test_a_double_address_is_refused(broken):
    """An address that stands twice is refused with both rows."""
    message = broken(rows(row(), row("7"), row("13", '"other"')))
    assert "named_bytes: row 3: address 13 stands already in row 1; correct the table" in message


def test_an_unknown_source_is_refused(broken):
    """A name must come from one of the two known annotations."""
    message = broken(rows(row(source='"Wikipedia"')))
    assert "named_bytes, row 1, source: Input should be 'AtariARI' or 'OCAtari'" in message


@pytest.mark.parametrize("key", ["address", "name", "source"])
def test_a_row_that_lacks_a_key_is_refused(broken, key):
    """A row without one of its three keys is refused with the key that is missing."""
    fields = {"address": "13", "name": '"ball"', "source": '"AtariARI"'}
    written = ", ".join(f"{name} = {value}" for name, value in fields.items() if name != key)
    assert f"named_bytes, row 1, {key}: Field required" in broken(rows(f"    {{ {written} }},\n"))


def test_an_unknown_key_in_a_row_is_refused(broken):
    """A key that no row has is refused with its row: it may be a misspelt one."""
    message = broken(rows(row(), row("7", more=", adress = 4")))
    assert "named_bytes, row 2, adress: Extra inputs are not permitted" in message


def test_what_was_measured_is_read(tmp_path):
    """A row may say what its byte does, and what shows it; rows without it are whole."""
    path = tmp_path / "pong.toml"
    measured = ', role = "x", evidence = "x, slope +1.00 (state 1)"'
    path.write_text(rows(row(more=measured), row("14")), encoding="utf-8")
    expected = [("x", "x, slope +1.00 (state 1)"), (None, None)]
    assert expected == [(byte.role, byte.evidence) for byte in read_table(path).named_bytes]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (', role = "sprite", evidence = "seen"', "row 2, role: Input should be 'x', 'y', 'xy', 'lives', 'score'"),
        (', role = 5, evidence = "seen"', "row 2, role: Input should be 'x', 'y'"),
        (', role = "x", evidence = ""', "row 2, evidence: String should match pattern"),
        (""", role = "x", evidence = 'a "b"'""", "row 2, evidence: String should match pattern"),
        (', role = "x"', "row 2: expected role and evidence together, got role alone; correct the table"),
        (', evidence = "seen"', "row 2: expected role and evidence together, got evidence alone; correct the table"),
    ],
)
def test_a_wrong_measurement_is_refused(broken, more, reason):
    """A role that does not exist, or one without evidence, is refused with its row."""
    assert f"named_bytes, {reason}" in broken(rows(row(), row("7", more=more)))


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ('titel = "Pong"', "titel: Extra inputs are not permitted"),
        ('rom_id = "pong"', "rom_id: unexpected key; the file's name is the ROM id, so delete the line"),
        ("named_bytes = 5", "named_bytes: Input should be a valid tuple"),
        ("named_bytes = [5]", "named_bytes, row 1: Input should be a valid dictionary"),
    ],
)
def test_a_wrong_key_or_type_in_the_table_is_refused(broken, written, reason):
    """A key that no table has, or a value of another type, is refused with its name."""
    assert reason in broken(HEAD + written + "\n")


@pytest.mark.parametrize(
    ("line", "instead", "reason"),
    [
        ('title = "Pong"\n', "", "title: Field required"),
        ('title = "Pong"', 'title = ""', "title: String should have at least 1 character"),
        ('title = "Pong"', "title = 5", "title: Input should be a valid string"),
        ("ALE/Pong-v5", "ALE/Pong-v4", "gymnasium_id: String should match pattern"),
        ("ALE/Pong-v5", "PongNoFrameskip-v4", "gymnasium_id: String should match pattern"),
        (MD5, MD5[:31], "rom_md5: String should match pattern"),
        (MD5, MD5.upper(), "rom_md5: String should match pattern"),
    ],
)
def test_a_wrong_head_is_refused(broken, line, instead, reason):
    """A title, gymnasium id or checksum that is missing or malformed is refused with its key."""
    assert reason in broken(HEAD.replace(line, instead))


def test_all_reasons_stand_in_one_message(broken):
    """A table with several faults names them all, so that they can be mended at once."""
    message = broken(rows(row("128"), row("7", '""')).replace("ALE/", ""))
    for place in ("gymnasium_id: ", "named_bytes, row 1, address: ", "named_bytes, row 2, name: "):
        assert place in message


@pytest.mark.parametrize("content", ["title = ", "<html>", b"\xff\xfe\x00", 'title = "a"\ntitle = "b"\n'])
def test_a_file_that_is_no_toml_is_refused(broken, content):
    """A file that does not parse, be it for its bytes, is refused as such."""
    assert "expected a TOML table, got a file that does not parse: " in broken(content)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: (HEAD + text).encode())))
def test_any_file_is_a_game_or_a_broken_table(tmp_path, content):
    """Whatever stands in a table, reading it gives a game or our own error with the file's name."""
    path = tmp_path / "pong.toml"
    path.write_bytes(content)
    try:
        answer = read_table(path).rom_id
    except BrokenTable as error:
        answer = str(error).split(":", maxsplit=1)[0]
    assert answer in {"pong", str(path)}


def test_a_game_cannot_be_changed():
    """A game is frozen: what was recorded of it stays true."""
    with pytest.raises(ValidationError, match="Instance is frozen"):
        game("pong").title = "Tennis"
