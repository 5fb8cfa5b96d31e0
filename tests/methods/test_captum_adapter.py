"""`captum.attr:Name(...)`: the same numbers as Captum itself, what is declined, and good manners."""

import random
import warnings
from dataclasses import replace

import captum.attr as captum
import numpy as np
import pytest
import torch

from harness.claims import CountedRead, hooked
from harness.evaluate import evaluate
from methods.deep_lift import deep_lift
from methods.method import NotApplicable
from methods.reads import jacobian
from methods.registry import resolve
from tests.methods.tasks import CASES, NETWORK_CASES, draw_network_task, draw_task, generator_of
from tests.methods.test_conformance import FailingRead, ReadFailedError, global_random_states, tensors_of
from tests.methods.test_network_gradients import Chain, vector_task
from tests.toy import ToyMachine, pixel_network, toy_game, toy_protocol

MACHINE, NETWORK = CASES[:4], (NETWORK_CASES[1], NETWORK_CASES[2])
SMALL = NETWORK_CASES[1]
# What follows `captum.attr:`, and the same said to Captum, with what is left out on a network.
SAME = {
    "Saliency": lambda read, x, **m: captum.Saliency(read).attribute(x, target=0),
    "Saliency(abs=False)": lambda read, x, **m: captum.Saliency(read).attribute(x, target=0, abs=False),
    "IntegratedGradients": lambda read, x, **m: captum.IntegratedGradients(read, **m).attribute(x, target=0),
    "IntegratedGradients(method='riemann_left',n_steps=7,baselines=2.0)": lambda read, x, **m: (
        captum.IntegratedGradients(read, **m).attribute(x, 2.0, target=0, n_steps=7, method="riemann_left")
    ),
    "GuidedBackprop": lambda read, x, **m: captum.GuidedBackprop(read).attribute(x, target=0),
    "Deconvolution": lambda read, x, **m: captum.Deconvolution(read).attribute(x, target=0),
    "FeatureAblation(perturbations_per_eval=16)": lambda read, x, **m: captum.FeatureAblation(read).attribute(
        x, target=0, perturbations_per_eval=16
    ),
    "ShapleyValueSampling(n_samples=2)": lambda read, x, **m: captum.ShapleyValueSampling(read).attribute(
        x, target=0, n_samples=2
    ),
    "KernelShap(n_samples=40)": lambda read, x, **m: captum.KernelShap(read).attribute(x, target=0, n_samples=40),
    "NoiseTunnel(inner=Saliency,nt_samples=3,abs=False)": lambda read, x, **m: captum.NoiseTunnel(
        captum.Saliency(read)
    ).attribute(x, target=0, nt_samples=3, abs=False),
    "NoiseTunnel(inner=IntegratedGradients,nt_type='vargrad',stdevs=3,n_steps=4)": lambda read, x, **m: (
        captum.NoiseTunnel(captum.IntegratedGradients(read, **m)).attribute(
            x, target=0, nt_type="vargrad", stdevs=3.0, n_steps=4
        )
    ),
    "NoiseTunnel(inner=GuidedBackprop,nt_samples=4,nt_samples_batch_size=2)": lambda read, x, **m: captum.NoiseTunnel(
        captum.GuidedBackprop(read)
    ).attribute(x, target=0, nt_samples=4, nt_samples_batch_size=2),
}
# Which explain the machine or networks only.
SAME_ON_THE_MACHINE = {
    "InputXGradient": lambda read, x: captum.InputXGradient(read).attribute(x, target=0),
    "IntegratedGradients(multiply_by_inputs=False)": lambda read, x: captum.IntegratedGradients(
        read, multiply_by_inputs=False
    ).attribute(x, target=0),
    "Lime(n_samples=200)": lambda read, x: captum.Lime(read).attribute(x, target=0, n_samples=200),
    "Occlusion(sliding_window_shapes=(3,),strides=2)": lambda read, x: captum.Occlusion(read).attribute(
        x, (3,), target=0, strides=2
    ),
}
SAME_ON_NETWORKS = {
    "DeepLift": lambda read, x: captum.DeepLift(read, multiply_by_inputs=False).attribute(x, target=0),
    "NoiseTunnel(inner=DeepLift,nt_samples=3)": lambda read, x: captum.NoiseTunnel(
        captum.DeepLift(read, multiply_by_inputs=False)
    ).attribute(x, target=0, nt_samples=3),
    "Occlusion(sliding_window_shapes=(1,3,3))": lambda read, x: captum.Occlusion(read).attribute(
        x, (1, 3, 3), target=0
    ),
    "GuidedGradCam(layer='features.0',interpolate_mode='bilinear')": lambda read, x: captum.GuidedGradCam(
        read, read.network.features[0]
    ).attribute(x, target=0, interpolate_mode="bilinear"),
    "LayerGradCam(layer='features.2')": lambda read, x: torch.nn.functional.interpolate(
        captum.LayerGradCam(read, read.network.features[2]).attribute(x, target=0), x.shape[-2:], mode="bilinear"
    ).expand_as(x),
    "LayerGradCam(layer='features.2',relu_attributions=True)": lambda read, x: torch.nn.functional.interpolate(
        captum.LayerGradCam(read, read.network.features[2]).attribute(x, target=0, relu_attributions=True),
        x.shape[-2:],
        mode="bilinear",
    ).expand_as(x),
}
# One of each kind: no hooks, hooks, draws, a wrapper.
KINDS = [
    *("Saliency", "DeepLift", "GuidedBackprop", "KernelShap(n_samples=40)", "ShapleyValueSampling(n_samples=1)"),
    *("NoiseTunnel(inner=Saliency,nt_samples=3)", "NoiseTunnel(inner=GuidedBackprop,nt_samples=3)"),
]
every_kind = pytest.mark.parametrize("spec", KINDS)
both_subjects = pytest.mark.parametrize("case", [CASES[3], SMALL], ids=str)


