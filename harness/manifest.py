"""The manifest of a run: everything that decides its numbers, and what it cost."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from harness.errors import BadRun
from methods.method import Subject, domain_on
from oracle.readout import NAME as READOUT

FORMAT_VERSION = 3
SUBJECTS: tuple[Subject, ...] = ("machine", "network")
# What of our own decides numbers.
CODE = "code"
CODE_FILES = ("*.py", "*.toml", "*.json", "*.safetensors")
# Packages whose version can move a number.
PACKAGES = ("veritari", "ale-py", "torch", "numpy", "scipy", "captum")


class MethodEntry(BaseModel):
    """A method of a run as it described itself before the first task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: str
    label: str
    title: str
    family: str
    domain: str
    access: str
    source: str
    subjects: tuple[str, ...] = SUBJECTS
    signed: bool = False
    seeded: bool = False
    parameters: dict[str, Any] = {}
    # Why it can't be asked at all: its plugin is broken. All its tasks count as failed then.
    broken: str = ""
    # SHA-256 of the file that defines it, so that a resumed run can't mix two versions of a plugin.
    file_sha256: str = ""

    def domain_on(self, subject: str) -> str:
        """What it returns one number for on this subject."""
        return domain_on(subject, self.domain, self.access)


class NetworkEntry(BaseModel):
    """The network that is explained: `readout`, or what builds it.

    With the SHA-256 of that file, and of what it says of a black screen of the first game with its weights.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: str
    file_sha256: str = ""
    network_sha256: str = ""


class GameEntry(BaseModel):
    """A game of a run; `exclusions` says by subject why it can't be asked about, if it can't."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rom_id: str
    title: str
    rom_md5: str
    exclusions: dict[str, str] = {}


class Settings(BaseModel):
    """What the user asked for. Two runs with the same settings and versions have the same tables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: str
    games: str
    methods: str
    seed: int
    n_seeds: int = 1
    subjects: tuple[Subject, ...] = SUBJECTS
    network: str = READOUT


class Costs(BaseModel):
    """What a run has cost so far, over all attempts."""

    model_config = ConfigDict(extra="forbid")

    started: str
    ended: str = ""
    wall_seconds: float = 0.0
    n_frames: int = 0
    n_rollouts: int = 0
    peak_worker_mib: float = 0.0
    statuses: dict[str, int] = {}


class Manifest(BaseModel):
    """The content of `manifest.json`."""

    model_config = ConfigDict(extra="forbid")

    format_version: int
    settings: Settings
    protocol: dict[str, Any]
    n_states: int
    score_version: str
    games: tuple[GameEntry, ...]
    methods: tuple[MethodEntry, ...]
    network: NetworkEntry
    versions: dict[str, str]
    git_commit: str
    git_dirty: bool
    machine: dict[str, Any]
    workers: int
    timeout_seconds: float
    memory_gib: float
    costs: Costs

    def methods_on(self, subject: str) -> tuple[MethodEntry, ...]:
        """The methods that explain a subject."""
        return tuple(entry for entry in self.methods if subject in entry.subjects)

    def repeats(self, entry: MethodEntry) -> range:
        """With how many seeds a method is asked: all where it draws, and a control that does."""
        return range(self.settings.n_seeds if entry.seeded else 1)

    def network_of(self, subject: str) -> str:
        """The network that a subject is about; empty for the machine."""
        return self.settings.network if subject == "network" else ""

    def require_same_versions(self) -> None:
        """Refuse to go on with other versions than the run was started with: numbers would be mixed.

        Raises:
            BadRun: naming what differs.
        """
        require_versions("run", self.versions)


def read_manifest(path: Path) -> Manifest:
    """The manifest at `path`.

    Raises:
        BadRun: missing, damaged, or of another format version.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadRun(
            f"{path.parent}: expected a run directory with a manifest.json, got {error.strerror}; check the path"
        ) from error
    found = _format_version(content)
    if found not in (None, FORMAT_VERSION):
        raise BadRun(f"{path}: expected format version {FORMAT_VERSION}, got {found}; use the veritari that wrote it")
    try:
        return Manifest.model_validate_json(content)
    except ValueError as error:
        raise BadRun(f"{path}: expected a manifest of ours, got a damaged one; start a new run") from error


class _Versioned(BaseModel):
    format_version: int


def _format_version(content: bytes) -> int | None:
    try:
        return _Versioned.model_validate_json(content).format_version
    except ValueError:
        return None


def require_versions(what: str, versions: Mapping[str, str]) -> None:
    """Refuse to go on with other versions than something was started with.

    Raises:
        BadRun: naming what differs.
    """
    present = installed_versions()
    noted = {name: versions.get(name, "not noted") for name in present}
    changed = [f"{name} {noted[name]} -> {present[name]}" for name in present if noted[name] != present[name]]
    if changed:
        raise BadRun(f"{what}: expected the versions it was started with, got {', '.join(changed)}; start a new run")


def installed_versions() -> dict[str, str]:
    """Versions of the packages that can move a number. Build tags such as `+cpu` stay: they are another torch."""
    return {name: version(name) for name in PACKAGES} | {CODE: code_sha256()}


def code_sha256() -> str:
    """SHA-256 over our own code, game tables and readouts: the version number does not change with every edit."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for package in ("games", "oracle", "methods", "harness"):
        for path in sorted(path for ending in CODE_FILES for path in (root / package).rglob(ending)):
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def git_state() -> tuple[str, bool]:
    """Commit of this checkout and whether files differ from it; empty where it is not a checkout."""
    here = Path(__file__).parent
    try:
        commit = _git(here, "rev-parse", "HEAD")
        return commit, bool(_git(here, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return "", False


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # fixed words of ours
    return finished.stdout.strip()


def machine() -> dict[str, Any]:
    """What the run was made on."""
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
    }
