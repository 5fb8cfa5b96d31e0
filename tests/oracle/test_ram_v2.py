"""The choices of protocol ram-v2, on a console of 128 cells: states, causes, outputs, controls, and what it costs."""

from collections import Counter
from functools import cache
from typing import ClassVar

import numpy as np
import pytest

from oracle.do_values import byte_causes
from oracle.effects import measure, reference_run
from oracle.errors import DegenerateTask, InvalidState
from oracle.hub import eligible_bytes
from oracle.intervention import ActionWrite, RamWrite
from oracle.protocol import protocol
from oracle.ram_v2 import ADDRESSES, RamV2, held_actions, ram_effects
from oracle.responses import respond
from oracle.rollout import ExactRollouts
from oracle.state import Trace
from tests.naive import ram_v2 as naive
from tests.naive import scores_v2 as naive_scores
from tests.naive.oracle import end_of_run
from tests.wide import Rules, WideMachine, wide_game

GAME = wide_game()
# One do-value per byte, where it does not matter how many there are.
QUICK = protocol("ram-v2(n_donors=1,n_values=1)")
TRACE = Trace((0,) * 20, 5)
# Byte 10 is moved by three others, 20 and 30 by four, 50 by the same as 30, 60 by two others and itself.
FLOWS = (
    *((source, 10) for source in (11, 12, 13)),
    *((source, 20) for source in (21, 22, 23, 24)),
    *((source, 30) for source in (31, 32, 33, 34)),
    *((source, 50) for source in (31, 32, 33, 34)),
    *((source, 60) for source in (60, 61, 62)),
)
# Two sprites in rows far from each other, one that the action moves too.
FLOWING = Rules(flows=FLOWS, pushes=(92, 93))
LIVELY = Rules(flows=FLOWS, columns=((90, 10), (91, 30)), pushes=(91, 92, 93), flashes=8, counter=2)


def machines(rules):
    """A maker of consoles with these rules."""
    return lambda: WideMachine(rules)


def rollouts_of(rules, trace=TRACE):
    """Rollouts on a console with these rules."""
    return ExactRollouts(machines(rules), trace)


def responses_of(rollouts, asked=None):
    """The responses to all causes of a protocol."""
    causes = (asked or RamV2()).causes(GAME, rollouts)
    return respond(rollouts, reference_run(rollouts), causes)


@cache
def measured(rules, trace):
    """Rollouts on a console with these rules, and the responses to all causes."""
    rollouts = rollouts_of(rules, trace)
    return rollouts, responses_of(rollouts)


def outputs_of(rules, asked=None, trace=TRACE):
    """The outputs that a protocol chooses on a console with these rules."""
    return (asked or RamV2()).outputs(GAME, *measured(rules, trace))


@pytest.fixture(scope="module")
def key():
    """The answer key of a lively console."""
    return measure(RamV2(), GAME, 0, machines(LIVELY))


# States that differ in their frame, so that each draws anew.
TRACES = [Trace((0,) * (n_frames + 6), n_frames) for n_frames in range(5, 11)]


# --- states ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", range(4))
def test_candidates_are_their_replica(state):
    """State k has 32 candidates, each with its prefix and the actions of its own generator, for 15 frames more."""
    candidates = list(RamV2().candidates(GAME, state))
    assert 32 == len(candidates)
    for index, trace in enumerate(candidates):
        n_frames = naive.prefix_frames(state, index)
        assert n_frames == trace.frame
        assert naive.held_actions(state, index, n_frames + 15) == list(trace.actions)


def test_prefixes_on_paper():
    """State 2 starts after 420 frames, goes on by 90 up to 1770, and falls back to 90 and more by 30, up to 540."""
    frames = [trace.frame for trace in RamV2().candidates(GAME, 2)]
    assert [420, 510, 1770, 90, 120, 540] == [frames[index] for index in (0, 1, 15, 16, 17, 31)]


