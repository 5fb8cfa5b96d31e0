"""`veritari show --curve`: curves against the answer key of a run, and what is said where there is none."""

import json
import re

import numpy as np
import pytest

from games.errors import UnknownName
from harness.api import load_run
from harness.api import run as run_on
from harness.cli_curves import require_curve_fits
from harness.curve_pictures import curve_picture, curve_text, curves_json
from harness.effect_curves import Wanted, horizon_curves, response_curves
from harness.errors import WrongUsage
from tests.harness.commands import in_this_process

pytestmark = pytest.mark.ale


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Pong under ram-v1, its machine only."""
    folder = tmp_path_factory.mktemp("curves")
    settings = {"protocol": "ram-v1", "games": "pong", "methods": "vanilla_gradient", "subject": "machine"}
    return run_on(**settings, out=folder / "run", store=folder / "store")


@pytest.fixture(scope="module")
def responses(run):
    """Of both outputs to byte 49."""
    return response_curves(run, Wanted("pong", 0, "ram[49]"))


@pytest.fixture(scope="module")
def horizons(run):
    """Of both outputs after `ram[49]:set`."""
    return horizon_curves(run, Wanted("pong", 0, "ram[49]:set"))


def effects_of(run, label):
    """The answer key's effects of a cause, per output."""
    answer_key = run.directory.answer_key("machine", "pong", 0)
    labels = [cause.label for cause in answer_key.question.causes]
    return answer_key.effects[:, labels.index(label)]


def test_response_at_do_values_is_the_answer_key(run, responses):
    """The curve has 256 values; at those of `set` and `occlude` it has their effects, at the present one 0."""
    present = int(run.directory.answer_key("machine", "pong", 0).question.ram[49])
    for index, view in enumerate(responses):
        points = view.points
        assert list(range(256)) == points["value"].tolist()
        roles = {value: role for value, role in zip(points["value"], points["role"], strict=True) if role}
        assert {present: "present", (present + 17) % 256: "do-value", 0: "do-value"} == roles
        expected = [0.0, effects_of(run, "ram[49]:set")[index], effects_of(run, "ram[49]:occlude")[index]]
        assert expected == points["effect"][[present, (present + 17) % 256, 0]].tolist()
        assert (points["y"] - points["effect"] == view.reference_value).all()


def test_effect_at_the_horizon_is_the_answer_key(run, horizons):
    """The curve has 60 frames; at the protocol's horizon it has the size of the effect, and says so."""
    for index, view in enumerate(horizons):
        marked = view.points[view.points["role"] == "horizon"]
        expected = abs(effects_of(run, "ram[49]:set")[index])
        assert ([15], [expected]) == (marked["frame"].tolist(), marked["effect"].tolist())
        assert list(range(1, 61)) == view.points["frame"].tolist()


def test_a_byte_stands_for_all_its_causes(run):
    """Of a byte without more, the curve is the mean over the do-values of all its causes."""
    [view] = horizon_curves(run, Wanted("pong", 0, "ram[49]", "ram[54]"))
    both = [abs(effects_of(run, f"ram[49]:{kind}")[0]) for kind in ("set", "occlude")]
    np.testing.assert_allclose(np.mean(both), view.points["effect"][14])


def test_curves_in_characters(responses, horizons):
    """Title, legend and points are there, no line is too wide, and no colour code is left."""
    text = curve_text(responses[0], 80)
    heading, *plot = text.splitlines()
    assert "pong, state 0: response of ram[54] to ram[49], y(reference) = 175 at 15 frames" in heading
    assert "o do-value   X present" in heading
    assert [True, True] == [any(mark in line for line in plot) for mark in "oX"]
    assert 80 >= max(len(line) for line in plot)
    assert "\x1b" not in text
    assert "H horizon" in curve_text(horizons[1], 80)


def test_curves_as_picture_and_json(responses, horizons):
    """A PNG, and JSON with every point of every output."""
    assert b"\x89PNG" == curve_picture(responses)[:4]
    assert b"\x89PNG" == curve_picture(horizons)[:4]
    told = json.loads(curves_json(horizons))
    assert [("ram[54]", 60), ("changed_pixels", 60)] == [(each["output"], len(each["points"])) for each in told]
    assert {"frame": 15, "effect": horizons[0].points["effect"][14], "role": "horizon"} == told[0]["points"][14]


def test_the_command_shows_a_curve(monkeypatch, capfd, run, tmp_path):
    """`veritari show --curve` prints JSON of the one output that was asked for, and writes the picture."""
    image = tmp_path / "curve.png"
    arguments = ("--game", "pong", "--cause", "ram[49]", "--curve", "response", "--output", "ram[54]")
    finished = in_this_process(monkeypatch, capfd, "show", run.path, *arguments, "--image", image, "--json")
    [told] = json.loads(finished.out)
    assert (0, "ram[54]", 256) == (finished.code, told["output"], len(told["points"]))
    assert [f"picture: {image}"] == finished.complaints
    assert b"\x89PNG" == image.read_bytes()[:4]


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        (Wanted("pong", 0, "joystick:RIGHT"), WrongUsage, "expected a RAM byte from 'ram[0]' to 'ram[127]', got joyst"),
        (Wanted("pong", 0, "ram[128]"), WrongUsage, "expected a RAM byte from 'ram[0]' to 'ram[127]', got ram[128]"),
        (Wanted("pong", 0, "ram[49]", "ram[1]"), UnknownName, "unknown output of pong at this state 'ram[1]'"),
        (Wanted("qbert", 0, "ram[49]"), UnknownName, "unknown game of this run 'qbert'"),
        (Wanted("pong", 1, "ram[49]"), WrongUsage, "--state: expected 0..0, got 1"),
        (Wanted("pong", 0, "ram[5]"), UnknownName, "unknown cause of pong with do-values 'ram[5]'"),
    ],
)
def test_what_has_no_curve_is_told(run, wanted, error, words):
    """Whatever is wanted and is not there is named."""
    with pytest.raises(error, match=re.escape(words)):
        horizon_curves(run, wanted)


def test_states_without_effects_are_told(run):
    """A game-state whose effects are gone has no curve, and neither has a run about networks only."""
    unmeasured = load_run(run.path)
    unmeasured.manifest.n_states = 2
    with pytest.raises(WrongUsage, match=r"pong: expected a state with effects, got none \(it is not measured yet\)"):
        response_curves(unmeasured, Wanted("pong", 1, "ram[49]"))
    settings = unmeasured.manifest.settings.model_copy(update={"subjects": ("network",)})
    unmeasured.manifest.settings = settings
    with pytest.raises(WrongUsage, match="expected a run about the machine, got network only"):
        response_curves(unmeasured, Wanted("pong", 0, "ram[49]"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"curve": "", "output": "ram[54]"}, "--output: expected with --curve"),
        ({"curve": "round"}, "--curve: expected response or horizon, got round"),
        ({"cause": ""}, "--curve: expected with --game GAME and --cause"),
        ({"subject": "network"}, "--curve: expected subject machine, got network"),
        ({"method": "vanilla_gradient"}, "--curve: expected without --method"),
    ],
)
def test_options_that_do_not_fit_are_told(options, words):
    """Options that say nothing about a curve, or leave open of what it is, are refused."""
    fitting = {"curve": "response", "output": "", "game": "pong", "cause": "ram[49]", "method": "", "subject": ""}
    require_curve_fits(**fitting)
    with pytest.raises(WrongUsage, match=words):
        require_curve_fits(**(fitting | options))
