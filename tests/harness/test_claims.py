"""Putting one task to one method: what it sees, what is counted, and what becomes of its answer. On the toy machine."""

import re

import numpy as np
import pytest
import torch

from harness.claims import DEFAULT_BUDGET, CountedRead, CountedRollout, ask, hooked
from harness.projection import on_causes, project
from harness.seeds import seed_of
from harness.units import task_id
from harness.world import build_world
from methods.integrated_gradients import IntegratedGradients
from methods.method import BadMethod, NotApplicable, method
from methods.reads import OneHotRead, SamplerRead
from methods.sampler_gradient import sampler_gradient
from methods.vanilla_gradient import vanilla_gradient
from oracle.effects import measure
from oracle.errors import BudgetExceeded
from oracle.intervention import ActionWrite, Cause, RamWrite
from oracle.movement import Movement
from oracle.network_effects import measure_network
from oracle.rollout import ExactRollouts
from tests.toy import (
    BALL_AT_HORIZON,
    PAPER_EFFECTS,
    PAPER_NETWORK_EFFECTS,
    ToyMachine,
    pixel_network,
    toy_game,
    toy_protocol,
)

DECLARED = {"domain": "ram", "family": "perturbation", "access": "read", "source": "a paper"}
CONTENT, POSITION = 0, 1
RAM_AT_STATE = (108, 1, 7, 2, 0, 0)


@pytest.fixture(scope="module")
def question():
    """The toy's question: six cells, fourteen causes, two outputs."""
    return measure(toy_protocol(), toy_game(), 0, ToyMachine).question


@pytest.fixture(scope="module")
def world(question):
    """The toy standing at its analysis state."""
    return build_world(ExactRollouts(ToyMachine, question.trace))


def claim_of(asked, question, world, output=CONTENT, run_seed=0):
    """The claim of a method on one output."""
    return ask(question, question.outputs[output], asked, world=lambda: world, run_seed=run_seed)


def no_world():
    """The world of a method that must not touch it."""
    pytest.fail("a machine was built for a method that only reads")


@method("numbered", **DECLARED)
def numbered(task, *, generator):
    """1 for the first cell, -2 for the second, 3, -4, 5, -6."""
    return torch.tensor([1.0, -2.0, 3.0, -4.0, 5.0, -6.0])


@method("per_cause", **DECLARED | {"domain": "cause"})
def per_cause(task, *, generator):
    """0, -1, 2, -3 ... for the causes."""
    return torch.tensor([float(index * (-1) ** index) for index in range(len(task.causes))])


@method("exhaustive", **DECLARED | {"domain": "cause", "access": "world"})
def exhaustive(task, *, generator):
    """The effect of every cause, measured."""
    reference = task.rollout([])
    return torch.tensor([task.rollout([cause.intervention]) - reference for cause in task.causes])


@method("prober", **DECLARED)
def prober(task, *, generator):
    """A rollout, by a method that says it only reads."""
    return task.ram * task.rollout([])


@method("noise", **DECLARED)
def noise(task, *, generator, scale: float = 1.0):
    """Random numbers."""
    return scale * torch.rand(6, generator=generator, dtype=torch.float64)


@method("silent", **DECLARED)
def silent(task, *, generator):
    """Nothing to say."""
    raise NotApplicable("no sprite")


@method("short", **DECLARED)
def short(task, *, generator):
    """One number too few."""
    return task.ram[1:]


# --- projection -----------------------------------------------------------------------------------------------------


def test_a_byte_s_value_goes_to_each_of_its_causes(question):
    """|value| of a cell is claimed of `set` and of `occlude` alike; causes outside RAM get 0."""
    claim = ask(question, question.outputs[CONTENT], numbered, world=no_world, run_seed=0)
    assert (1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 0, 0) == claim.values


def test_values_per_cause_stay_where_they_are(question):
    """A method that answers per cause names register and action too; the sign is dropped."""
    claim = ask(question, question.outputs[CONTENT], per_cause, world=no_world, run_seed=0)
    assert tuple(range(14)) == claim.values


def test_projection_by_hand():
    """Causes take the value of their byte by address, in any order and as often as they occur."""
    causes = [
        Cause(f"{address}", RamWrite(address or 0, 1), None, ram_address=address, vacuous=False)
        for address in (2, 0, None, 2)
    ]
    assert [7.0, 3.0, 0.0, 7.0] == project(np.array([-3.0, 5.0, 7.0]), causes, per_cause=False).tolist()
    assert [3.0, 5.0, 7.0, 1.0] == project(np.array([-3.0, 5.0, 7.0, -1.0]), causes, per_cause=True).tolist()


