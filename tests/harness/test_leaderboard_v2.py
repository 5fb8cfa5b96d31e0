"""The board of scores v2, from records written by hand: gains, own bytes, spreads, arrays of scores."""

import math

import numpy as np
import pandas as pd
import pytest

from harness.board_values import score_arrays
from harness.leaderboard import build_boards
from harness.records import RECORD_TYPES
from harness.scores_v2 import gain
from tests.harness.test_leaderboard import board_of, near, record, row_of
from tests.harness.test_manifest import control_entry, manifest_of, method_entry

METHODS = ["blur", control_entry("oracle")]


def scored(method, game, output, regime="content", **changes):
    """A record of score version 2."""
    return record(method, game, regime, output=output, score_version="v2", self_alive=False, **changes)


def board(rows, **settings):
    """The board of a method and the oracle."""
    return board_of(rows, METHODS, score_version="v2", **settings).leaderboard


def test_a_gain_is_of_sums_over_all_outputs():
    """Sum over sum per regime, then the mean over regimes; never a mean of ratios."""
    rows = [
        scored("blur", "pong", "ram[1]", deletion_diff=0.1),
        scored("blur", "pong", "ram[2]", deletion_diff=-0.2),
        scored("blur", "qbert", "ram[1]", deletion_diff=0.4),
        scored("blur", "qbert", "sprite[3]", "position", deletion_diff=0.1),
        scored("oracle", "pong", "ram[1]", deletion_diff=0.2),
        scored("oracle", "pong", "ram[2]", deletion_diff=-0.1),
        scored("oracle", "qbert", "ram[1]", deletion_diff=0.5),
        scored("oracle", "qbert", "sprite[3]", "position", deletion_diff=0.4),
    ]
    found = board(rows)
    # Content 0.3 / 0.6, position 0.1 / 0.4.
    names = ("deletion_gain", "deletion_gain_content", "deletion_gain_position")
    assert (near((0.5 + 0.25) / 2), near(0.5), near(0.25)) == tuple(row_of(found, "blur")[name] for name in names)
    assert near(1.0) == row_of(found, "oracle")["deletion_gain"]


def test_a_gain_is_undefined_where_the_oracle_gains_nothing():
    """In one regime: there the gain is undefined, and so is the mean; the other regime has its own."""
    rows = [
        scored("blur", "pong", "ram[1]", deletion_diff=0.1),
        scored("blur", "pong", "sprite[3]", "position", deletion_diff=0.1),
        scored("oracle", "pong", "ram[1]", deletion_diff=0.2),
        scored("oracle", "pong", "sprite[3]", "position", deletion_diff=-0.1),
    ]
    names = ("deletion_gain", "deletion_gain_content", "deletion_gain_position")
    assert (near(math.nan), near(0.5), near(math.nan)) == tuple(row_of(board(rows), "blur")[name] for name in names)


def test_right_is_all_three_scores():
    """The share of tasks in which F, S and M all reach one half, as a mean over games; undefined is not right."""
    rows = [
        scored("blur", "pong", "ram[1]", F=0.5, S=0.5, M=0.5),
        scored("blur", "pong", "ram[2]", F=0.9, S=0.49, M=0.9),
        scored("blur", "qbert", "ram[1]", F=0.9, S=math.nan, M=0.9),
        *(
            scored("oracle", game, output)
            for game, output in (("pong", "ram[1]"), ("pong", "ram[2]"), ("qbert", "ram[1]"))
        ),
    ]
    # Half of pong, nothing of qbert.
    assert near(0.25) == row_of(board(rows), "blur")["right"]


def test_what_a_network_says_is_no_byte_of_its_own():
    """Its board does not split content by whether the own byte lasts."""
    shown = {"subject": "network", "output": "readout[1]", "score_version": "v2", "self_alive": False}
    rows = [record(name, "pong", **shown) for name in ("blur", "oracle")]
    frame = pd.DataFrame(rows, columns=list(RECORD_TYPES)).astype(RECORD_TYPES)
    methods = [method_entry("blur"), control_entry("oracle")]
    manifest = manifest_of(methods=methods, score_version="v2", subjects=["network"])
    leaderboard = build_boards(frame, manifest)["network"].leaderboard
    assert leaderboard[["F_content_alive", "F_content_overwritten"]].isna().all(axis=None)
    assert (leaderboard["F_content"] == 0.5).all()


