"""What holds for every task of ram-v2: laws of its scores in real games, and entries of the store shared by runs."""

import math

import numpy as np
import pytest

from games.catalog import game
from harness import work
from harness.controls import CONTROLS, Truth
from harness.grading import grade, grounds_of
from harness.units import Claim, Curves, task_id
from oracle.effects import AnswerKey
from oracle.protocol import protocol
from oracle.store import Store, store_key
from tests.atari import ram_v2_key
from tests.naive import ram_v2 as naive

pytestmark = pytest.mark.ale
GAMES = ("pong", "breakout")
# Scores that look at sizes only, and not at the order of equal ones. Where effects are tied for the third place even
# the oracle's precision is below 1.
PERFECT = ("F", "F_log", "spearman", "S", "S_log", "M")
SIZES = (*PERFECT, "precision_at_3")


def truth_of(key, row):
    """What a control knows of one output."""
    return Truth(np.abs(key.effects[row]), claims={name: claims[row] for name, claims in key.controls.items()})


def graded(key, row, values, curves=None):
    """The scores of a claim on one output."""
    task = task_id(key.question, key.question.outputs[row])
    claim = Claim(task=task, method="a", status="ok", values=tuple(map(float, values)))
    return grade(claim, grounds_of(key, row, 0, curves), version="v2")


def tasks():
    """Every output of both games."""
    return [(key, row) for key in map(ram_v2_key, GAMES) for row in range(len(key.question.outputs))]


def scores_of(name, seed=0):
    """The scores of a control on every output."""
    generator = np.random.default_rng(seed)
    return [graded(key, row, CONTROLS[name](truth_of(key, row), generator=generator)) for key, row in tasks()]


def test_the_games_have_outputs():
    """Pong has three bytes and the ball, Breakout three bytes; no state is excluded, no cause is vacuous."""
    regimes = {rom_id: [output.regime for output in ram_v2_key(rom_id).question.outputs] for rom_id in GAMES}
    assert {"pong": ["content"] * 3 + ["position"], "breakout": ["content"] * 3} == regimes
    assert ["", ""] == [ram_v2_key(rom_id).exclusion for rom_id in GAMES]
    assert 0 == sum("vacuous" in flags for rom_id in GAMES for flags in ram_v2_key(rom_id).flags)


def test_the_oracle_is_perfect():
    """The true effects have 1 in every score that looks at sizes, and are nowhere undefined."""
    for found in scores_of("oracle"):
        assert dict.fromkeys(PERFECT, pytest.approx(1.0)) == {name: found[name] for name in PERFECT}


def test_a_uniform_claim_has_vanished():
    """A claim of every cause alike has F = S = M = 0 on every output."""
    for found in scores_of("uniform"):
        assert (0.0, 0.0, 0.0, True) == tuple(found[name] for name in ("F", "S", "M", "vanished"))


def test_other_do_values_stand_between_oracle_and_hub():
    """On average the redrawn effects have F 0.94 here, the importance for other outputs 0.34, a random claim none."""
    means = {name: np.mean([found["F"] for found in scores_of(name)]) for name in ("oracle_redraw", "hub")}
    assert {"oracle_redraw": pytest.approx(0.944, abs=0.0005), "hub": pytest.approx(0.340, abs=0.0005)} == means
    random = [found["F"] for seed in range(30) for found in scores_of("random", seed)]
    # A correlation of 129 causes by chance has standard deviation 1 / sqrt(128); the 210 are nearly apart.
    assert pytest.approx(0.0, abs=4 / math.sqrt(128 * 210)) == np.mean(random)


@pytest.mark.parametrize("seed", range(3))
def test_equal_effects_may_be_swapped(seed):
    """Swapping what is claimed of two causes of equal effect changes no score that looks at sizes."""
    generator = np.random.default_rng(seed)
    for key, row in tasks():
        effect = np.abs(key.effects[row])
        values, counts = np.unique(effect, return_counts=True)
        one, other = generator.choice(np.flatnonzero(effect == generator.choice(values[counts > 1])), 2, replace=False)
        claim = effect + generator.exponential(size=len(effect)) * effect.mean()
        swapped = claim.copy()
        swapped[[one, other]] = claim[[other, one]]
        before, after = (graded(key, row, each) for each in (claim, swapped))
        assert {name: pytest.approx(before[name], abs=1e-12) for name in SIZES} == {name: after[name] for name in SIZES}


