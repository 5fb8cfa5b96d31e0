"""The manifest of a run, and what is said of one that can't be used."""

import json

import pytest

from harness.errors import BadRun
from harness.manifest import FORMAT_VERSION, PACKAGES, Manifest, installed_versions, read_manifest

BLUR = {"family": "perturbation", "domain": "ram", "access": "read", "source": "a paper"}


def method_entry(label, **changes):
    """A method as it describes itself in a manifest."""
    return {"spec": label, "label": label, "title": label.title(), **BLUR, **changes}


def control_entry(label):
    """A control as it stands in a manifest."""
    return method_entry(label, family="control", domain="cause", access="control", source="control")


def game_entry(rom_id, exclusion="", subjects=("machine", "network")):
    """A game as it stands in a manifest; it can be excluded for some subjects only."""
    exclusions = dict.fromkeys(subjects, exclusion) if exclusion else {}
    return {"rom_id": rom_id, "title": rom_id.title(), "rom_md5": "0" * 32, "exclusions": exclusions}


def manifest_of(*, games=(), methods=(), seed=0, subjects=("machine",), **changes):
    """A manifest of these games (ROM ids or entries), methods (entries) and subjects."""
    asked = {"protocol": "ram-v1", "games": "core", "methods": "default", "seed": seed, "subjects": list(subjects)}
    content = {
        "format_version": FORMAT_VERSION,
        "settings": asked,
        "protocol": {"name": "ram-v1"},
        "n_states": 1,
        "score_version": "v1",
        "games": [each if isinstance(each, dict) else game_entry(each) for each in games],
        "methods": list(methods),
        "network": {"spec": "readout"},
        "versions": installed_versions(),
        "git_commit": "",
        "git_dirty": False,
        "machine": {},
        "workers": 1,
        "timeout_seconds": 120.0,
        "memory_gib": 4.0,
        "costs": {"started": "2026-01-01T00:00:00+00:00"},
    }
    return Manifest.model_validate(content | changes)


def edited(manifest, **changes):
    """The text of a manifest with some keys changed; None takes a key away."""
    content = json.loads(manifest.model_dump_json()) | changes
    return json.dumps({key: value for key, value in content.items() if value is not None})


@pytest.fixture
def manifest():
    """A manifest of one game and one method."""
    return manifest_of(games=["pong"], methods=[method_entry("blur", parameters={"sigma": 0.1})])


def test_a_manifest_comes_back_as_it_was(manifest, tmp_path):
    """A manifest that is written and read again is the same."""
    (tmp_path / "manifest.json").write_text(manifest.model_dump_json(indent=2), encoding="utf-8")
    assert manifest == read_manifest(tmp_path / "manifest.json")


def test_missing(tmp_path):
    """Where no manifest is, the message names the directory, not the file that it lacks."""
    path = tmp_path / "nowhere" / "manifest.json"
    expected = "nowhere: expected a run directory with a manifest.json, got No such file or directory; check the path$"
    with pytest.raises(BadRun, match=expected):
        read_manifest(path)


def test_a_file_instead_of_a_directory(tmp_path):
    """A path below a file is no run directory either."""
    (tmp_path / "run").write_text("", encoding="utf-8")
    with pytest.raises(BadRun, match=r"run: expected a run directory with a manifest.json, got Not a directory; check"):
        read_manifest(tmp_path / "run" / "manifest.json")


@pytest.mark.parametrize("version", [0, 1, 99])
def test_another_format_version(manifest, tmp_path, version):
    """A manifest of another format is told apart from a damaged one, also if other keys are new."""
    path = tmp_path / "manifest.json"
    path.write_text(edited(manifest, format_version=version, colour="red"), encoding="utf-8")
    expected = (
        f"manifest.json: expected format version {FORMAT_VERSION}, got {version}; use the veritari that wrote it$"
    )
    with pytest.raises(BadRun, match=expected):
        read_manifest(path)


@pytest.mark.parametrize(
    "damage",
    [
        {"format_version": None},
        {"format_version": "one"},
        {"methods": None},
        {"n_states": "many"},
        {"colour": "red"},
        {"games": [{"rom_id": "pong"}]},
        {"costs": {"started": "", "euros": 3}},
    ],
    ids=lambda damage: next(iter(damage)),
)
def test_damaged_content(manifest, tmp_path, damage):
    """A key that is missing, unknown or of another type makes a manifest damaged."""
    path = tmp_path / "manifest.json"
    path.write_text(edited(manifest, **damage), encoding="utf-8")
    with pytest.raises(
        BadRun, match=r"manifest.json: expected a manifest of ours, got a damaged one; start a new run$"
    ):
        read_manifest(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"format_version": 3}', b"\xff\xfe\x00"])
def test_damaged_text(tmp_path, content):
    """A torn, empty or binary file makes a manifest damaged."""
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(
        BadRun, match=r"manifest.json: expected a manifest of ours, got a damaged one; start a new run$"
    ):
        read_manifest(path)


def test_same_versions_are_accepted(manifest):
    """A run goes on with the versions it was started with."""
    assert manifest.require_same_versions() is None


def test_other_versions_are_named(manifest):
    """Every package whose version has changed is named with both versions; the others are not."""
    present = installed_versions()
    manifest.versions |= {"torch": "1.0", "numpy": "1.26"}
    expected = (
        "run: expected the versions it was started with, "
        rf"got torch 1\.0 -> {present['torch']}, numpy 1\.26 -> {present['numpy']}; start a new run$"
    ).replace("+", r"\+")
    with pytest.raises(BadRun, match=expected):
        manifest.require_same_versions()


def test_a_version_that_was_not_noted_is_named(manifest):
    """A manifest that lacks a package's version can't be continued, and says which."""
    del manifest.versions["captum"]
    with pytest.raises(BadRun, match="captum"):
        manifest.require_same_versions()


def test_versions_cover_the_packages_that_move_numbers():
    """The versions of ours, the emulator and the numerical packages are noted."""
    assert {*PACKAGES, "code"} == set(installed_versions())
    assert {"veritari", "ale-py", "torch", "numpy", "scipy", "captum"} == set(PACKAGES)
