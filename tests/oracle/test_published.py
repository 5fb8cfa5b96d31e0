"""Protocol ram-v1 gives the published effects of every RAM cause, exactly.

`tests/data/published_effects.json` holds absolute effects from the published audit (arXiv 2606.22447). Cells count
from 0.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from games.catalog import game
from oracle.effects import measure
from oracle.ram_v1 import RamV1

pytestmark = pytest.mark.ale

PUBLISHED = json.loads((Path(__file__).parents[1] / "data" / "published_effects.json").read_text(encoding="utf-8"))
REGIMES = ("content", "position")
COLUMNS = [(rom_id, regime) for rom_id, row in PUBLISHED.items() for regime in REGIMES if regime in row]
DESCRIBED = [rom_id for rom_id, row in PUBLISHED.items() if "cell" in row]


@cache
def measured(rom_id):
    """The answer key of a game, measured once."""
    return measure(RamV1(), game(rom_id), 0)


@pytest.mark.parametrize(("rom_id", "regime"), COLUMNS)
def test_effects_are_the_published_ones(rom_id, regime):
    """The absolute effect of every RAM cause is the published number, in the published order."""
    answer_key = measured(rom_id)
    labels = [cause.label for cause in answer_key.question.causes if cause.ram_address is not None]
    sizes = np.abs(answer_key.effects[REGIMES.index(regime), : len(labels)])
    assert (PUBLISHED[rom_id]["causes"], PUBLISHED[rom_id][regime]) == (labels, sizes.tolist())


@pytest.mark.parametrize("rom_id", DESCRIBED)
def test_the_content_byte_is_the_published_one(rom_id):
    """The content output reads the published byte, whose reference value is the published one."""
    answer_key = measured(rom_id)
    expected = (PUBLISHED[rom_id]["content_byte"], PUBLISHED[rom_id]["content_reference"])
    assert expected == (answer_key.question.outputs[0].ram_address, answer_key.reference_value[0])


@pytest.mark.parametrize("rom_id", DESCRIBED)
def test_the_geometry_is_the_published_one(rom_id):
    """The sampler looks at the published cell and moves the sprite by the published byte."""
    geometry = measured(rom_id).question.geometry
    assert (PUBLISHED[rom_id]["position_byte"], tuple(PUBLISHED[rom_id]["cell"])) == (geometry.address, geometry.cell)


@pytest.mark.parametrize("rom_id", PUBLISHED)
def test_the_identity_action_has_no_effect(rom_id):
    """`joystick:RIGHT` sets the action that the trace has there anyway, and changes nothing."""
    answer_key = measured(rom_id)
    assert [0.0, 0.0] == answer_key.effects[:, -1].tolist()
    assert not answer_key.footprints[-1].any()


def test_the_background_colour_of_venture():
    """In `venture` the background colour changes the published number of pixels, through the exact rollouts too."""
    answer_key = measured("venture")
    labels = [cause.label for cause in answer_key.question.causes]
    assert answer_key.effects[1, labels.index("tia[COLUBK]:set")] == 23297