def test_parameters_reach_the_candidates():
    """Another prefix and another horizon lengthen prefix and tail; the actions begin alike."""
    plain, other = (
        next(iter(each.candidates(GAME, 0))) for each in (RamV2(), protocol("ram-v2(horizon=30,prefix=200)"))
    )
    assert (180, 15, 200, 30) == (plain.frame, len(plain.tail), other.frame, len(other.tail))
    assert plain.actions == other.actions[:195]


def test_actions_are_uniform_and_held():
    """Each of 18 actions is as likely, and a run of equal ones lasts 1 to 12 frames where the next one differs."""
    actions = held_actions(200_000, [1])
    counts = Counter(actions)
    # About 30,800 holds of 6.5 frames; a share of 1/18 of them has a standard deviation of 2.4 %, 3 % in frames.
    assert dict.fromkeys(range(18), pytest.approx(200_000 / 18, rel=0.12)) == counts
    changes = np.flatnonzero(np.diff(actions))
    # No two holds in a row are of one action but for one in 18.
    lengths = Counter(np.diff(changes).tolist())
    assert set(range(1, 13)) <= set(lengths)
    # Each length as often as any other: 1/12 of holds are one frame, as are those of twelve.
    assert pytest.approx(lengths[1], rel=0.15) == lengths[5]


@pytest.mark.parametrize(
    ("rules", "pixels_bytes"),
    [
        (Rules(flows=FLOWS, columns=((90, 10),)), (0, 0)),  # nothing follows an action
        (Rules(pushes=(92, 93)), (0, 2)),  # it is felt, and not seen
        (Rules(flashes=20), (20, 0)),  # it is seen, and not felt later
        (Rules(flashes=7, pushes=(92, 93)), (7, 2)),
        (Rules(flashes=8, pushes=(92,)), (8, 1)),
    ],
)
def test_a_machine_that_is_not_live_is_refused(rules, pixels_bytes):
    """A state at which no action is seen in 8 pixels and felt in 2 bytes is refused, with what was found."""
    expected = r"live: expected an action that changes 8 pixels and 2 bytes, got at most {} and {}".format(
        *pixels_bytes
    )
    with pytest.raises(InvalidState, match=expected):
        RamV2().require_live(rollouts_of(rules))


def test_eight_pixels_and_two_bytes_are_live():
    """Just enough pixels and bytes are enough, and other parameters ask for more."""
    rollouts = rollouts_of(Rules(flashes=8, pushes=(92, 93)))
    RamV2().require_live(rollouts)
    with pytest.raises(InvalidState, match="changes 9 pixels and 2 bytes, got at most 8 and 2"):
        protocol("ram-v2(least_pixels=9)").require_live(rollouts)


def test_pixels_of_all_frames_count_once():
    """A pixel that differs in several frames on the way is one pixel; what differs after the horizon is none."""
    # The picture has ten pixels and runs along its row with the action: many pixels in all frames together.
    RamV2().require_live(rollouts_of(Rules(columns=((90, 10),), pushes=(90, 92))))
    # Seven pixels flash in all of 15 frames.
    with pytest.raises(InvalidState, match="got at most 7 and 2"):
        RamV2().require_live(rollouts_of(Rules(flashes=7, pushes=(92, 93))))


@pytest.mark.parametrize("last_frame", [20, 35])
def test_a_game_that_ends_soon_is_no_state(last_frame):
    """The game must run for 15 frames after the horizon: over at frame 35 is refused, at 36 it is not."""
    rules = Rules(flashes=8, pushes=(92, 93), last_frame=last_frame)
    with pytest.raises(InvalidState, match="live: expected a game that runs for some frames more, got game over"):
        RamV2().require_live(rollouts_of(rules))
    RamV2().require_live(rollouts_of(Rules(flashes=8, pushes=(92, 93), last_frame=36)))


def test_the_first_valid_candidate_is_taken(key):
    """A console that lives long is measured at its first candidate."""
    assert next(iter(RamV2().candidates(GAME, 0))) == key.question.trace


def test_a_game_that_ends_early_is_measured_early():
    """Where the game is over at frame 150, the first of the short candidates is taken: 90 + 30 frames are before it."""
    rules = Rules(flows=FLOWS, flashes=8, pushes=(92, 93), last_frame=150)
    assert 90 == measure(RamV2(), GAME, 0, machines(rules)).question.trace.frame


