"""Readouts: training, cards, files, and the outputs that are chosen."""

import numpy as np
import pytest
import torch

from games.catalog import game, game_sets
from oracle.emulator import Emulator
from oracle.errors import DamagedFile
from oracle.network import preprocess
from oracle.random_play import Play
from oracle.readout import (
    FOLDER,
    NEEDED_R2,
    ByteReadout,
    ReadoutCard,
    ReadoutNetwork,
    card_path,
    load_readout,
    read_card,
    save_readout,
    weights_path,
)
from oracle.readout_training import fit, held_out_r2, split_examples, train_readout
from tests.toy import ToyMachine, toy_game

LARGEST_BYTES = 250_000
SCORED = game_sets()["scored"]


@pytest.fixture(scope="module")
def trained():
    """The toy's readout."""
    return train_readout(toy_game(), ToyMachine, seed=3, n_frames=600)


@pytest.fixture
def folder(trained, tmp_path):
    """A folder with the toy's readout."""
    save_readout(*trained, tmp_path)
    return tmp_path


def drawn_play(n_frames=400, seed=0):
    """Frames with a bright square whose column is byte 0; byte 1 never changes."""
    generator = np.random.default_rng(seed)
    ram = np.zeros((n_frames, 2), np.uint8)
    ram[:, 0] = generator.integers(0, 70, n_frames)
    pictures = np.full((n_frames, 84, 84), 0.6, np.float32)
    for picture, column in zip(pictures, ram[:, 0], strict=True):
        picture[30:40, column : column + 10] = 1.0
    starts = np.zeros(n_frames, np.bool_)
    starts[[0, n_frames // 2]] = True
    return Play(pictures, ram, starts, n_boots=2)


# --- training -------------------------------------------------------------------------------------------------------


def test_examples_are_pairs_of_one_boot():
    """An example shows two consecutive frames of one boot; a fifth of the blocks of fifty frames is held out whole."""
    play = drawn_play()
    examples = split_examples(play, [0], np.random.default_rng(0))
    assert [index for index in range(400) if index not in (0, 200)] == examples.last.tolist()
    torch.testing.assert_close(torch.from_numpy(play.pictures[[6, 7]]), examples.seen(torch.tensor([6]))[0])
    # Two of eight blocks: a fifth, rounded.
    held_out = {int(last) // 50 for last in examples.last[examples.held_out]}
    trained = {int(last) // 50 for last in examples.last[~examples.held_out]}
    assert (2, set(range(8)), set()) == (len(held_out), held_out | trained, held_out & trained)


def test_a_visible_byte_is_learned():
    """A byte that pictures show is read from frames that were held out; one that never changes has no R2."""
    examples = split_examples(drawn_play(1500), [0, 1], np.random.default_rng(0))
    visible, constant = held_out_r2(fit(examples, generator=torch.Generator().manual_seed(0)), examples)
    assert visible > 0.9
    assert np.isnan(constant)


def test_r2_on_paper():
    """R2 is 1 minus the squared error over the variation about the held-out mean: 0 for that mean, less if worse."""
    examples = split_examples(drawn_play(), [0], np.random.default_rng(0))
    held_out = examples.targets[examples.held_out]
    module = ReadoutNetwork(1)
    for parameter in module.parameters():
        torch.nn.init.zeros_(parameter)
    mean, spread = held_out.mean(), held_out.std(correction=0)
    found = []
    for constant in (mean, mean + spread, mean + 2 * spread):
        module.get_buffer("mean").fill_(constant)
        found.append(held_out_r2(module, examples)[0])
    assert [0.0, -1.0, -4.0] == pytest.approx(found, abs=1e-5)


def test_the_same_seed_gives_the_same_weights(trained):
    """Training is decided by the seed, to the last bit on one machine."""
    module, card = train_readout(toy_game(), ToyMachine, seed=3, n_frames=600)
    assert trained[1] == card
    for name, value in trained[0].state_dict().items():
        assert torch.equal(value, module.state_dict()[name]), name


def test_a_card_says_what_was_done(trained):
    """The card has game, seed, frames, boots, and every named byte in the order of the table."""
    card = trained[1]
    assert ("toy", 3, 600, 4) == (card.game, card.seed, card.n_frames, card.n_boots)
    assert [byte.address for byte in toy_game().named_bytes] == [each.address for each in card.bytes]
    # Nothing changes the other cells.
    assert [None] * 5 == [each.r2 for each in card.bytes[1:]]


def test_outputs_are_in_units_of_the_byte():
    """The network gives standardised predictions their scale and mean back."""
    module, seen = ReadoutNetwork(2), torch.rand(3, 2, 84, 84)
    module.get_buffer("mean").copy_(torch.tensor([10.0, 20.0]))
    module.get_buffer("scale").copy_(torch.tensor([2.0, 5.0]))
    torch.testing.assert_close(
        module.standardised(seen) * torch.tensor([2.0, 5.0]) + torch.tensor([10.0, 20.0]), module(seen)
    )


# --- what is chosen -------------------------------------------------------------------------------------------------


def card_of(*rows):
    """A card of these (name, R2)."""
    rows = tuple(ByteReadout(address=address, name=name, r2=r2) for address, (name, r2) in enumerate(rows))
    origin = {"rom_md5": "0" * 32, "seed": 0, "n_frames": 9, "n_boots": 1, "n_frames_unlike_first": 8, "versions": {}}
    return ReadoutCard(game="toy", bytes=rows, weights_sha256="", **origin)


def test_the_best_byte_of_each_regime_is_explained():
    """A name that says so is a position, every other is content; the best of each is explained, the first of equals."""
    card = card_of(("score", 0.6), ("lives", 0.9), ("ball_x", 0.7), ("clock", 0.9), ("ball_y", None))
    assert ("lives", "ball_x") == tuple(card.chosen(regime).name for regime in ("content", "position"))
    assert 4 == card.n_read_well


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("score", 0.4999), ("lives", -2.0)], "the best, score, has 0.499"),
        ([("score", None)], "none of them changes in play"),
        ([("ball_x", 0.9)], "the game names none"),
    ],
)
def test_a_regime_that_is_not_read_says_so(rows, reason):
    """A regime whose best byte has less than the needed R2 is not explained, with its R2 or what else is missing."""
    card = card_of(*rows)
    assert card.chosen("content") is None
    assert f"readout: no content byte with held-out R2 >= {NEEDED_R2}: {reason}" == card.shortfall("content")


