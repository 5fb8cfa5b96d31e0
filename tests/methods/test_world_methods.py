"""The methods that measure on the machine: naive replicas, what they run, and what they say where nothing happens."""

from dataclasses import replace

import pytest

from methods.counterfactual import Counterfactual
from methods.extremal_perturbation import ExtremalPerturbation
from methods.finite_difference import FiniteDifference
from methods.kernel_shap import KernelShap
from methods.lime import Lime
from methods.method import BadMethod
from methods.occlusion import Occlusion
from methods.registry import registered, resolve
from methods.rise import Rise
from tests.methods.tasks import CASES, CONTENT, POSITION, draw_question, draw_task, generator_of
from tests.methods.worlds import (
    game_task,
    question_of,
    recorded,
    tangled_rollout,
    task_of,
    tied_rollout,
    toy_key,
    toy_task,
)
from tests.naive import world as naive

# Every method of this project that explains the machine by rollouts: a new one without a replica fails here.
BUILT_IN = [name for name, point in registered().items() if point.value.startswith("methods.")]
MEASURING = [name for name in BUILT_IN if resolve(name).declaration.access == "world"]
every_method = pytest.mark.parametrize("name", MEASURING)
every_output = pytest.mark.parametrize("output", [CONTENT, POSITION], ids=["content", "position"])

WORLDS = {"linear": None, "tangled": tangled_rollout, "tied": tied_rollout}


def claim(method, task, seed=0):
    """What the method claims of the task."""
    return method.claim(task, generator=generator_of(seed))


def close(values, tolerance=1e-9):
    """The values up to the rounding of sums."""
    return pytest.approx(list(values), rel=tolerance, abs=tolerance)


# --- replicas -------------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("world", WORLDS)
def test_replica(name, case, world):
    """A method claims what its naive replica does, whether bytes add up, or depend on each other without any rule."""
    method, question = resolve(name), draw_question(case)
    task = draw_task(case, method)
    if WORLDS[world]:
        task = replace(task, rollout=WORLDS[world](question))
    expected = naive.REPLICAS[name](question, task.rollout, generator_of(0))
    assert close(expected) == claim(method, task).tolist()


SAMPLED = {
    "rise": (lambda n: Rise(n_samples=n), lambda *asked, n: naive.rise(*asked, n_samples=n)),
    "lime": (lambda n: Lime(n_samples=n), lambda *asked, n: naive.lime(*asked, n_samples=n)),
    "kernel_shap": (lambda n: KernelShap(n_samples=n), lambda *asked, n: naive.sampled_shapley(*asked, n_samples=n)),
}


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("seed", range(6))
def test_replica_of_a_sample(name, seed):
    """Where there are more masks than samples, a method claims what its replica does with the same draws."""
    build, replica = SAMPLED[name]
    question = question_of(7, seed)
    rollout = tangled_rollout(question)
    expected = replica(question, rollout, generator_of(seed), n=60)
    found = claim(build(60), task_of(question, rollout), seed)
    assert close(expected) == found.tolist()
    # Were the samples not drawn but counted, the claim would be that of all 128 masks.
    assert (found - claim(build(128), task_of(question, rollout))).abs().max() > 1


@every_method
@every_output
def test_replica_on_the_toy(name, output):
    """On the toy machine a method claims what its replica does."""
    task, question = toy_task(output), toy_key().question
    expected = naive.REPLICAS[name](question, task.rollout, generator_of(0))
    assert close(expected) == claim(resolve(name), task).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_replica_with_other_parameters(seed):
    """Parameters reach the formula: baseline, steps, number of values, area, and width of the kernel."""
    question = question_of(6, seed)
    tangled, tied = tangled_rollout(question), tied_rollout(question)
    # Masks of an extremal perturbation keep growing here, so that their area matters.
    rollout = lambda writes: tangled(writes) + 1000 * tied(writes)  # noqa: E731
    asked = question, rollout, generator_of(seed)
    pairs = {
        Occlusion(baseline=3): naive.occlusion(*asked, baseline=3),
        FiniteDifference(steps=(2, 5, 120)): naive.finite_difference(*asked, steps=(2, 5, 120)),
        Counterfactual(n_values=2): naive.counterfactual(question, rollout, generator_of(seed), n_values=2),
        Rise(baseline=3): naive.rise(*asked, baseline=3),
        Lime(baseline=3, kernel_width=0.1): naive.lime(*asked, baseline=3, kernel_width=0.1),
        KernelShap(baseline=3): naive.shapley(*asked, baseline=3),
        ExtremalPerturbation(max_area=3): naive.extremal_perturbation(*asked, max_area=3),
        ExtremalPerturbation(max_area=3, baseline=3): naive.extremal_perturbation(*asked, max_area=3, baseline=3),
    }
    assert set(MEASURING) == {method.declaration.name for method in pairs}
    for method, expected in pairs.items():
        found = claim(method, task_of(question, rollout), seed)
        assert close(expected) == found.tolist()
        assert found.tolist() != claim(resolve(method.declaration.name), task_of(question, rollout), seed).tolist()


