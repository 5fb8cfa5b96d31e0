"""`veritari methods check` on networks: contract, and whether maps depend on what a network has learned."""

import pytest
import torch

from games.catalog import game
from harness import work
from harness.check import ANSWERS, COUNTED, DRAWS, SAME, UNCHANGED, UNTOUCHED, check_method
from harness.check_weights import ON_WEIGHTS, fading
from harness.errors import WrongUsage
from harness.findings import Verdict
from harness.guard import Report
from harness.pool import Limits
from harness.trial import Answer, Trial
from harness.units import Claim, TaskId
from oracle.readout import load_readout
from tests.harness.commands import PLUGINS, plugin

pytestmark = pytest.mark.ale

LIMITS = Limits(workers=1, timeout_seconds=60.0, memory_gib=4.0)
TASKS = ["pong network readout[13]", "pong network readout[51]"]
LAYERS = ["head", "features.4", "features.2", "features.0"]
ASKED = [ANSWERS, SAME, UNCHANGED, UNTOUCHED, COUNTED, DRAWS]


def check(spec, *subjects, network="readout", rom_id="pong"):
    """The findings on one game-state of Pong."""
    trial = Trial("ram-v1", rom_id, seed=0, subjects=subjects or None, network=network)
    return check_method(spec, trial, LIMITS)


def kept(found, requirement):
    """Whether a requirement is kept, by task."""
    return {each.task: each.kept for each in found.verdicts if each.requirement == requirement}


def lines(found):
    """All verdicts but that the method describes itself, as text."""
    return [f"{each.requirement}; {each.task}; {each.kept}; {each.detail}" for each in found.verdicts[1:]]


@pytest.mark.parametrize("name", ["grad_cam", "vanilla_gradient"])
def test_a_map_of_a_trained_network_fades(name):
    """A map resembles that of the trained network less when all layers are random than when only the head is."""
    found = check(name, "network")
    assert ["loads and describes itself", *ASKED, *ASKED, ON_WEIGHTS, ON_WEIGHTS] == [
        each.requirement for each in found.verdicts
    ]
    assert {True} == {each.kept for each in found.verdicts}
    assert dict.fromkeys(TASKS, True) == kept(found, ON_WEIGHTS)
    for output in ("readout[13]", "readout[51]"):
        curve = [point for point in found.randomisation if point.output == output]
        assert [point.layer for point in curve] == LAYERS
        assert curve[-1].absolute < curve[0].absolute < 1.0


def test_a_method_is_checked_on_all_that_it_explains():
    """Without a choice of subjects a method of machine and network is asked about both; with one, about that."""
    assert ["pong ram[54]", "pong changed_pixels", *TASKS] == list(kept(check("vanilla_gradient"), ANSWERS))
    assert ["pong ram[54]", "pong changed_pixels"] == list(kept(check("vanilla_gradient", "machine"), ANSWERS))


def test_a_method_that_shows_the_input_is_found_out():
    """A map of the input stays as it is, whatever the weights: correlation 1 all along, and not kept."""
    found = check(plugin("maps:shows_input"))
    assert dict.fromkeys(TASKS, False) == kept(found, ON_WEIGHTS)
    assert [pytest.approx(1.0)] * 8 == [point.absolute for point in found.randomisation]
    told = (
        "maps with random weights down to head .. features.0 correlate 1.00 1.00 1.00 1.00 "
        "with that of the trained network (the last must be below 0.9)"
    )
    assert f"{ON_WEIGHTS}; {TASKS[0]}; False; {told}" == lines(found)[-2]


def test_a_constant_map_depends_on_nothing():
    """A map that is the same number everywhere has correlation 0 by definition, and still is not kept."""
    found = check(plugin("maps:shows_nothing"))
    assert dict.fromkeys(TASKS, False) == kept(found, ON_WEIGHTS)
    assert {(0.0, 0.0)} == {(point.absolute, point.signed) for point in found.randomisation}
    assert f"{ON_WEIGHTS}; {TASKS[1]}; False; the map of the trained network is constant; maps" in lines(found)[-1]


def test_a_method_that_raises_on_networks_is_found_out():
    """An exception on the network is a failed verdict per output, without a curve; the machine's verdicts stand."""
    found = check(plugin("maps:fails_on_networks"))
    expected = {"pong ram[54]": True, "pong changed_pixels": True, TASKS[0]: False, TASKS[1]: False}
    assert (expected, {}, ()) == (kept(found, ANSWERS), kept(found, ON_WEIGHTS), found.randomisation)
    assert f"{ANSWERS}; {TASKS[1]}; False; ValueError: expected RAM, got a picture" in lines(found)


