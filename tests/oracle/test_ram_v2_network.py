"""Protocol ram-v2 about a network: effects are means over do-values, on a console of 128 cells."""

import numpy as np
import pytest
import torch

from oracle.do_values import cause_of
from oracle.effects import AnswerKey
from oracle.intervention import ActionWrite, RamWrite
from oracle.network import Network
from oracle.network_effects import measure_network
from oracle.output import network_output
from oracle.ram_v2 import RamV2
from tests.naive import ram_v2 as naive
from tests.toy import WeightedPixels
from tests.wide import N_COLUMNS, N_ROWS, Rules, WideMachine, wide_game

# Four sprites, of which the action moves one; the action flashes too.
RULES = Rules(columns=((90, 10), (91, 20), (95, 30), (96, 40)), pushes=(91, 92, 93), flashes=8, counter=2)
WEIGHTS = np.random.default_rng(2).integers(-3, 4, (2, 2, N_ROWS, N_COLUMNS)).astype(np.float32)
OUTPUTS = (network_output("one", "content", 0), network_output("other", "position", 1))
VISIBLE = ["ram[90]", "ram[91]", "ram[95]", "ram[96]", "action"]


def machine():
    """A console on which four bytes move something."""
    return WideMachine(RULES)


@pytest.fixture(scope="module")
def key():
    """The answer key for a network that adds up weighted pixels."""
    network = Network("sum", WeightedPixels(torch.from_numpy(WEIGHTS)).eval(), lambda frames: frames, OUTPUTS)
    return measure_network(RamV2(), wide_game(), 0, network, fresh_machine=machine)


def seen_after(trace, do):
    """Both frames after one do-value, on a console of its own."""
    console = machine()
    for action in trace.prefix:
        console.act(action)
    actions = list(trace.tail[:2])
    if do is not None and hasattr(do, "address"):
        console.write_ram(do.address, do.value)
    elif do is not None:
        actions[do.offset] = do.action
    frames = []
    for action in actions:
        console.act(action)
        frames.append(console.grayscale().astype(np.float64))
    return np.array(frames)


def test_only_what_is_seen_is_a_cause(key):
    """The causes are those of which some do-value moves a pixel; bytes that nothing shows are left out."""
    assert VISIBLE == [cause.label for cause in key.question.causes]
    assert ("network", {}) == (key.question.subject, key.controls)


class RoundTheScreen(RamV2):
    """Do-values that draw the same picture, a whole screen further; but for `ram[96]` each byte has one more."""

    def causes(self, game, rollouts):
        causes = []
        for address in (90, 91, 95, 96):
            value = int(rollouts.ram[address])
            same, other = RamWrite(address, (value + N_COLUMNS) % 256), RamWrite(address, value + 8)
            causes.append(cause_of(f"ram[{address}]", (same,) if address == 96 else (same, other), removal=None))
        return (*causes, cause_of("action", (ActionWrite(0, 17), ActionWrite(0, 16)), removal=None))


def test_one_do_value_that_is_seen_is_enough():
    """A cause is left out only if none of its do-values moves a pixel; those that move none count in its mean."""
    network = Network("sum", WeightedPixels(torch.from_numpy(WEIGHTS)).eval(), lambda frames: frames, OUTPUTS)
    found = measure_network(RoundTheScreen(), wide_game(), 0, network, fresh_machine=machine)
    assert ["ram[90]", "ram[91]", "ram[95]", "action"] == [cause.label for cause in found.question.causes]
    trace, do = found.question.trace, found.question.causes[0].further[0]
    said = float((WEIGHTS[0] * (seen_after(trace, do) - seen_after(trace, None))).sum())
    assert pytest.approx(abs(said) / 2, abs=1e-2) == found.effects[0, 0]


def test_effects_are_means_over_do_values(key):
    """The effect of a cause is the mean size of what each of its do-values does to what the network says."""
    trace = key.question.trace
    reference = seen_after(trace, None)
    for column, cause in enumerate(key.question.causes):
        shifts = [seen_after(trace, do) - reference for do in cause.interventions]
        for row, weights in enumerate(WEIGHTS.astype(np.float64)):
            said = [float((weights * shift).sum()) for shift in shifts]
            [expected] = naive.effects_of_causes(said, [0] * len(said))
            assert pytest.approx(expected, abs=1e-2) == key.effects[row, column]


def test_movement_has_a_row_per_do_value(key):
    """The movement holds every do-value of the visible causes, those that happen to move nothing included."""
    trace = key.question.trace
    reference = seen_after(trace, None)
    do_values = [do for cause in key.question.causes for do in cause.interventions]
    dense = key.movement.dense()
    assert 4 * 8 + 17 == len(do_values) == len(dense)
    assert [8, 8, 8, 8, 17] == np.bincount(key.movement.owners).tolist()
    for shift, do in zip(dense, do_values, strict=True):
        assert (seen_after(trace, do) - reference == shift).all()


def test_the_signed_projection_of_the_weights_is_the_effect(key):
    """Of a linear network the weights are the gradient, and their projection on the movement is the effect itself."""
    for row, weights in enumerate(WEIGHTS):
        claim = key.movement.project(weights.astype(np.float64), signed=True)
        assert pytest.approx(key.effects[row].tolist(), abs=1e-2) == claim.tolist()


def test_a_network_has_reference_curves_too(key):
    """What the network says is compared with the oracle's and random orders of the five causes, at four steps."""
    assert {"oracle": (2, 2, 5), "random": (2, 2, 20, 5)} == {
        name: curves.shape for name, curves in key.reference_curves.items()
    }
    trace = key.question.trace
    removed = seen_after(trace, key.question.causes[int(np.argmax(key.effects[0]))].removal)
    # After the first step of deletion the largest effect is gone.
    assert pytest.approx(float((WEIGHTS[0] * removed).sum()), abs=1e-2) == key.reference_curves["oracle"][0, 0, 1]


def test_it_survives_the_archive(key):
    """The answer key comes back byte for byte, movement and curves included."""
    back = AnswerKey.from_bytes(key.to_bytes(), "wide")
    assert key.to_bytes() == back.to_bytes()
    assert key.movement.dense().tolist() == back.movement.dense().tolist()
    assert (key.movement.owners.tolist(), key.movement.shape) == (back.movement.owners.tolist(), back.movement.shape)
