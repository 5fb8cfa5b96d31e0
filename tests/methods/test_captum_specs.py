"""`captum.attr:Name(...)` as text: what is declared, labels that read back, and what is refused."""

import pytest

from games.errors import UnknownName
from methods.captum_classes import fitting_class, snake_case
from methods.method import BadMethod
from methods.registry import resolve
from methods.spec import BadSpec
from tests.methods.test_captum_adapter import SAME, SAME_ON_NETWORKS, SAME_ON_THE_MACHINE, of_captum


@pytest.mark.parametrize(
    ("spec", "signed"),
    [
        ("Saliency", False),
        ("Saliency(abs=False)", True),
        ("NoiseTunnel(inner=Saliency)", False),
        ("NoiseTunnel(inner=Saliency,abs=False)", True),
        ("NoiseTunnel(inner=IntegratedGradients)", True),
        ("NoiseTunnel(inner=IntegratedGradients,nt_type='smoothgrad_sq')", False),
        ("DeepLift", True),
        ("GuidedGradCam(layer='features.2')", True),
        ("LayerGradCam(layer='features.2')", False),
        ("FeatureAblation", False),
        ("KernelShap", False),
    ],
)
def test_signs_count_where_they_are_slopes(spec, signed):
    """Slopes are signed; sizes, squares, class activation maps and effects of taking pixels away are not."""
    assert signed == of_captum(spec).declaration.signed


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("Saliency", ("captum_saliency", "ram", "gradient", ("machine", "network"))),
        ("NoiseTunnel(inner=Lime)", ("captum_noise_tunnel", "ram", "surrogate", ("machine", "network"))),
        ("Occlusion(sliding_window_shapes=(3,))", ("captum_occlusion", "ram", "perturbation", ("machine", "network"))),
        ("LayerGradCam(layer='features.2')", ("captum_layer_grad_cam", "pixels", "cam", ("network",))),
    ],
)
def test_declaration(spec, expected):
    """A class is declared under its name in snake case, with its family and what it can explain."""
    declared = of_captum(spec).declaration
    assert expected == (declared.name, declared.domain, declared.family, declared.subjects)
    assert f"captum.attr.{spec.partition('(')[0]}, Captum" in declared.source
    assert "read" == declared.access


@pytest.mark.parametrize("spec", [*SAME, *SAME_ON_THE_MACHINE, *SAME_ON_NETWORKS])
def test_labels_read_back(spec):
    """The label of a class is a specification of the same method."""
    method = of_captum(spec)
    assert method == resolve(method.label)
    assert method.label == resolve(method.label).label


def test_labels_are_canonical():
    """Labels have the parameters that differ from Captum's defaults, in one order, and a class without quotes."""
    expected = "captum.attr:NoiseTunnel(inner=IntegratedGradients,nt_samples=9,stdevs=2.0,n_steps=8)"
    given = "NoiseTunnel( n_steps=8, stdevs=2, nt_samples=9, nt_type='smoothgrad', inner='IntegratedGradients' )"
    assert expected == of_captum(given).label
    assert "captum.attr:Saliency" == of_captum("Saliency(abs=True)").label