def test_a_method_that_remembers_is_found_out():
    """What was asked before must not show in an answer: the second time, questions come in another order."""
    found = check(plugin("maps:counts_questions"))
    assert dict.fromkeys(TASKS, False) == kept(found, SAME)


def test_read_and_network_are_randomised_together():
    """A method that compares `task.read` with `task.network` finds them equal, trained or random."""
    found = check(plugin("maps:compares_networks"))
    assert dict.fromkeys(TASKS, True) == kept(found, ON_WEIGHTS)


def test_a_draw_decides_the_weights():
    """Draws and seeds of a run differ in their weights; equal ones have the same, and the trained network is left."""
    trained = load_readout(game("pong"))
    wanted = [(2, 0, 0), (2, 0, 0), (2, 1, 0), (2, 0, 1)]
    first, again, other_draw, other_seed = (
        work._forgetful(trained, work.Randomisation(n_layers, draw), seed).module.head.weight
        for n_layers, draw, seed in wanted
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other_draw)
    assert not torch.equal(first, other_seed)
    assert torch.equal(load_readout(game("pong")).module.head.weight, trained.module.head.weight)


def answered(*values):
    """A map that came of asking once."""
    task = TaskId(subject="network", game="pong", state=0, output="y", regime="content")
    return Answer(Report("ok", "", 0.0), Claim(task=task, method="any", status="ok", values=values))


def curve(trained, random):
    """The findings on a network of two layers, one draw each."""
    steps = {work.Randomisation(n_layers, 0): answer for n_layers, answer in enumerate(random, start=1)}
    return fading("pong network y", trained.claim, ["head", "body"], steps)


def test_all_layers_decide_not_the_first():
    """A constant map is judged by what it is when every layer is random, not when only the head is."""
    constant, other = answered(1.0, 1.0), answered(1.0, 2.0)
    assert [False] == list(kept(curve(constant, [other, constant]), ON_WEIGHTS).values())
    assert [True] == list(kept(curve(constant, [constant, other]), ON_WEIGHTS).values())


def test_an_answer_that_fails_on_random_weights_is_told():
    """A method that raises on a randomised network has no curve, and the verdict says from which layer on."""
    fails = Answer(Report("failed", "ValueError: no such network", 0.0), None)
    found = curve(answered(1.0, 2.0), [answered(2.0, 1.0), fails])
    expected = Verdict(
        ON_WEIGHTS, "pong network y", False, "with random weights down to body: ValueError: no such network"
    )
    assert ((expected,), ()) == (found.verdicts, found.randomisation)


def test_a_claim_per_cause_has_no_curve():
    """A method that measures on the machine gives no map of a network, so nothing is randomised."""
    found = check(plugin("maps:measures_causes"))
    assert (dict.fromkeys(TASKS, True), {}, ()) == (kept(found, ANSWERS), kept(found, ON_WEIGHTS), found.randomisation)


@pytest.mark.parametrize(
    ("name", "subject", "rom_id", "reason"),
    [
        ("sampler_gradient", "network", "pong", "it explains machine, not network"),
        ("grad_cam", "machine", "pong", "it explains network, not machine"),
        ("grad_cam", "network", "adventure", "no named bytes"),
    ],
)
def test_what_does_not_apply_is_one_line(name, subject, rom_id, reason):
    """A subject that the method does not explain, or a game that nobody can ask about, is one verdict with a reason."""
    found = check(name, subject, rom_id=rom_id)
    assert [f"applies; {rom_id} {subject}; True; not applicable: {reason}"] == lines(found)


def test_a_network_of_the_user_is_checked():
    """Every layer of a user's network is randomised, the network's own parameters last."""
    found = check("vanilla_gradient", "network", network=f"{PLUGINS}/networks.py:shifted")
    assert [("player_x", "linear"), ("player_x", "the network itself")] == [
        (point.output, point.layer) for point in found.randomisation
    ]
    assert {"pong network player_x": True} == kept(found, ON_WEIGHTS)


def test_a_network_without_weights_has_no_curve():
    """Where there is nothing to randomise, the contract is checked and no more."""
    found = check("vanilla_gradient", "network", network=f"{PLUGINS}/networks.py:weightless")
    assert ASKED == [each.requirement for each in found.verdicts[1:]]
    assert () == found.randomisation


def test_a_network_that_can_not_be_built_is_wrong_usage():
    """The reason of a user's network is told in one line."""
    expected = (
        r"^--network: .*networks\.py:broken: expected a network, got RuntimeError: no weights on this disk; mend it$"
    )
    with pytest.raises(WrongUsage, match=expected):
        check("grad_cam", network=f"{PLUGINS}/networks.py:broken")