# --- what is run ----------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("world", [tangled_rollout, tied_rollout])
@pytest.mark.parametrize("n_bytes", [7, 12])
def test_nothing_is_run_twice(name, world, n_bytes):
    """No method runs the machine twice with the same interventions."""
    question = question_of(n_bytes)
    task, recorder = recorded(task_of(question, world(question)))
    claim(resolve(name), task)
    assert len(set(recorder.asked)) == len(recorder.asked)


@pytest.mark.parametrize(
    ("method", "n_rollouts"),
    [
        (Occlusion(), 1 + 7),
        (FiniteDifference(), 1 + 7 * 4),
        (Counterfactual(), 1 + 7 * 3),  # four frames
        (Counterfactual(n_values=2), 1 + 7 * 2),
        (Rise(), 2**7),
        (Lime(), 2**7),
        (KernelShap(), 2**7),
        # An additive world of one sign: the mask grows to the end.
        (ExtremalPerturbation(max_area=3), 1 + 7 + 6 + 5),
    ],
    ids=str,
)
def test_number_of_rollouts(method, n_rollouts):
    """A method runs the machine as often as its formula says, the reference run once."""
    task, recorder = recorded(game_task(7, lambda kept: 2.0 * kept.sum()))
    claim(method, task)
    assert n_rollouts == len(recorder.asked)


def n_rollouts_of(method, question):
    """How often a method runs a world in which no two sets of bytes are alike."""
    task, recorder = recorded(task_of(question, tangled_rollout(question)))
    claim(method, task)
    return len(recorder.asked)


def test_samples_limit_rollouts():
    """Sampled methods run their samples once each, and the one or two ends that they need beside them."""
    wide = question_of(40)
    assert 100 + 1 == n_rollouts_of(Rise(100), wide)
    # LIME's first mask is the reference run.
    assert 100 == n_rollouts_of(Lime(100), wide)
    # Small coalitions are drawn more than once: 100 draws are some fewer coalitions.
    assert 100 + 2 - 20 < n_rollouts_of(KernelShap(100), wide) <= 100 + 2
    # 2^7 coalitions are more than 127 samples: at most 63 pairs, and the ends.
    assert n_rollouts_of(KernelShap(127), question_of(7)) <= 63 * 2 + 2


@pytest.mark.parametrize("name", [name for name in MEASURING if "baseline" in resolve(name).defaults()])
def test_bytes_at_the_baseline_are_left_alone(name):
    """A byte that is 0 already is not occluded with 0, and claims exactly 0."""
    question = question_of(6)
    pool = question.reference_pool.copy()
    pool[:, 2] = 0
    question = question.model_copy(update={"reference_pool": pool})
    task, recorder = recorded(task_of(question, tangled_rollout(question)))
    assert 0.0 == claim(resolve(name), task)[2].item()
    assert {0, 1, 3, 4, 5} == {write.address for asked in recorder.asked for write in asked}


# --- nothing to say -------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("n_bytes", [6, 12])
def test_a_constant_world_has_no_causes(name, n_bytes):
    """Where nothing changes y, every claim is exactly 0, not a rounding error that could be ranked."""
    question = question_of(n_bytes)
    # Sums of this number are rounded.
    assert [0.0] * n_bytes == claim(resolve(name), task_of(question, lambda _: 0.1)).tolist()


@every_method
def test_a_task_without_ram_causes(name):
    """Where no cause is a byte of RAM, every claim is 0."""
    question = question_of(6)
    question = question.model_copy(update={"causes": draw_question(CASES[0]).causes[-2:]})
    assert [0.0] * 6 == claim(resolve(name), task_of(question, tangled_rollout(question))).tolist()


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("occlusion(baseline=256)", "baseline: expected 0..255, got 256"),
        ("rise(n_samples=0)", "n_samples: expected at least 1, got 0"),
        ("rise(baseline=-1)", "baseline: expected 0..255, got -1"),
        ("lime(n_samples=0)", "n_samples: expected at least 1, got 0"),
        ("lime(baseline=256)", "baseline: expected 0..255, got 256"),
        ("lime(kernel_width=0.0)", "kernel_width: expected more than 0, got 0.0"),
        ("kernel_shap(n_samples=1)", "n_samples: expected at least 2, got 1"),
        ("kernel_shap(baseline=256)", "baseline: expected 0..255, got 256"),
        ("counterfactual(n_values=0)", "n_values: expected at least 1, got 0"),
        ("finite_difference(steps=())", "number of steps: expected at least 1, got 0"),
        ("finite_difference(steps=(1,128))", "steps: expected 1..127, got 128"),
        ("extremal_perturbation(max_area=0)", "max_area: expected at least 1, got 0"),
        ("extremal_perturbation(baseline=256)", "baseline: expected 0..255, got 256"),
    ],
)
def test_parameters_out_of_range(spec, reason):
    """A parameter out of its range is refused by name."""
    with pytest.raises(BadMethod, match=reason):
        resolve(spec)