def of_captum(spec):
    """The method that a specification without its `captum.attr:` names."""
    return resolve(f"captum.attr:{spec}")


def claim(spec, task, seed=5):
    """What it claims of the task."""
    return of_captum(spec).claim(task, generator=generator_of(seed)).numpy()


def said_by(captums, task, **options):
    """What Captum says when it is asked itself, with the global generator where the adapter would put it."""
    point = task.point.clone().unsqueeze(0).requires_grad_()
    seed = torch.randint(2**32, (), generator=generator_of(5)).item()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        return captums(task.read, point, **options).detach().squeeze(0).double().numpy()


# --- the same numbers ---


@pytest.mark.parametrize("spec", [*SAME, *SAME_ON_THE_MACHINE])
@pytest.mark.parametrize("case", MACHINE, ids=str)
def test_captum_on_the_machine(case, spec):
    """On the machine the claim is the size of what Captum says of the sampler read, bit by bit."""
    task = draw_task(case, of_captum(spec))
    expected = said_by((SAME | SAME_ON_THE_MACHINE)[spec], task)
    np.testing.assert_array_equal(np.abs(expected), claim(spec, task))


@pytest.mark.parametrize("spec", [*SAME, *SAME_ON_NETWORKS])
@pytest.mark.parametrize("case", NETWORK, ids=str)
def test_captum_on_networks(case, spec):
    """On networks the claim is what Captum says, bit by bit, without the factor of the input if it can be left out.

    What is not signed is the size of that.
    """
    task = draw_network_task(case)
    leaves_out = {"multiply_by_inputs": False} if spec in SAME else {}
    expected = said_by((SAME | SAME_ON_NETWORKS)[spec], task, **leaves_out)
    np.testing.assert_array_equal(expected if of_captum(spec).declaration.signed else abs(expected), claim(spec, task))
    # The ReLU of Grad-CAM leaves nothing of the first network.
    assert expected.any() or (case is SMALL and spec.startswith(("GuidedGradCam", "LayerGradCam")))


@pytest.mark.parametrize("case", [*MACHINE, *NETWORK], ids=str)
def test_deep_lift_is_ours(case):
    """Captum's DeepLift by its own name is `deep_lift`: with the twin of the sampler read."""
    task = draw_task(case, deep_lift)
    expected = deep_lift.claim(task, generator=generator_of(0)).numpy()
    np.testing.assert_allclose(expected, claim("DeepLift", task), rtol=1e-12)