def test_parameters_add_up():
    """A second change of parameters keeps the first, and may name another class inside."""
    method = of_captum("NoiseTunnel(inner=Saliency)").with_parameters(nt_samples=3).with_parameters(abs=False)
    assert of_captum("NoiseTunnel(inner=Saliency,nt_samples=3,abs=False)") == method
    assert {"inner": "Saliency", "nt_samples": 3, "abs": False} == {
        name: method.parameters()[name] for name in ("inner", "nt_samples", "abs")
    }
    with pytest.raises(BadMethod, match=r"expected a parameter of \(inner, .*n_steps, .*\), got 'abs'"):
        method.with_parameters(inner="IntegratedGradients")


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("Salience", UnknownName, r"unknown class of captum\.attr 'Salience'; did you mean Saliency"),
        ("Attribution", UnknownName, r"unknown class of captum\.attr 'Attribution'"),
        ("visualization", UnknownName, r"unknown class of captum\.attr 'visualization'"),
        ("NoiseTunnel(inner=Salience)", UnknownName, r"'Salience'; did you mean Saliency"),
        (
            "GradientShap",
            BadSpec,
            "expected a class that explains one input, got one that needs a sample of baselines$",
        ),
        ("DeepLiftShap", BadSpec, "captum.attr:DeepLiftShap: .*needs a sample of baselines$"),
        ("NeuronGradient", BadSpec, "needs neuron_selector$"),
        ("DataLoaderAttribution", BadSpec, "needs attr_method, dataloader$"),
        ("LLMAttribution", BadSpec, "needs attr_method, tokenizer, inp$"),
        ("LimeBase", BadSpec, "needs .*from_interp_rep_transform"),
        ("LayerActivation", BadSpec, "answers with numbers of a layer"),
        ("InternalInfluence", BadSpec, "answers with numbers of a layer"),
        ("FeaturePermutation", BadSpec, "permutes a batch, and a task is one input"),
        ("LRP", BadSpec, "has no rules for the reads of the machine"),
        ("ShapleyValues", BadSpec, "asks 2 .. n times about n numbers; take ShapleyValueSampling"),
        ("NoiseTunnel", BadMethod, "expected a parameter inner that names a class; add one, as inner=Saliency"),
        ("NoiseTunnel(inner=3)", BadMethod, "expected a parameter inner that names a class"),
        ("NoiseTunnel(inner=NoiseTunnel)", BadMethod, "expected a class that answers per input, got NoiseTunnel"),
        ("NoiseTunnel(inner=LayerGradCam,layer='a')", BadMethod, "that answers per input, got LayerGradCam"),
        (
            "LayerGradCam",
            BadMethod,
            "Cam: expected a parameter layer, got none; add it, as layer='features.4'$",
        ),
        ("Occlusion", BadMethod, r"sliding_window_shapes, got none; add it, as sliding_window_shapes=\(4,\) on"),
        ("Occlusion(sliding_window_shapes=3)", BadMethod, "parameter sliding_window_shapes: .* tuple, got 3"),
        ("Saliency(signed=True)", BadMethod, r"expected a parameter of \(abs\), got 'signed'"),
        ("Saliency(target=1)", BadMethod, r"expected a parameter of \(abs\), got 'target'"),
        ("GuidedBackprop(abs=True)", BadMethod, r"expected a parameter of \(none\), got 'abs'"),
        ("IntegratedGradients(return_convergence_delta=True)", BadMethod, "got 'return_convergence_delta'"),
        ("IntegratedGradients(n_steps=8.5)", BadMethod, r"n_steps: Input should be a valid integer, got 8\.5"),
        ("IntegratedGradients(baselines='black')", BadMethod, "baselines: .* got 'black'"),
        ("Saliency(abs=Yes)", BadMethod, "parameter abs: Input should be a valid boolean, got 'Yes'"),
    ],
)
def test_refused(spec, error, message):
    """What is no class, does not fit, or has other parameters is refused when it is named, in one line."""
    with pytest.raises(error, match=message) as caught:
        of_captum(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("InputXGradient", "input_x_gradient"), ("LRP", "lrp"), ("NoiseTunnel", "noise_tunnel"), ("LLMX", "llmx")],
)
def test_snake_case(name, expected):
    """Capital letters begin words, and several together are one."""
    assert expected == snake_case(name)


def test_only_classes_that_fit_are_suggested():
    """Who has mistyped a name is not told of one that would be refused next."""
    with pytest.raises(UnknownName, match=r"class of captum\.attr 'LPR'") as refused:
        resolve("captum.attr:LPR")
    known = str(refused.value).partition("Known: ")[2].split(", ")
    assert {"Saliency", "IntegratedGradients"} < set(known)
    assert {"LRP", "FeaturePermutation", "DeepLiftShap", "LayerActivation"}.isdisjoint(known)
    for name in known:
        assert isinstance(fitting_class(name), type)