def test_unequal_effects_may_not_be_swapped():
    """Swapping what is claimed of the largest and of no effect is seen by every one of these scores but M."""
    for key, row in tasks():
        effect = np.abs(key.effects[row])
        swapped = effect.copy()
        swapped[[effect.argmax(), effect.argmin()]] = effect.min(), effect.max()
        assert all(
            graded(key, row, swapped)[name] < 1 - 1e-6 for name in ("F", "F_log", "S", "S_log", "precision_at_3")
        )


def test_differences_follow_from_the_stored_curves():
    """The oracle's own stored curves, taken as a claim's, give differences of plain areas over the plain range."""
    for key, row in tasks():
        deletion, insertion = key.reference_curves["oracle"][row].tolist()
        random = key.reference_curves["random"][row]
        curves = Curves(
            task=task_id(key.question, key.question.outputs[row]),
            method="a",
            status="ok",
            deletion=tuple(deletion),
            insertion=tuple(insertion),
        )
        found = graded(key, row, np.abs(key.effects[row]), curves)
        reference = key.reference_value[row]
        span = max(abs(y - reference) for y in [*deletion, *insertion, *random.ravel().tolist()])
        areas = [area(each, reference) for each in (deletion, insertion)]
        chance = [np.mean([area(each, reference) for each in random[kind].tolist()]) for kind in (0, 1)]
        expected = ((areas[0] - chance[0]) / span, (chance[1] - areas[1]) / span)
        assert pytest.approx(expected) == (found["deletion_diff"], found["insertion_diff"])


def area(curve, reference):
    """The mean over the steps of a curve's distance from the reference, the ends counting half."""
    sizes = [abs(y - reference) for y in curve]
    return (sum(sizes) - sizes[0] / 2 - sizes[-1] / 2) / (len(sizes) - 1)


def test_curves_start_from_the_reference():
    """All stored curves have the reference where nothing is removed, and one value where everything is."""
    for key, row in tasks():
        curves = np.concatenate(
            [key.reference_curves["oracle"][row][:, np.newaxis], key.reference_curves["random"][row]], 1
        )
        assert {key.reference_value[row]} == {*curves[0, :, 0].tolist(), *curves[1, :, -1].tolist()}
        assert 1 == len({*curves[0, :, -1].tolist(), *curves[1, :, 0].tolist()})


def test_donors_have_occurred():
    """In a real game too donors are known values, and a cause without any is flagged, 109 times in Pong."""
    key = ram_v2_key("pong")
    pool = key.question.reference_pool
    for address, cause in enumerate(key.question.causes[:128]):
        known = naive.others_of(pool[:, address].tolist())
        count = min(4, len(known))
        donors = tuple(do.value for do in cause.interventions[:count])
        assert donors in naive.systematic_samples(known, count)
        assert (count == 0) == ("off_manifold" in key.flags[address])
    assert 109 == sum("off_manifold" in flags for flags in key.flags)


def test_a_shared_entry_is_about_the_protocol_that_is_run(tmp_path):
    """What a run of one state has stored is used by a run of four, whose question has its own protocol's name."""
    stored = ram_v2_key("pong")
    few = protocol("ram-v2(n_states=1)")
    question = stored.question.model_copy(update={"protocol": few.name})
    Store(tmp_path).save(store_key(few, game("pong"), 0), stored.model_copy(update={"question": question}))
    path = tmp_path / "key.npz"
    report = work.measure_state(work.GameState("ram-v2", "pong", 0), str(tmp_path), str(path))
    # Nothing was measured: no rollout was run.
    assert ("ok", 0) == (report.status, report.n_rollouts)
    assert stored.to_bytes() == path.read_bytes()
    assert "ram-v2" == AnswerKey.from_bytes(path.read_bytes(), "key").question.protocol