def test_a_claim_says_whose_it_is(question, world):
    """A claim carries its task and the method's label, with changed parameters."""
    claim = claim_of(noise.with_parameters(scale=2.0), question, world, POSITION)
    assert (task_id(question, question.outputs[POSITION]), "noise(scale=2.0)", "ok", "") == (
        claim.task,
        claim.method,
        claim.status,
        claim.reason,
    )
    assert ("toy", 0, "changed_pixels", "position") == (
        claim.task.game,
        claim.task.state,
        claim.task.output,
        claim.task.regime,
    )


# --- what a method sees ---------------------------------------------------------------------------------------------


def test_a_method_sees_its_task(question, world):
    """A task shows the state's RAM, the pool, the causes and the output, and a read that fits them; no effect."""
    seen = []

    @method("curious", **DECLARED)
    def curious(task, *, generator):
        seen.append(task)
        return task.ram

    claim_of(curious, question, world)
    claim_of(curious, question, world, POSITION)
    content, position = seen
    assert list(RAM_AT_STATE) == content.ram.tolist()
    # Six frames of the prefix; the ball moves by -1, 0, and, once `late` acts, 1 or 2 a frame from 104.
    assert [103, 103, 104, 105, 107, 108] == content.reference_pool[:, 0].tolist()
    assert question.causes == content.causes
    assert [("ram[0]", "content"), ("changed_pixels", "position")] == [
        (task.output, task.regime) for task in (content, position)
    ]
    # The content read is the ball's byte; the sampler looks at the ball's first pixel.
    assert [108.0] == content.read(content.ram).tolist()
    assert [OneHotRead, SamplerRead] == [type(task.read.read) for task in (content, position)]
    shown = {"protocol", "subject", "game", "state", "output", "regime", "ram", "causes", "read", "reference_pool"}
    assert shown | {"rollout", "frames", "network"} == set(vars(content))
    # Of a network; here the machine is asked about.
    assert (None, None) == (content.frames, content.network)


def test_the_read_is_the_declared_one(question, world):
    """Through the hard read the position gradient is exactly zero; through the sampler it is not."""
    assert (0.0,) * 14 == claim_of(vanilla_gradient, question, world, POSITION).values
    assert (1.0, 1.0, *(0.0,) * 12) == claim_of(vanilla_gradient, question, world).values
    # The cell that the sampler looks at lies on the edge of the footprint of `ball_x`.
    position = claim_of(sampler_gradient, question, world, POSITION).values
    assert {(0, position[0]), (1, position[0])} == {(index, value) for index, value in enumerate(position) if value}


# --- what is counted ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_gradients", "asked"),
    [
        (64, IntegratedGradients()),
        (16, IntegratedGradients(n_steps=16)),
        (1, vanilla_gradient),
        (1, sampler_gradient),
        (0, numbered),
    ],
)
@pytest.mark.parametrize("output", [CONTENT, POSITION])
def test_gradients_are_counted(question, output, asked, n_gradients):
    """Every point at which the gradient of the read is taken counts as one; a machine is never built for it."""
    claim = ask(question, question.outputs[output], asked, world=no_world, run_seed=0)
    assert (n_gradients, 0) == (claim.n_gradients, claim.n_rollouts)


def test_values_without_a_gradient_are_free(question):
    """Looking at the read without asking for its gradient counts nothing; a batch of three gradients counts three."""
    read = CountedRead(OneHotRead(6, 0))
    read(torch.zeros(5, 6, dtype=torch.float64))
    assert 0 == read.n_gradients
    points = torch.zeros(3, 6, dtype=torch.float64, requires_grad=True)
    read(points).sum().backward()
    assert 3 == read.n_gradients
    assert [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]] * 3 == points.grad.tolist()


def test_rollouts_measure_the_machine_and_are_counted(question, world):
    """A method with access to the world can measure every effect; each rollout counts."""
    for output in (CONTENT, POSITION):
        claim = claim_of(exhaustive, question, world, output)
        assert tuple(abs(row[output + 1]) for row in PAPER_EFFECTS) == claim.values
        # One for each of fourteen causes, one for the reference.
        assert (15, 0) == (claim.n_rollouts, claim.n_gradients)


def test_counts_start_anew_with_every_task(question, world):
    """What one task used does not count for the next."""
    assert [15, 15] == [claim_of(exhaustive, question, world).n_rollouts for _ in range(2)]