def test_seeds_count_once_in_a_gain():
    """An output that was asked about with two seeds weighs as one."""
    rows = [
        scored("blur", "pong", "ram[1]", seed=0, deletion_diff=0.0),
        scored("blur", "pong", "ram[1]", seed=1, deletion_diff=0.2),
        scored("blur", "pong", "ram[2]", deletion_diff=0.3),
        scored("oracle", "pong", "ram[1]", deletion_diff=0.4),
        scored("oracle", "pong", "ram[2]", deletion_diff=0.4),
    ]
    expected = gain(np.array([0.1, 0.3]), np.array([0.4, 0.4]))
    assert near(expected) == row_of(board(rows), "blur")["deletion_gain"]


def test_content_is_split_by_whether_the_own_byte_lasts():
    """F where the byte's own value lasts, and where it is overwritten; positions count in neither."""
    rows = [
        scored("blur", "pong", "ram[1]", F=0.8) | {"self_alive": True},
        scored("blur", "qbert", "ram[1]", F=0.4) | {"self_alive": True},
        scored("blur", "qbert", "ram[2]", F=0.1),
        scored("blur", "qbert", "sprite[3]", "position", F=0.9),
        scored("oracle", "qbert", "ram[1]"),
    ]
    found = row_of(board(rows), "blur")
    assert (near(0.6), near(0.1)) == (found["F_content_alive"], found["F_content_overwritten"])


def test_negative_f_is_counted_as_it_is():
    """Only v1 counts it as 0."""
    rows = [scored("blur", "pong", "ram[1]", F=-0.5), scored("oracle", "pong", "ram[1]", F=1.0)]
    assert near(-0.5) == row_of(board(rows), "blur")["F"]


def test_spreads_of_states_and_seeds_are_apart():
    """The standard deviation of the board between states, and between seeds, over n - 1; NaN of a single one."""
    rows = [
        scored("blur", "pong", "ram[1]", state=0, seed=0, F=0.2),
        scored("blur", "pong", "ram[1]", state=0, seed=1, F=0.4),
        scored("blur", "pong", "ram[9]", state=1, seed=0, F=0.6),
        scored("blur", "pong", "ram[9]", state=1, seed=1, F=0.8),
        *(scored("oracle", "pong", output, state=state) for state, output in enumerate(["ram[1]", "ram[9]"])),
    ]
    found = board(rows, n_states=2)
    # Between states 0.3 and 0.7, between seeds 0.4 and 0.6.
    assert near((0.4 / math.sqrt(2), 0.2 / math.sqrt(2))) == (
        row_of(found, "blur")["F_state_sd"],
        row_of(found, "blur")["F_seed_sd"],
    )
    assert (near(0.0), near(math.nan)) == (row_of(found, "oracle")["F_state_sd"], row_of(found, "oracle")["F_seed_sd"])


def test_arrays_hold_every_record_once():
    """Each score stands at its method, game, state, output and seed; the k-th output of a state is place k."""
    generator = np.random.default_rng(0)
    rows = [
        scored(method, game, f"ram[{5 * state + output}]", state=state, seed=seed, F=generator.random())
        for method in ("blur", "oracle")
        for game, n_outputs in (("pong", 3), ("qbert", 1))
        for state in (0, 2)
        for output in range(n_outputs)
        for seed in (7, 8)
    ]
    frame = pd.DataFrame(rows).sample(frac=1.0, random_state=1)
    content, position = score_arrays(frame, ["oracle", "blur"], ["qbert", "pong"], "F")
    assert (2, 2, 2, 3, 2) == content.shape
    assert np.isnan(position).all()
    for _, row in frame.iterrows():
        place = (["oracle", "blur"].index(row["method"]), ["qbert", "pong"].index(row["game"]), row["state"] // 2)
        # Outputs count from the state's first in the table, whatever they are called.
        rows_of_state = frame[(frame["game"] == row["game"]) & (frame["state"] == row["state"])]
        output = list(dict.fromkeys(rows_of_state["output"])).index(row["output"])
        assert row["F"] == content[(*place, output, row["seed"] - 7)]
    assert len(frame) == (~np.isnan(content)).sum()


@pytest.mark.parametrize("column", ["deletion_auc", "insertion_auc"])
def test_v1_columns_are_not_on_the_board(column):
    """What a version does not compute has no column."""
    rows = [scored("blur", "pong", "ram[1]"), scored("oracle", "pong", "ram[1]")]
    assert column not in board(rows)