def test_several_outputs_are_added_up():
    """Where a read has several outputs, the sizes of Captum's answers about each are added."""
    task = draw_task(CASES[0], of_captum("Saliency"))
    weight = torch.randn(3, 128, generator=generator_of(1), dtype=torch.float64)
    read = torch.nn.Linear(128, 3, bias=False, dtype=torch.float64)
    read.weight = torch.nn.Parameter(weight, requires_grad=False)
    np.testing.assert_array_equal(weight.abs().sum(0), claim("Saliency", replace(task, read=read)))


# --- what is declined ---


SHARED = torch.nn.ReLU()


@pytest.mark.parametrize(
    ("spec", "task", "words"),
    [
        ("InputXGradient", draw_network_task(SMALL), r"it is Saliency\(abs=False\)"),
        ("NoiseTunnel(inner=InputXGradient)", draw_network_task(SMALL), "it multiplies by the input"),
        ("LayerGradCam(layer='features.2')", draw_network_task(NETWORK_CASES[3]), r"\(C, H, W\), not \(3, 2, 12, 10\)"),
        (
            "LayerGradCam(layer='head')",
            draw_network_task(SMALL),
            r"expected one with maps \(1, C, H, W\), got \(1, 1\)",
        ),
        ("Occlusion(sliding_window_shapes=(3,))", draw_network_task(SMALL), "it has 1 sides, the input 3"),
        ("GuidedBackprop", vector_task(Chain(torch.relu, torch.tanh)), "the network has no torch.nn.ReLU"),
        ("Deconvolution", vector_task(Chain(SHARED, torch.relu)), "1 of the network's ReLUs are functions"),
        ("Deconvolution", vector_task(Chain(SHARED, SHARED)), "uses one ReLU module twice"),
        ("NoiseTunnel(inner=DeepLift)", vector_task(Chain(SHARED, torch.relu)), "Captum misses a nonlinearity"),
    ],
)
def test_declined(spec, task, words):
    """What would be wrong on a network, most of it in silence, is not applicable, and nothing stays hooked."""
    with pytest.raises(NotApplicable, match=words):
        claim(spec, task)
    assert {} == hooked(task.read)


def test_layers_explain_networks_only():
    """A class that needs a layer does not explain the machine."""
    method = of_captum("LayerGradCam(layer='features.2')")
    with pytest.raises(NotApplicable, match="it explains network, not machine"):
        method.claim(draw_task(CASES[0], method), generator=generator_of(0))


def test_an_unknown_layer_is_told():
    """A layer that the network does not have is an error with the nearest ones."""
    with pytest.raises(ValueError, match=r"unknown module 'features\.9'; did you mean"):
        claim("GuidedGradCam(layer='features.9')", draw_network_task(SMALL))


# --- manners ---


@both_subjects
@every_kind
def test_the_generator_decides(case, spec):
    """Equal generators give equal claims, wherever the global ones stand; another seed moves what is drawn."""
    tasks = [draw_task(case, of_captum(spec)) for _ in range(3)]
    first = claim(spec, tasks[0])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        np.testing.assert_array_equal(first, claim(spec, tasks[1]))
    # On the machine one byte has a slope, which what is drawn need not change.
    if case is SMALL:
        draws = spec.startswith(("KernelShap", "ShapleyValueSampling", "NoiseTunnel"))
        assert draws == (first != claim(spec, tasks[2], seed=6)).any()


@pytest.mark.usefixtures("no_type_checks")
@both_subjects
@every_kind
def test_nothing_is_left_behind(case, spec):
    """After a claim, and after an error in its middle, tensors, hooks and the global generators are as before."""
    task = draw_task(case, of_captum(spec))
    before, states = tensors_of(task), global_random_states()
    claim(spec, task)
    broken = replace(task, read=FailingRead(task.read, 1))
    with pytest.raises(ReadFailedError, match="the read failed"):
        claim(spec, broken)
    assert (before, states) == (tensors_of(task), global_random_states())
    assert {} == hooked(broken.read)
    assert torch.is_grad_enabled()