def test_a_method_that_reads_has_no_rollouts(question):
    """A method that declares `read` is refused its first rollout, and told what to declare."""
    expected = "rollouts: expected at most 0 per task, got one more; declare access='world' to use rollouts"
    with pytest.raises(BudgetExceeded, match=expected):
        ask(question, question.outputs[CONTENT], prober, world=no_world, run_seed=0)


def test_the_budget_is_per_task(question, world, monkeypatch):
    """A method with access to the world has 4096 rollouts per task; it is refused the first one beyond its budget."""
    assert 4096 == DEFAULT_BUDGET
    # Fifteen rollouts are what the exhaustive method needs; with as many as it needs nothing changes.
    monkeypatch.setattr("harness.claims.DEFAULT_BUDGET", 15)
    assert 15 == claim_of(exhaustive, question, world).n_rollouts
    monkeypatch.setattr("harness.claims.DEFAULT_BUDGET", 14)
    with pytest.raises(BudgetExceeded, match="rollouts: expected at most 14 per task, got one more; ask for fewer"):
        claim_of(exhaustive, question, world)


def test_a_refused_rollout_is_not_run(question, world):
    """At the budget a rollout is refused before it is run, again and again; those before it were right."""
    rollout = CountedRollout(lambda: world, question.outputs[CONTENT], budget=2)
    # `drag` of 0 instead of 1 for four frames.
    assert [BALL_AT_HORIZON, BALL_AT_HORIZON + 4] == [rollout([]), rollout([RamWrite(1, 0)])]
    before = world.rollouts.n_rollouts
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match="expected at most 2 per task"):
            rollout([ActionWrite(0, 3)])
    assert (2, before) == (rollout.n_rollouts, world.rollouts.n_rollouts)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([(54, 0)], "(54, 0) in it"),
        ([RamWrite(1, 0), None], "None in it"),
        (["junk"], "'junk' in it"),
        ([Cause("a", RamWrite(1, 0), None, 1, vacuous=False)], "Cause(label='a', "),
        (RamWrite(1, 0), "RamWrite(address=1, value=0) for it"),
    ],
)
def test_what_is_no_intervention_is_refused(question, world, given, told):
    """A rollout that would change nothing, or not all that was meant, fails the method, is not counted and not run."""
    rollout = CountedRollout(lambda: world, question.outputs[CONTENT], budget=2)
    before = world.rollouts.n_rollouts
    expected = (
        r"^task\.rollout: expected a list of RamWrite, RegisterWrite or ActionWrite, such as \[cause\.intervention\], "
        f"got {re.escape(told)}"
    )
    with pytest.raises(BadMethod, match=expected):
        rollout(given)
    assert (0, before) == (rollout.n_rollouts, world.rollouts.n_rollouts)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["ram", "reference_pool"])
def test_a_changed_task_is_detected(question, world, field):
    """A method that writes into its task is refused, and the question stays as it was."""

    @method("vandal", **DECLARED)
    def vandal(task, *, generator):
        getattr(task, field)[..., 2] += 1.0
        return task.ram

    with pytest.raises(BadMethod, match="task: expected its RAM and reference pool as they were, got changed ones"):
        claim_of(vandal, question, world)
    assert list(RAM_AT_STATE) == question.ram.tolist()


def test_asking_for_the_gradient_at_the_task_is_no_change(question, world):
    """A method may ask for the gradient at its RAM itself, and change a copy."""

    @method("direct", **DECLARED)
    def direct(task, *, generator):
        task.ram.requires_grad_()
        task.read(task.ram).sum().backward()
        gradient = task.ram.grad.clone()
        gradient[2] = 5.0
        return gradient

    assert (1.0, 1.0, 0.0, 0.0, 5.0, 5.0, *(0.0,) * 8) == claim_of(direct, question, world).values


def test_a_wrong_answer_is_refused(question, world):
    """An answer of another length is refused."""
    with pytest.raises(BadMethod, match=r"attribution: expected shape \(6,\), got \(5,\)"):
        claim_of(short, question, world)


def test_an_answer_per_cause_has_the_length_of_the_causes(question, world):
    """A method that answers per cause is not taken for one that answers per byte."""

    @method("confused", **DECLARED | {"domain": "cause"})
    def confused(task, *, generator):
        return task.ram

    with pytest.raises(BadMethod, match=r"attribution: expected shape \(14,\), got \(6,\)"):
        claim_of(confused, question, world)


