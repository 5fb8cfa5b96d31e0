"""Which network is explained: the readout of a game, or one that a user's function builds."""

import hashlib
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from games.catalog import Game, game
from games.errors import VeritariError
from harness.seeds import seed_of, seeded_global_generators
from methods.registry import load_attribute
from methods.spec import BadSpec
from oracle.footprint import names_a_position
from oracle.network import BrokenNetwork, Network
from oracle.output import network_output
from oracle.readout import NAME, has_readout, load_readout
from oracle.task import Question


def network_of(spec: str, played: Game) -> Network:
    """The network that `spec` names for a game.

    `readout` is ours. Anything else, `path/to/file.py:build` or `package.module:build`, names a function that is called
    with the game's ROM id, or without an argument, and returns (module, preprocessing, output names). An output whose
    name says so (`player_x`) counts in the position regime, every other in content.

    Raises:
        BadSpec: nothing that imports.
        BrokenNetwork: the function raises or returns something else.
        DamagedFile: a damaged readout.
    """
    if spec == NAME:
        return load_readout(played)
    built = _build(spec, played.rom_id)
    if not isinstance(built, tuple) or len(built) != 3:
        raise BrokenNetwork(
            f"{spec}: expected (module, preprocessing, output names), got {type(built).__name__}; return these three"
        )
    module, preprocess, names = built
    _require_module(spec, module)
    if not callable(preprocess):
        raise BrokenNetwork(f"{spec}: preprocessing: expected a function, got {type(preprocess).__name__}; correct it")
    _freeze(spec, module)
    return Network(
        name=spec,
        names_all=True,
        module=module,
        preprocess=preprocess,
        outputs=tuple(
            network_output(name, "position" if names_a_position(name) else "content", column)
            for column, name in enumerate(_names(spec, names))
        ),
    )


def network_for(question: Question) -> Network | None:
    """The network that a question is about, built anew; None for the machine.

    Raises:
        BrokenNetwork: it has other weights than those that the effects were measured with.
    """
    if not question.network:
        return None
    network = network_of(question.network, game(question.game))
    if network.fingerprint(question.frames) != question.network_sha256:
        raise BrokenNetwork(
            f"{question.network}: expected the same network whenever it is built, got another; load it from a file"
        )
    return network


def _build(spec: str, rom_id: str) -> Any:
    build = load_attribute(spec)
    if not callable(build):
        raise BadSpec(f"{spec}: expected a function, got {type(build).__name__}; name one that builds the network")
    try:
        # Weights that are drawn must be the same in every process.
        with seeded_global_generators(seed_of(0, "network", spec, rom_id)):
            return build(rom_id) if inspect.signature(build).parameters else build()
    except VeritariError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise BrokenNetwork(f"{spec}: expected a network, got {type(error).__name__}: {reason}; mend it") from error


def _freeze(spec: str, module: torch.nn.Module) -> None:
    """Evaluation mode, without gradients of parameters; a module may bring methods of its own."""
    try:
        module.eval()
        module.requires_grad_(requires_grad=False)
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise BrokenNetwork(f"{spec}: expected a module that can be frozen, got {reason}; mend it") from error


def _require_module(spec: str, module: object) -> None:
    if not isinstance(module, torch.nn.Module):
        raise BrokenNetwork(f"{spec}: expected a torch.nn.Module, got {type(module).__name__}; return one")
    tensors: Iterable[torch.Tensor] = (*module.parameters(), *module.buffers())
    if elsewhere := {str(each.device) for each in tensors} - {"cpu"}:
        raise BrokenNetwork(f"{spec}: expected it on the cpu, got {', '.join(sorted(elsewhere))}; move it")


def _names(spec: str, names: object) -> list[str]:
    listed = list(names) if isinstance(names, list | tuple) else []
    if not listed or not all(isinstance(name, str) and name for name in listed) or len(set(listed)) < len(listed):
        raise BrokenNetwork(f"{spec}: output names: expected a list of different texts, got {names!r:.100}; correct it")
    return listed


def network_exclusion(spec: str, played: Game) -> str:
    """Why no network looks at this game; empty if one does."""
    if spec == NAME and not has_readout(played.rom_id):
        return f"no readout; train one with: veritari readouts train --games {played.rom_id}"
    return ""


def source_sha256(spec: str) -> str:
    """SHA-256 of the file that builds a user's network; empty for readouts, which are part of our code.

    Raises:
        BadSpec: nothing that imports.
    """
    if spec == NAME:
        return ""
    built: Any = load_attribute(spec)
    try:
        return hashlib.sha256(Path(inspect.getfile(inspect.unwrap(built))).read_bytes()).hexdigest()
    except (TypeError, OSError):
        # Not a plain function: a builtin, or an object that can be called.
        return ""