def test_a_later_candidate_is_taken_when_an_earlier_one_has_no_output():
    """A live state without an output is passed over for the next; if all are, the first keeps its reason."""
    # Nothing flows, and pictures are drawn up to frame 180 only, so only the short candidates show a sprite.
    rules = Rules(columns=((90, 10),), flashes=8, pushes=(92, 93), vanish_after=180)
    found = measure(QUICK, GAME, 0, machines(rules))
    assert (90, ["sprite[90]"]) == (found.question.trace.frame, [each.name for each in found.question.outputs])
    dull = measure(QUICK, GAME, 0, machines(Rules(flashes=8, pushes=(92, 93))))
    reason = "outputs: no byte is moved by 3 others, and no sprite is located at the horizon"
    assert (180, reason, ()) == (dull.question.trace.frame, dull.exclusion, dull.question.outputs)
    assert {} == dull.controls == dull.reference_curves


def test_without_a_valid_candidate_all_reasons_are_named():
    """A game that has no live state says why, each reason once."""
    with pytest.raises(InvalidState) as refused:
        measure(RamV2(), GAME, 0, machines(Rules(flashes=20, last_frame=200)))
    reasons = str(refused.value).replace("; choose another trace", "").split("; ")
    assert len(reasons) == len(set(reasons))
    assert "live: expected an action that changes 8 pixels and 2 bytes, got at most 20 and 0" in reasons
    assert "live: expected a game that runs for some frames more, got game over" in reasons
    assert "trace: expected a game that runs at frame 270, got game over" in reasons


# --- causes ----------------------------------------------------------------------------------------------------------


def test_all_bytes_and_the_action_are_causes(key):
    """The causes are 128 bytes with eight do-values, then the action with the 17 that were not played."""
    causes, trace = key.question.causes, key.question.trace
    assert [*(f"ram[{address}]" for address in range(128)), "action"] == [cause.label for cause in causes]
    assert [8] * 128 + [17] == [len(cause.interventions) for cause in causes]
    others = [ActionWrite(0, action) for action in range(18) if action != trace.tail[0]]
    assert (others, None) == (list(causes[-1].interventions), causes[-1].ram_address)


@pytest.mark.parametrize(("played", "removal"), [(0, None), (4, ActionWrite(0, 0))])
def test_removing_the_action_plays_noop(played, removal):
    """Removing the action plays NOOP instead, which removes nothing where NOOP was played."""
    causes = RamV2().causes(GAME, rollouts_of(LIVELY, Trace((0,) * 5 + (played,) * 15, 5)))
    assert removal == causes[-1].removal


def test_do_values_come_from_the_pool(key):
    """What a byte has been before is among its do-values: four of the values that the counter had."""
    donors = [do.value for do in key.question.causes[2].interventions[:4]]
    assert set(donors) <= set(naive.others_of(key.question.reference_pool[:, 2].tolist()))
    # A byte that never changes is off the manifold, and says so.
    assert ("off_manifold", "") == (key.flags[100], key.flags[2])


def test_each_state_draws_its_own_do_values():
    """Another trace has other do-values; the same has the same."""
    first, again, other = (
        RamV2().causes(GAME, rollouts_of(LIVELY, trace)) for trace in (TRACE, TRACE, Trace((0,) * 21, 5))
    )
    assert first == again
    assert first[3].interventions != other[3].interventions


# --- effects ---------------------------------------------------------------------------------------------------------


def test_effects_are_those_of_a_machine_of_its_own():
    """The effect of every cause on every byte is the mean over do-values, each on a fresh console."""
    rollouts = rollouts_of(LIVELY)
    responses = responses_of(rollouts)
    found = ram_effects(responses)
    causes = RamV2().causes(GAME, rollouts)
    some = [10, 11, 31, 60, 61, 90, 128]
    expected = naive.byte_effects(machines(LIVELY), TRACE, [causes[index] for index in some])
    assert expected == found[some].tolist()