def test_not_applicable_goes_through(question, world):
    """A method's own word that it does not apply is not taken for a failure."""
    with pytest.raises(NotApplicable, match=r"^no sprite$"):
        claim_of(silent, question, world)


# --- randomness -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("output", "name"), [(CONTENT, "ram[0]"), (POSITION, "changed_pixels")])
@pytest.mark.parametrize("run_seed", [0, 1])
def test_the_generator_s_seed_says_what_it_is_for(question, world, output, name, run_seed):
    """The generator is seeded by run seed, protocol, game, state, output and label, and by nothing else."""
    seed = seed_of(run_seed, "toy", "toy", 0, name, "noise(scale=3.0)")
    drawn = 3.0 * torch.rand(6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    expected = tuple(value for value in drawn.tolist() for _ in ("set", "occlude"))
    claim = claim_of(noise.with_parameters(scale=3.0), question, world, output, run_seed)
    assert (*expected, 0.0, 0.0) == claim.values


def test_different_draws_differ(question, world):
    """Task, parameters and run seed each give another generator; the same give the same."""
    claims = [
        claim_of(noise, question, world),
        claim_of(noise, question, world, POSITION),
        claim_of(noise, question, world, run_seed=1),
        claim_of(noise.with_parameters(scale=-1.0), question, world),
        claim_of(noise, question.model_copy(update={"state": 1}), world),
        claim_of(noise, question.model_copy(update={"game": "pong"}), world),
        claim_of(noise, question.model_copy(update={"protocol": "ram-v1"}), world),
    ]
    assert 7 == len({claim.values for claim in claims})
    assert claims[0] == claim_of(noise, question, world)


# --- networks -------------------------------------------------------------------------------------------------------

PIXELS = {"domain": "pixels", "family": "gradient", "access": "read", "source": "a paper"}


@pytest.fixture(scope="module")
def network_key():
    """The toy's answer key for a network that says the brightness of one pixel."""
    return measure_network(toy_protocol(), toy_game(), 0, pixel_network(), fresh_machine=ToyMachine)


def map_of(asked, network_key, network=None):
    """What a method says of the network."""
    question = network_key.question
    network = network or pixel_network()
    return ask(question, question.outputs[0], asked, world=no_world, run_seed=0, network=network)


def movement_of(moved):
    """What causes with one do-value each move."""
    return Movement.of(list(moved), np.zeros(moved.shape[1:], np.float32), np.arange(len(moved)))


def naive_projection(pixels, moved, *, signed):
    """The claim of each cause, pixel by pixel."""
    claims = []
    for shift in moved:
        total = 0.0
        for weight, step in zip(pixels.ravel().tolist(), shift.ravel().tolist(), strict=True):
            total += weight * step if signed else abs(weight) * abs(step)
        claims.append(abs(total))
    return claims


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("shape", [(2, 5, 4), (3, 2, 4, 4), (7,)])
def test_projection_of_a_map_is_the_replica(shape, signed):
    """A signed map claims |sum of A dx| of a cause, an unsigned one the sum of |A| |dx|, for inputs of any shape."""
    generator = np.random.default_rng(5)
    pixels, moved = generator.normal(size=shape), generator.normal(size=(6, *shape)).astype(np.float32)
    found = movement_of(moved).project(pixels, signed=signed)
    np.testing.assert_allclose(naive_projection(pixels, moved, signed=signed), found, rtol=1e-12)


def test_projection_laws():
    """Twice the map claims twice as much; the map's sign counts for nothing; causes keep their order."""
    generator = np.random.default_rng(6)
    pixels, moved = generator.normal(size=(2, 3, 3)), generator.normal(size=(5, 2, 3, 3)).astype(np.float32)
    movement, backwards = movement_of(moved), movement_of(moved[::-1])
    for signed in (True, False):
        claim = movement.project(pixels, signed=signed)
        np.testing.assert_allclose(2 * claim, movement.project(2 * pixels, signed=signed))
        np.testing.assert_allclose(claim, movement.project(-pixels, signed=signed))
        np.testing.assert_allclose(claim[::-1], backwards.project(pixels, signed=signed))
    # What moves up cancels what moves down in a signed map only.
    opposite = movement_of(np.array([[[[1.0, -1.0]]]], dtype=np.float32))
    ones = np.ones((1, 1, 2))
    assert [0.0, 2.0] == [opposite.project(ones, signed=signed)[0] for signed in (True, False)]


def test_only_maps_are_projected(network_key):
    """An answer per cause is a claim already."""
    answer = map_of(vanilla_gradient, network_key)
    assert answer == on_causes(answer, network_key.movement, domain="cause", signed=True)
    assert answer.values != on_causes(answer, network_key.movement, domain="pixels", signed=True).values


def test_the_gradient_of_a_linear_network_is_its_weights(network_key):
    """The pixel map of the vanilla gradient is 1 at the watched pixel and 0 elsewhere, and costs one gradient."""
    answer = map_of(vanilla_gradient, network_key)
    named = np.argwhere(np.array(answer.values).reshape(2, 8, 10))
    assert [[1, 3, 5]] == named.tolist()
    assert (1, 0) == (answer.n_gradients, answer.n_rollouts)
    claim = on_causes(answer, network_key.movement, domain="pixels", signed=True)
    assert [abs(float(effect)) for _, effect in PAPER_NETWORK_EFFECTS] == list(claim.values)


def test_a_method_sees_the_network(network_key):
    """A network task shows frames and the network; the read is its explained output, and is differentiated there."""
    seen = []

    @method("curious_map", **PIXELS)
    def curious_map(task, *, generator):
        seen.append(task)
        return torch.zeros_like(task.frames)

    map_of(curious_map, network_key)
    [task] = seen
    assert ("network", "pixel") == (task.subject, task.output)
    assert network_key.question.frames.tolist() == task.frames.tolist() == task.point.tolist()
    assert [128.0] == task.read(task.frames).tolist()
    assert [[128.0], [128.0]] == task.read(torch.stack([task.frames] * 2)).tolist()
    assert torch.equal(task.network(task.frames[None])[0], task.read(task.frames))


@method("overwrites", **PIXELS)
def overwrites(task, *, generator):
    """Changes the frames that it was given."""
    task.frames.zero_()
    return task.frames


@method("retrains", **PIXELS)
def retrains(task, *, generator):
    """Changes a weight of the network."""
    task.network.weights.data.add_(1.0)
    return torch.zeros_like(task.frames)


@method("hooks", **PIXELS)
def hooks(task, *, generator):
    """Leaves a hook on the network."""
    task.network.register_forward_hook(lambda *_: None)
    return torch.zeros_like(task.frames)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (overwrites, "task: expected its frames as they were, got changed ones; work on a copy"),
        (retrains, "network: expected its weights as they were, got others in weights; put them back"),
        (hooks, "network: expected no hooks left, got some on WeightedPixels; remove them in a finally"),
    ],
)
def test_a_changed_network_is_no_answer(network_key, asked, words):
    """A method that leaves frames, weights or hooks other than it found them has not answered."""
    with pytest.raises(BadMethod, match=words):
        map_of(asked, network_key)


