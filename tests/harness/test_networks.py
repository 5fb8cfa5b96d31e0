"""Networks that a user's function builds: what is accepted, and one clear line for everything else."""

import numpy as np
import pytest
import torch

from games.catalog import game
from harness.networks import network_exclusion, network_for, network_of, source_sha256
from methods.spec import BadSpec
from oracle.network import BrokenNetwork, Network
from oracle.network_effects import measure_network
from oracle.output import network_output
from tests.toy import ToyMachine, WeightedPixels, pixel_network, toy_game, toy_protocol

GOOD = """
import torch

def build():
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, 3))
    return network, lambda frames: frames[:, :1, 0], ["q", "player_x", "v"]
"""


@pytest.fixture
def written(tmp_path):
    """A file with this text; the specification of its function `build`."""

    def write(text):
        file = tmp_path / "mine.py"
        file.write_text(text, encoding="utf-8")
        return f"{file}:build"

    return write


def test_a_built_network_is_explained_output_by_output(written):
    """Every named output is explained; its name says whether it counts as position; the network is frozen."""
    spec = written(GOOD)
    network = network_of(spec, toy_game())
    assert spec == network.name
    assert [("q", "content", 0), ("player_x", "position", 1), ("v", "content", 2)] == [
        (output.name, output.regime, output.network_column) for output in network.outputs
    ]
    assert [False, False] == [parameter.requires_grad for parameter in network.module.parameters()]
    assert not network.module.training
    # Nobody can vouch that it is the same tomorrow.
    assert "" == network.identity


def test_the_function_may_ask_for_the_game(written):
    """A function that takes an argument is given the game's ROM id."""
    spec = written(GOOD.replace("build()", "build(game)").replace('"q"', "game"))
    assert "toy" == network_of(spec, toy_game()).outputs[0].name


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return torch.nn.Linear(2, 1)", r"expected \(module, preprocessing, output names\), got Linear; return these"),
        ("return torch.nn.Linear(2, 1), abs", r"expected \(module, preprocessing, output names\), got tuple; return"),
        ("return abs, abs, ['v']", "expected a torch.nn.Module, got builtin_function_or_method; return one"),
        ("return torch.nn.Linear(2, 1), None, ['v']", "preprocessing: expected a function, got NoneType; correct it"),
        ("return torch.nn.Linear(2, 1), abs, []", r"output names: expected a list of different texts, got \[\]; corr"),
        ("return torch.nn.Linear(2, 1), abs, ['v', 'v']", r"output names: expected a list of different texts, got \["),
        ("return torch.nn.Linear(2, 1), abs, 'value'", "output names: expected a list of different texts, got 'value'"),
        ("return torch.nn.Linear(2, 1, device='meta'), abs, ['v']", "expected it on the cpu, got meta; move it"),
        ("raise OSError('no such checkpoint')", "expected a network, got OSError: no such checkpoint; mend it"),
    ],
)
def test_what_is_no_network_is_told(written, body, words):
    """Whatever else a function returns or raises is one line that names it."""
    with pytest.raises(BrokenNetwork, match=f"^.*mine.py:build: {words}"):
        network_of(written(f"import torch\n\ndef build():\n    {body}\n"), toy_game())


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nothing", "nothing: expected path/to/file.py:name or package.module:name, got no colon; correct it"),
        (
            "no_such_package_here:build",
            "module no_such_package_here: expected something that imports, got ModuleNotFound",
        ),
        ("nowhere/mine.py:build", "nowhere/mine.py: expected a Python file, got none there; check the path"),
        ("tests.toy:absent", "tests.toy: expected something named 'absent', got none; it has: "),
        ("tests.toy:N_ROWS", "tests.toy:N_ROWS: expected a function, got int; name one that builds the network"),
    ],
)
def test_a_specification_that_leads_nowhere_is_told(spec, words):
    """A specification without a colon, module, file or function is one line with what to do."""
    with pytest.raises(BadSpec, match=words):
        network_of(spec, toy_game())