def test_effects_with_a_single_do_value_have_no_sign():
    """With one do-value per byte a byte that is pushed down moves another as one that is pushed up."""
    rollouts = rollouts_of(LIVELY)
    effects = ram_effects(responses_of(rollouts, QUICK))
    assert 0 == np.count_nonzero(effects < 0)
    causes = QUICK.causes(GAME, rollouts)
    assert naive.byte_effects(machines(LIVELY), TRACE, causes[10:15]) == effects[10:15].tolist()


# --- outputs ---------------------------------------------------------------------------------------------------------


def content_bytes(outputs):
    """The bytes of the content outputs."""
    return [output.ram_address for output in outputs if output.regime == "content"]


def test_contents_are_moved_by_three_others():
    """A content byte is moved by three others at least: not by two and itself, nor by the action."""
    found = {address for trace in TRACES for address in content_bytes(outputs_of(FLOWING, trace=trace))}
    # One of 30 and 50, which are alike; 92 and 93 follow the action only.
    assert {10, 20, 30, 50} == found


def test_alike_bytes_are_asked_about_once():
    """Of two bytes that the same others move alike only one is asked about, and there are three at most."""
    for trace in TRACES:
        found = content_bytes(outputs_of(FLOWING, trace=trace))
        assert {10, 20, 30} == {30 if address == 50 else address for address in found}
        assert 3 == len(found)


@pytest.mark.parametrize("name", ["ram-v2", "ram-v2(n_contents=1)", "ram-v2(least_movers=4)", "ram-v2(n_contents=9)"])
def test_contents_are_their_replica(name):
    """The content bytes are the loop's, in the order in which the protocol draws."""
    asked = protocol(name)
    for trace in TRACES:
        effects = ram_effects(measured(FLOWING, trace)[1])
        eligible = np.flatnonzero(eligible_bytes(effects, ADDRESSES, least=asked.least_movers))
        order = asked._generator(GAME, trace, "contents").permutation(eligible).tolist()
        # Bytes that are not eligible would be taken here if the loop thought otherwise.
        rest = [address for address in range(128) if address not in order]
        counts = {"most": asked.n_contents, "least": asked.least_movers}
        expected = naive.contents(effects.tolist(), [*rest, *order], **counts)
        assert expected == content_bytes(outputs_of(FLOWING, asked, trace))


def test_draws_differ_between_states():
    """Asked for one byte only, other states are asked about other bytes."""
    one = protocol("ram-v2(n_contents=1)")
    found = [content_bytes(outputs_of(FLOWING, one, trace))[0] for trace in TRACES]
    assert len(set(found)) > 1


def test_a_console_without_names_has_outputs(key):
    """A game without a single name is asked about as any other: outputs are named by their bytes."""
    assert () == GAME.named_bytes
    names = [output.name for output in key.question.outputs]
    assert ["sprite[91]", "sprite[90]"] == sorted(names[-2:], reverse=True)
    assert all(name.startswith("ram[") for name in names[:-2])
    assert (len(names), 129) == key.effects.shape


def test_at_most_two_sprites():
    """Of three sprites the two with the largest changed area are asked about; another number is met too."""
    rules = Rules(columns=((90, 10), (91, 30), (95, 50)), flashes=8, pushes=(92, 93))
    for n_sprites in (1, 2, 5):
        found = outputs_of(rules, protocol(f"ram-v2(n_sprites={n_sprites})"))
        # Equal areas: the lower address comes first.
        assert ["sprite[90]", "sprite[91]", "sprite[95]"][:n_sprites] == [output.name for output in found]


def test_a_sprite_that_is_gone_at_the_horizon_is_passed_over():
    """A sprite that is drawn at first, and no more at the horizon, is no output."""
    rules = Rules(columns=((90, 10),), vanish_after=19)
    with pytest.raises(DegenerateTask, match="no byte is moved by 3 others, and no sprite is located at the horizon"):
        outputs_of(rules)
    assert ["sprite[90]"] == [each.name for each in outputs_of(Rules(columns=((90, 10),), vanish_after=20))]


def test_the_position_of_a_sprite_is_moved_by_its_byte(key):
    """The displacement of a sprite has an effect of its own byte, and of nothing else that stands still."""
    row = [output.name for output in key.question.outputs].index("sprite[90]")
    assert [90] == np.flatnonzero(key.effects[row]).tolist()