# --- files ----------------------------------------------------------------------------------------------------------


def test_a_saved_readout_comes_back(trained, folder):
    """Loaded weights say what the trained ones said, frozen and in evaluation mode; their hash is the identity."""
    network = load_readout(toy_game(), folder)
    seen = torch.rand(1, 2, 84, 84)
    assert torch.equal(trained[0](seen), network.module(seen))
    assert [False] * 8 == [parameter.requires_grad for parameter in network.module.parameters()]
    assert not network.module.training
    assert (read_card("toy", folder).weights_sha256, preprocess) == (network.identity, network.preprocess)


def test_outputs_point_at_their_column(trained, tmp_path):
    """An explained output is named after its byte and reads the column of that byte's row in the card."""
    module, card = trained
    better = tuple(each.model_copy(update={"r2": 0.8}) if each.name == "idle" else each for each in card.bytes)
    save_readout(module, card.model_copy(update={"bytes": better}), tmp_path)
    [output] = [each for each in load_readout(toy_game(), tmp_path).outputs if each.regime == "content"]
    assert ("readout[2]", 2) == (output.name, output.network_column)


def cut(path):
    """Lose the second half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: cut(weights_path("toy", folder)), r"toy\.safetensors: expected its weights, got SHA-256"),
        (lambda folder: weights_path("toy", folder).unlink(), r"toy\.safetensors: expected its weights, got No such"),
        (lambda folder: cut(card_path("toy", folder)), r"toy\.json: expected the card of a readout, got"),
        (lambda folder: card_path("toy", folder).unlink(), r"toy\.json: expected the card of a readout, got No such"),
    ],
)
def test_damaged_files_are_named(folder, damage, words):
    """Weights or a card that are not what was written are named, with the command that trains them."""
    damage(folder)
    with pytest.raises(DamagedFile, match=rf"{words}.*; train it with: veritari readouts train --games toy"):
        load_readout(toy_game(), folder)


def test_weights_of_another_shape_are_named(trained, tmp_path):
    """Weights that do not fit the card's bytes are refused, though their hash is right."""
    module, card = trained
    save_readout(module, card.model_copy(update={"bytes": card.bytes[:2]}), tmp_path)
    with pytest.raises(DamagedFile, match=r"toy\.safetensors: expected its weights, got .*size mismatch"):
        load_readout(toy_game(), tmp_path)


def test_a_readout_of_another_rom_is_refused(folder):
    """A readout is of one ROM."""
    other = toy_game().model_copy(update={"rom_md5": "1" * 32})
    with pytest.raises(DamagedFile, match=f"expected a readout of ROM {'1' * 32}, got one of {'0' * 32}"):
        load_readout(other, folder)


# --- what is shipped ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rom_id", SCORED)
def test_every_scored_game_has_a_readout(rom_id):
    """Weights and card of each scored game are there, fit each other and the game table, and are small."""
    played, network = game(rom_id), load_readout(game(rom_id))
    card = read_card(rom_id)
    assert [(byte.address, byte.name) for byte in played.named_bytes] == [
        (each.address, each.name) for each in card.bytes
    ]
    assert weights_path(rom_id).stat().st_size < LARGEST_BYTES
    assert {"content", "position"} == {each.regime for each in network.outputs} | {
        regime for regime, _ in network.unmet
    }
    # Play has left the title screen: hardly a frame looks like the first.
    assert card.n_frames_unlike_first > 0.9 * card.n_frames


def test_most_scored_games_have_both_regimes():
    """Content is read well enough in 39 of the 42 scored games, position in 37; the others are these."""
    cards = {rom_id: read_card(rom_id) for rom_id in SCORED}
    missing = {
        regime: {rom_id for rom_id, card in cards.items() if card.chosen(regime) is None}
        for regime in ("content", "position")
    }
    assert {
        "content": {"beam_rider", "freeway", "ice_hockey"},
        "position": {"double_dunk", "jamesbond", "kung_fu_master", "name_this_game", "phoenix"},
    } == missing


@pytest.mark.ale
def test_training_learns_from_the_real_screen():
    """A few hundred frames of Boxing are enough to read its clock or players better than by their mean."""
    played = game("boxing")
    _, card = train_readout(played, lambda: Emulator(played), seed=1, n_frames=1000)
    assert max(each.r2 for each in card.bytes if each.r2 is not None) > NEEDED_R2
    assert {path.suffix for path in FOLDER.iterdir()} == {".json", ".safetensors"}
