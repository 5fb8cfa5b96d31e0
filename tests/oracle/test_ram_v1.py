"""The choices of protocol ram-v1."""

import numpy as np
import pytest

from games.catalog import game, game_ids
from games.errors import UnknownName
from oracle.effects import measure, reference_run
from oracle.emulator import Emulator, Snapshot
from oracle.errors import DegenerateTask
from oracle.intervention import ActionWrite, RamWrite, RegisterWrite
from oracle.output import Finals, changed_pixels_output, content_output
from oracle.protocol import PROTOCOLS, protocol
from oracle.ram_v1 import ACTIONS, PREFIX_FRAMES, RamV1
from oracle.responses import Responses
from oracle.rollout import ExactRollouts
from oracle.state import Trace
from tests.toy import PREFIX, TAIL, ToyMachine, toy_game

ale = pytest.mark.ale


def test_the_trace_has_90_frames_of_prefix_and_15_of_tail():
    """The trace of every game and state is the same 105 actions, 90 of them before f*."""
    trace = RamV1().trace(game("pong"), 0)
    assert (105, 90, 15) == (len(trace.actions), len(trace.prefix), len(trace.tail))
    assert trace == RamV1().trace(game("qbert"), 0)


def test_the_trace_is_the_published_one():
    """The actions are the published ones: first and last few, sums, and the action 3 that makes RIGHT vacuous."""
    assert ((2, 13, 9, 0, 7), (4, 4, 11, 9, 11)) == (ACTIONS[:5], ACTIONS[-5:])
    # Sums of the published list, position-weighted so that an exchange of two actions shows.
    assert (887, 45886) == (sum(ACTIONS), sum(index * action for index, action in enumerate(ACTIONS)))
    assert ACTIONS[PREFIX_FRAMES] == 3


def test_games_without_named_bytes_are_excluded():
    """53 of the 104 games have no named bytes and are excluded with that reason."""
    excluded = [rom_id for rom_id in game_ids() if RamV1().exclusion(game(rom_id)) == "no named bytes"]
    assert len(excluded) == 53
    assert "adventure" in excluded
    assert RamV1().exclusion(game("pong")) == ""


@pytest.fixture
def toy_rollouts():
    """Rollouts from the state of the toy."""
    return ExactRollouts(ToyMachine, Trace((*PREFIX, *TAIL), len(PREFIX)))


def test_causes_on_the_toy(toy_rollouts):
    """For every named byte `set` (b + 17) and `occlude` (0) in table order, then the background, then the action."""
    causes = RamV1().causes(toy_game(), toy_rollouts)
    labels = [f"ram[{address}]:{kind}" for address in range(6) for kind in ("set", "occlude")]
    assert [*labels, "tia[COLUBK]:set", "joystick:RIGHT"] == [cause.label for cause in causes]
    # RAM at f* of the toy is 108 1 7 2 0 0.
    expected = [RamWrite(a, v) for a, b in enumerate((108, 1, 7, 2, 0, 0)) for v in (b + 17, 0)]
    expected += [RegisterWrite("TIA", "COLUBK", 0x0E), ActionWrite(0, 3)]
    assert expected == [each.intervention for each in causes]
    assert [*(a for a in range(6) for _ in range(2)), None, None] == [each.ram_address for each in causes]


def test_removal_on_the_toy(toy_rollouts):
    """Removing a byte, also for its `set` cause, or the background writes 0; an action is not removed."""
    causes = RamV1().causes(toy_game(), toy_rollouts)
    bytes_removed = [RamWrite(address, 0) for address in range(6) for _ in range(2)]
    assert [*bytes_removed, RegisterWrite("TIA", "COLUBK", 0), None] == [cause.removal for cause in causes]


def test_vacuous_on_the_toy(toy_rollouts):
    """Occluding a byte that holds 0 is vacuous; the action is not where the tail begins with another one."""
    causes = RamV1().causes(toy_game(), toy_rollouts)
    assert ["ram[4]:occlude", "ram[5]:occlude"] == [cause.label for cause in causes if cause.vacuous]


def test_set_wraps_at_256():
    """`set` adds 17 modulo 256, as the published audit does."""
    rollouts = ExactRollouts(lambda: ToyMachine(boot_ball_x=246), Trace((*PREFIX, *TAIL), len(PREFIX)))
    # 246 + 4 steps = 250 at f*; 250 + 17 - 256 = 11.
    assert RamWrite(0, 11) == RamV1().causes(toy_game(), rollouts)[0].intervention


def test_a_background_that_is_set_already_is_vacuous():
    """The background cause is vacuous where COLUBK holds 0x0E at f* already."""

    class White(ToyMachine):
        def __init__(self):
            super().__init__()
            self.write_register("TIA", "COLUBK", 0x0E)

    rollouts = ExactRollouts(White, Trace((*PREFIX, *TAIL), len(PREFIX)))
    assert RamV1().causes(toy_game(), rollouts)[-2].vacuous