def test_no_output_is_constant(key):
    """Every output has effects that differ: there is something to rank."""
    assert 0 < np.ptp(key.effects, axis=1).min()


# --- what it costs ---------------------------------------------------------------------------------------------------


class CountingRollouts(ExactRollouts):
    """Rollouts that remember what they were asked."""

    asked: ClassVar[Counter] = Counter()

    def run(self, interventions, tail=None):
        length = len(self.trace.tail if tail is None else tail)
        self.asked[frozenset(interventions), length] += 1
        return super().run(interventions, tail)


def test_no_intervention_is_run_twice(monkeypatch):
    """Measuring runs each do-value once; what is run again is the test of the sprites at the horizon, and no other."""
    monkeypatch.setattr("oracle.effects.ExactRollouts", CountingRollouts)
    monkeypatch.setattr(CountingRollouts, "asked", Counter())
    key = measure(RamV2(), GAME, 0, machines(LIVELY))
    asked = CountingRollouts.asked
    do_values = [do for cause in key.question.causes for do in cause.interventions]
    assert len(do_values) == len(set(do_values)) == 8 * 128 + 17
    pokes = {
        RamWrite(address, (int(key.question.ram[address]) + step) % 256) for address in (90, 91) for step in (8, -8)
    }
    expected_twice = {frozenset([poke]) for poke in pokes}
    twice = {do for (do, length), count in asked.items() if count > 1 and length == 15}
    singles = {frozenset([do]) for do in do_values}
    assert twice <= expected_twice
    assert {1} == {asked[each, 15] for each in singles - expected_twice}
    assert 1 == asked[frozenset(), 15]
    # Both pokes of every byte for two frames, and the reference there.
    assert {257: 1} == {sum(count for (_, length), count in asked.items() if length == 2): 1}


def test_the_number_of_rollouts(monkeypatch):
    """What measuring costs is counted, and is what its parts sum up to."""
    monkeypatch.setattr("oracle.effects.ExactRollouts", CountingRollouts)
    monkeypatch.setattr(CountingRollouts, "asked", Counter())
    key = measure(RamV2(), GAME, 0, machines(LIVELY))
    do_values = {do for cause in key.question.causes for do in cause.interventions}
    generator = RamV2()._generator(GAME, key.question.trace, "redraw")
    redrawn = {
        do
        for cause in second_draw(key.question.reference_pool, generator)
        for do in cause.interventions
        if do not in do_values
    }
    n_sprites = sum(output.regime == "position" for output in key.question.outputs)
    # Live: the reference, and actions up to the first that is felt (0 or 1: one of them is not what was played).
    n_watched = key.n_rollouts - CountingRollouts.asked.total()
    assert n_watched in (2, 3)
    # One reference, the do-values, 257 pokes of two frames and two per sprite at the horizon, the redrawn values.
    fixed = 1 + len(do_values) + 257 + 2 * n_sprites + len(redrawn)
    # Curves: what is removed, unless it is nothing, or one byte's first do-value.
    sets = {each for each in curve_sets(key) if each and each not in {frozenset([do]) for do in do_values}}
    assert fixed + len(sets) == CountingRollouts.asked.total()


def second_draw(pool, generator):
    """The second draw of do-values."""
    return byte_causes(pool, generator=generator)


def curve_sets(key):
    """The different sets of removals that the reference curves of an answer key need."""
    generator = RamV2()._generator(GAME, key.question.trace, "orders")
    orders = [generator.permutation(129).tolist() for _ in range(20)]
    for effect in np.abs(key.effects):
        shuffled = generator.permutation(129)
        orders.append(sorted(shuffled.tolist(), key=lambda index, effect=effect: -effect[index]))
    removals = [cause.removal for cause in key.question.causes]
    steps = (0, 1, 2, 4, 8, 16, 32, 64, 129)
    parts = [part for order in orders for step in steps for part in (order[:step], order[step:])]
    return {frozenset(removals[index] for index in part if removals[index]) for part in parts}