@pytest.fixture
def lent_generators():
    """The global generators may be moved by a test, and stand where they stood afterwards."""
    numpys, pythons = np.random.get_state(), random.getstate()  # noqa: NPY002 - they belong to nobody
    with torch.random.fork_rng(devices=[]):
        yield
    np.random.set_state(numpys)  # noqa: NPY002
    random.setstate(pythons)


def drawn_globally():
    """One number of each global generator."""
    # That they are seeded is the point.
    return torch.rand(()).item(), np.random.random(), random.random()  # noqa: NPY002, S311


@pytest.mark.usefixtures("no_type_checks", "lent_generators")
def test_global_generators_are_seeded():
    """While Captum explains, all three global generators are seeded from the given one, wherever they stood."""
    drawn = []

    class Drawing(torch.nn.Module):
        def forward(self, ram):
            drawn.append(drawn_globally())
            return ram.sum(-1, keepdim=True)

    task = replace(draw_task(CASES[0], of_captum("Saliency")), read=Drawing())
    claim("Saliency", task)
    moved = drawn_globally()
    claim("Saliency", task)
    first, second, *again = drawn
    assert [first, second] == again
    assert 9 == len({*first, *second, *moved})


@pytest.mark.parametrize(("spec", "n_gradients"), [("Saliency", 1), ("IntegratedGradients(n_steps=8)", 8)])
@both_subjects
def test_gradients_are_counted(case, spec, n_gradients):
    """The judge counts every point at which Captum asks for a gradient."""
    task = draw_task(case, of_captum(spec))
    task = replace(task, read=CountedRead(task.read))
    claim(spec, task)
    assert n_gradients == task.read.n_gradients


@pytest.mark.parametrize(
    "spec",
    [
        "Saliency(abs=False)",
        "IntegratedGradients(n_steps=4)",
        "DeepLift",
        "NoiseTunnel(inner=Saliency,nt_samples=3,abs=False)",
    ],
)
def test_the_whole_flow(spec):
    """On a linear network whose effects are known on paper, Captum's slopes claim exactly the effects."""
    flow = {"protocol": toy_protocol(), "game": toy_game(), "state": 0, "seed": 0, "fresh_machine": ToyMachine}
    [(_, found)] = evaluate(of_captum(spec), **flow, network=pixel_network())
    assert ("ok", 6, 4) == tuple(found[name] for name in ("status", "n_causes", "n_true"))
    assert (1.0, 1.0) == pytest.approx((found["F"], found["F_partial"]))


def test_the_whole_flow_on_the_machine():
    """On the machine, gradient times input names the ball's cell, as the gradient does on paper."""
    flow = {"protocol": toy_protocol(), "game": toy_game(), "state": 0, "seed": 0, "fresh_machine": ToyMachine}
    (_, content), _ = evaluate(of_captum("InputXGradient"), **flow)
    # See `test_content_on_paper`.
    assert ("ok", pytest.approx(95 / 23184**0.5)) == (content["status"], content["F"])


def test_the_sampler_is_what_is_read():
    """On position Captum sees the sampler, so its saliency is not zero where the sampler's slope is not."""
    n_alive = 0
    for case in CASES:
        task = draw_task(case, of_captum("Saliency"))
        np.testing.assert_array_equal(jacobian(task.read, task.ram).abs().sum(0), claim("Saliency", task))
        n_alive += case.output == 1 and claim("Saliency", task).any()
    assert n_alive > 0


@pytest.mark.parametrize(
    ("spec", "seeded"),
    [
        ("captum.attr:NoiseTunnel(inner=Saliency)", True),
        ("captum.attr:KernelShap", True),
        ("captum.attr:Saliency", False),
        ("captum.attr:IntegratedGradients", False),
    ],
)
def test_classes_that_draw_are_asked_with_several_seeds(spec, seeded):
    """Captum's classes that draw random numbers say so: `--seeds` asks them with each."""
    assert seeded == resolve(spec).declaration.seeded