def unwatched():
    """Rollouts of the toy, which ram-v1 does not look at for its outputs."""
    return ExactRollouts(ToyMachine, Trace((*PREFIX, *TAIL), len(PREFIX)))


def responses(n_pixels, final_ram):
    """Responses whose cause k changes `n_pixels[k]` pixels and ends with `final_ram[k]`; reference RAM: all 100."""
    screen = np.zeros((2, 5), dtype=np.uint8)
    screens = np.stack([(np.arange(10) < n).reshape(2, 5) for n in n_pixels]).astype(np.uint8)
    reference = Snapshot(np.full(6, 100, dtype=np.uint8), screen, 0.0, 0, terminal=False)
    finals = Finals(np.array(final_ram, dtype=np.uint8), screens, screen)
    return Responses(reference, finals, np.arange(len(n_pixels)), ("",) * len(n_pixels))


@pytest.mark.parametrize("n_pixels", [(0, 0, 0, 0, 0), (9, 9, 9, 0, 0)])
def test_the_gate_needs_four_movers(n_pixels):
    """With fewer than four causes that change the screen the state is rejected, and the reason counts them."""
    n_movers = np.count_nonzero(n_pixels)
    with pytest.raises(DegenerateTask, match=f"gate: {n_movers} causes change the screen, at least 4 are needed"):
        RamV1().outputs(toy_game(), unwatched(), responses(n_pixels, [[100] * 6] * 5))


def test_four_movers_pass_the_gate():
    """Four causes that change one pixel each are enough."""
    outputs = RamV1().outputs(toy_game(), unwatched(), responses((1, 1, 1, 1, 0), [[100] * 6] * 5))
    # No byte moves, so the first of the table wins the tie.
    assert (content_output(0), changed_pixels_output()) == outputs


def test_the_content_byte_has_the_largest_effect_of_either_sign():
    """The content byte is the one that any cause changes most, up or down; the first in table order wins ties."""
    still = [100] * 6
    # Byte 3 falls by 90, byte 2 rises by 80; byte 5 falls by 90 too but stands later.
    final_ram = [[100, 100, 180, 100, 100, 100], [100, 100, 100, 10, 100, 100], [100, 100, 100, 100, 100, 10], still]
    assert content_output(3) == RamV1().outputs(toy_game(), unwatched(), responses((1, 1, 1, 1), final_ram))[0]


def test_the_protocol_is_registered():
    """ram-v1 is known by its name, is graded with scores v1 and asks about one state per game."""
    found = protocol("ram-v1")
    assert ("ram-v1", "v1", 1) == (found.name, found.score_version, found.n_states)
    assert found == RamV1()


def test_the_default_is_a_registered_protocol():
    """The default protocol can be looked up."""


def test_every_protocol_is_registered_under_its_own_name():
    """The key of a protocol is the name that it writes into records."""
    assert list(PROTOCOLS) == [each.name for each in PROTOCOLS.values()]


def test_an_unknown_protocol_answers_with_the_nearest():
    """A misspelt protocol is answered with the nearest names."""
    with pytest.raises(UnknownName, match=r"unknown protocol 'ram-v7'; did you mean .*ram-v1"):
        protocol("ram-v7")


@ale
def test_battle_zone_is_rejected_with_its_reason():
    """`battle_zone` does not pass the gate: one cause, `ram[47]:set`, changes its screen at frame 105."""
    answer_key = measure(RamV1(), game("battle_zone"), 0)
    assert answer_key.exclusion == "gate: 1 causes change the screen, at least 4 are needed"
    assert (14, ()) == (len(answer_key.question.causes), answer_key.question.outputs)
    moves = zip(answer_key.question.causes, answer_key.footprints.any(axis=(1, 2)), strict=True)
    assert ["ram[47]:set"] == [cause.label for cause, moved in moves if moved]


@ale
@pytest.mark.parametrize(("rom_id", "n_causes"), [("pong", 18), ("breakout", 20), ("venture", 38)])
def test_causes_of_a_game(rom_id, n_causes):
    """A game has two causes per named byte, one background colour and one action."""
    rollouts = ExactRollouts(lambda: Emulator(game(rom_id)), RamV1().trace(game(rom_id), 0))
    causes = RamV1().causes(game(rom_id), rollouts)
    assert n_causes == len(causes) == 2 * len(game(rom_id).named_bytes) + 2
    vacuous_bytes = {byte.address for byte in game(rom_id).named_bytes if rollouts.ram[byte.address] == 0}
    expected = {f"ram[{address}]:occlude" for address in vacuous_bytes} | {"joystick:RIGHT"}
    assert expected == {cause.label for cause in causes if cause.vacuous}


@ale
def test_the_reference_run_of_pong():
    """The reference run of `pong` ends with the published ball and with a screen of 210 rows."""
    rollouts = ExactRollouts(lambda: Emulator(game("pong")), RamV1().trace(game("pong"), 0))
    reference = reference_run(rollouts)
    assert (175, (210, 160), False) == (reference.ram[54], reference.screen.shape, reference.terminal)