# --- controls --------------------------------------------------------------------------------------------------------


def test_redraw_is_a_measurement_from_scratch(key):
    """The redrawn effects are those of the second draw, measured anew, with the action's as they were."""
    rollouts = rollouts_of(LIVELY, key.question.trace)
    generator = RamV2()._generator(GAME, key.question.trace, "redraw")
    redrawn = second_draw(key.question.reference_pool, generator)
    assert [cause.interventions for cause in redrawn] != [each.interventions for each in key.question.causes[:128]]
    again = respond(rollouts, reference_run(rollouts), [*redrawn, key.question.causes[-1]])
    for row, output in enumerate(key.question.outputs):
        assert again.effects(output).tolist() == key.controls["oracle_redraw"][row].tolist()
    assert not np.array_equal(key.controls["oracle_redraw"], key.effects)


def test_redraw_on_machines_of_their_own(key):
    """The redrawn effects on the content bytes are a loop's over fresh consoles."""
    generator = RamV2()._generator(GAME, key.question.trace, "redraw")
    redrawn = second_draw(key.question.reference_pool, generator)
    some = [11, 12, 21, 31, 61]
    expected = naive.byte_effects(machines(LIVELY), key.question.trace, [redrawn[index] for index in some])
    for row, output in enumerate(key.question.outputs):
        if output.ram_address is not None:
            column = key.controls["oracle_redraw"][row, some].tolist()
            assert [effects[output.ram_address] for effects in expected] == column


def test_the_redraw_has_no_sign_with_a_single_do_value():
    """With one do-value per byte the controls claim sizes, as the oracle does."""
    single = measure(QUICK, GAME, 0, machines(LIVELY))
    assert 0 <= min(claims.min() for claims in single.controls.values())
    assert single.effects.min() < 0


def test_the_hub_is_its_replica(key):
    """What the hub claims about each output is the loop's, of the effects on all bytes."""
    rollouts = rollouts_of(LIVELY, key.question.trace)
    effects = ram_effects(respond(rollouts, reference_run(rollouts), key.question.causes)).tolist()
    addresses = [*range(128), -1]
    eligible = naive_scores.eligible_bytes(effects, addresses, 3)
    assert [10, 20, 30, 50] == [address for address, chosen in enumerate(eligible) if chosen]
    for row, output in enumerate(key.question.outputs):
        expected = naive_scores.hub_claim(effects, eligible, addresses, output.ram_address)
        assert pytest.approx(expected, abs=1e-12) == key.controls["hub"][row].tolist()


def test_reference_curves_are_replays(key):
    """The curves of the first random order, and of the oracle, are runs straight through with causes removed."""
    trace, causes = key.question.trace, key.question.causes
    generator = RamV2()._generator(GAME, trace, "orders")
    order = generator.permutation(129).tolist()
    address = key.question.outputs[0].ram_address

    def ram_after(interventions):
        return float(end_of_run(machines(LIVELY), trace.prefix, trace.tail, interventions)[0][address])

    steps = (0, 1, 2, 4, 8, 16, 32, 64, 129)
    expected = naive.curves(ram_after, [cause.removal for cause in causes], order, steps)
    assert list(expected) == key.reference_curves["random"][0, :, 0].tolist()
    n_outputs = len(key.question.outputs)
    shapes = {name: each.shape for name, each in key.reference_curves.items()}
    assert {"oracle": (n_outputs, 2, 9), "random": (n_outputs, 2, 20, 9)} == shapes


def test_an_answer_key_survives_the_archive(key):
    """With controls and curves an answer key comes back from its archive, byte for byte, and equal in value."""
    back = type(key).from_bytes(key.to_bytes(), "wide")
    assert key.to_bytes() == back.to_bytes()
    for group in ("controls", "reference_curves"):
        mine, its = getattr(key, group), getattr(back, group)
        assert {name: each.tolist() for name, each in mine.items()} == {
            name: each.tolist() for name, each in its.items()
        }
    assert key.question == back.question.model_copy(
        update={"reference_pool": key.question.reference_pool, "frames": key.question.frames}
    )
