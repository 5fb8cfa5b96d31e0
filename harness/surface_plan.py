"""What surfaces are measured of: from what the user asks for to a manifest."""

from collections.abc import Sequence
from datetime import UTC, datetime

from games.catalog import Game, select_games
from harness.errors import WrongUsage
from harness.manifest import GameEntry, git_state, installed_versions, machine
from harness.pool import Limits
from harness.surface_files import SURFACE_FORMAT, SurfaceManifest
from oracle.emulator import require_supported_ale
from oracle.intervention import N_BYTES
from oracle.protocol import AuditProtocol, protocol


def plan_surfaces(protocol_name: str, games: str, addresses: Sequence[int], limits: Limits) -> SurfaceManifest:
    """The manifest of a new directory.

    Raises:
        UnknownName: a game, set or protocol that nobody knows.
        WrongUsage: no game that the protocol can ask about.
    """
    require_supported_ale()
    manifest = _new_manifest(protocol(protocol_name), select_games(games), addresses, limits)
    if all(entry.exclusions for entry in manifest.games):
        reasons = "; ".join(f"{entry.rom_id}: {entry.exclusions['machine']}" for entry in manifest.games)
        raise WrongUsage(f"games: expected one that {manifest.protocol} can ask about, got none ({reasons})")
    return manifest


def _new_manifest(
    chosen: AuditProtocol, games: Sequence[Game], addresses: Sequence[int], limits: Limits
) -> SurfaceManifest:
    """The manifest of surfaces of which nothing is measured yet."""
    commit, dirty = git_state()
    reasons = {game.rom_id: chosen.exclusion(game) for game in games}
    return SurfaceManifest(
        surface_format=SURFACE_FORMAT,
        protocol=chosen.name,
        parameters=chosen.parameters(),
        n_states=chosen.n_states,
        games=tuple(
            GameEntry(
                rom_id=game.rom_id,
                title=game.title,
                rom_md5=game.rom_md5,
                exclusions={"machine": reasons[game.rom_id]} if reasons[game.rom_id] else {},
            )
            for game in games
        ),
        addresses=tuple(addresses),
        versions=installed_versions(),
        git_commit=commit,
        git_dirty=dirty,
        machine=machine(),
        workers=limits.workers,
        timeout_seconds=limits.timeout_seconds,
        memory_gib=limits.memory_gib,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def parse_addresses(selection: str) -> tuple[int, ...]:
    """RAM addresses, in order.

    >>> parse_addresses("49-51,4")
    (4, 49, 50, 51)

    Raises:
        WrongUsage: something else than numbers 0..127 and ranges of them.
    """
    found: set[int] = set()
    for part in selection.split(","):
        first, dash, last = (each.strip() for each in part.partition("-"))
        ends = (first, last if dash else first)
        numbers = [int(each) for each in ends if each.isascii() and each.isdecimal()]
        if len(numbers) < 2 or not numbers[0] <= numbers[1] < N_BYTES:
            raise WrongUsage(f"--addresses: expected numbers 0..{N_BYTES - 1} or ranges, got {part!r}; write 49-56,4")
        found |= set(range(numbers[0], numbers[1] + 1))
    return tuple(sorted(found))