def test_a_map_has_the_shape_of_the_input(network_key):
    """One number per number that the network is given: anything else is refused with both shapes."""

    @method("short_map", **PIXELS)
    def short_map(task, *, generator):
        return task.frames[1]

    with pytest.raises(BadMethod, match=r"expected shape \(2, 8, 10\), got \(8, 10\); return one number each"):
        map_of(short_map, network_key)


def test_a_method_that_measures_answers_per_cause(network_key):
    """A method with access to the world keeps its domain on a network: its rollouts say what the network would."""
    question, network = network_key.question, pixel_network()
    world = build_world(ExactRollouts(ToyMachine, question.trace), network)
    everywhere = method("measuring", **DECLARED | {"domain": "cause", "access": "world", "subjects": ("network",)})
    asked = everywhere(exhaustive.function)
    answer = ask(question, question.outputs[0], asked, world=lambda: world, run_seed=0, network=network)
    assert [abs(float(effect)) for _, effect in PAPER_NETWORK_EFFECTS] == list(answer.values)
    assert 7 == answer.n_rollouts


def test_every_kind_of_hook_is_noticed():
    """Hooks before and behind, forwards and backwards, are found with the name of their part."""
    for register in ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"):
        network = torch.nn.Sequential(torch.nn.Linear(1, 1))
        getattr(network[0], register)(lambda *_: None)
        assert {"0": 1} == hooked(network)
    assert {} == hooked(torch.nn.Linear(1, 1))


def test_a_network_may_have_hooks_of_its_own(network_key):
    """What was there before a method came is no fault of it: hooks, and weights that are NaN."""
    network = pixel_network()
    network.module.register_forward_hook(lambda *_: None)
    network.module.register_buffer("unused", torch.tensor(torch.nan))
    assert map_of(vanilla_gradient, network_key).values == map_of(vanilla_gradient, network_key, network).values