def test_a_game_without_a_readout_is_excluded():
    """A game without a readout is excluded with the command that trains one; a built network has no such gap."""
    advice = "no readout; train one with: veritari readouts train --games adventure"
    assert advice == network_exclusion("readout", game("adventure"))
    assert "" == network_exclusion("readout", game("pong"))
    assert "" == network_exclusion("mine.py:build", game("adventure"))


def test_the_source_of_a_network_is_known_by_its_hash(written):
    """The hash is that of the file, so an edit between two sessions of a run is noticed; readouts are our own code."""
    spec = written(GOOD)
    first = source_sha256(spec)
    assert 64 == len(first)
    assert first != source_sha256(written(GOOD + "\n"))
    assert "" == source_sha256("readout")


def test_weights_may_not_be_trained_on():
    """The modules of a readout are frozen: a method's gradient is the input's alone."""
    network = network_of("readout", game("pong"))
    assert {False} == {parameter.requires_grad for parameter in network.module.parameters()}
    assert isinstance(network.module.features[1], torch.nn.ReLU)


def question_of(spec):
    """A question about Pong's network of this specification, with the fingerprint of one that was built now."""
    network = network_of(spec, game("pong"))
    key = measure_network(toy_protocol(), toy_game(), 0, pixel_network(), fresh_machine=ToyMachine)
    seen = network.look(np.zeros((2, 8, 10), np.uint8))
    changes = {"game": "pong", "network": spec, "network_sha256": network.fingerprint(seen), "frames": seen}
    return key.question.model_copy(update=changes)


def test_drawn_weights_are_the_same_whenever_they_are_built(written):
    """A network with random weights is the same in every process, whatever was drawn there before."""
    question = question_of(written(GOOD))
    torch.rand(1)
    assert question.network_sha256 == network_for(question).fingerprint(question.frames)


def test_building_leaves_the_global_generators(written):
    """Building a network moves no global generator: what a method draws does not depend on it."""
    torch.manual_seed(5)
    before = torch.get_rng_state()
    network_of(written(GOOD), toy_game())
    assert torch.equal(before, torch.get_rng_state())


CHANGING = {
    "weights": "network[1].bias.data.fill_(time.perf_counter())",
    # Not in the state: only what the network says tells the two apart.
    "answers": "network[1].register_forward_hook(lambda *_, at=time.perf_counter(): _[2] + at)",
}


@pytest.mark.parametrize("change", CHANGING)
def test_a_network_that_changes_is_refused(written, change):
    """A network that is another one each time it is built is never explained with the effects of an older one."""
    spec = written(
        GOOD.replace("return network", f"{CHANGING[change]}\n    return network").replace(
            "import torch", "import time\nimport torch"
        )
    )
    with pytest.raises(BrokenNetwork, match="expected the same network whenever it is built, got another; load it fro"):
        network_for(question_of(spec))


def test_every_column_has_a_name(written):
    """A network with another number of outputs than names is refused."""
    network = network_of(written(GOOD.replace('"q", ', "")), toy_game())
    with pytest.raises(
        BrokenNetwork, match=r"mine.py:build: expected outputs \(1, 2\), got shape \(1, 3\); correct it"
    ):
        network.values(np.zeros((2, 1), np.float32))


def test_fingerprints_tell_values_names_and_types_apart():
    """Any other value, name or type of weights, and any other answer, is another fingerprint."""
    outputs = (network_output("v", "content", 0),)
    plain = [WeightedPixels(torch.ones(1, 1, 1, 1)) for _ in range(5)]
    plain[1].weights.data += 1
    plain[2].half()
    plain[3].register_buffer("count", torch.tensor(0))
    plain[4].register_forward_hook(lambda _module, _inputs, answer: answer + 1)
    seen = np.ones((1, 1, 1), np.float32)
    prints = [Network("any", module, abs, outputs).fingerprint(seen) for module in plain]
    assert 5 == len(set(prints))
    assert prints[0] == Network("other", WeightedPixels(torch.ones(1, 1, 1, 1)), abs, outputs).fingerprint(seen)
