"""What quality costs: every column of the table, and where each method stands in the picture."""

from types import SimpleNamespace

import jaxtyping
import numpy as np
import pandas as pd
import pytest

from harness.costs import cost_figure, cost_picture, cost_table

LEADERBOARD = pd.DataFrame(
    {
        "method": ["measures", "reads", "draws", "never", "oracle"],
        "access": ["world", "read", "read", "read", "control"],
        "F": [0.9, 0.3, 0.4, np.nan, 1.0],
        "n_tasks": [4, 4, 4, 0, 4],
        "n_seeds": [1, 1, 3, 1, 1],
        "n_rollouts": [400, 0, 0, 0, 0],
        "n_gradients": [0, 8, 600, 0, 0],
    }
)
SECONDS = {"measures": 0.5, "reads": 0.01, "draws": 0.2, "never": np.nan, "oracle": 0.0}


@pytest.fixture
def table(monkeypatch):
    """The costs of a board written by hand."""
    # Stand-ins of run and board, which have what the table reads and no more.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    run = SimpleNamespace(seconds_per_task=lambda subject, methods: [SECONDS[method] for method in methods])
    board = SimpleNamespace(subject="machine", leaderboard=LEADERBOARD)
    return cost_table(run, board)


def test_every_column_is_per_task_and_seed(table):
    """Totals over tasks times seeds; cheapest in rollouts first, then in gradients; controls are left out."""
    assert ["reads", "draws", "measures", "never"] == table["method"].tolist()
    expected = {
        "rollouts_per_task": [0.0, 0.0, 100.0, np.nan],
        "gradients_per_task": [2.0, 50.0, 0.0, np.nan],
        "seconds_per_task": [0.01, 0.2, 0.5, np.nan],
        "F": [0.3, 0.4, 0.9, np.nan],
    }
    for column, values in expected.items():
        np.testing.assert_array_equal(values, table[column])
    assert (["machine"] * 4, ["read", "read", "world", "read"]) == (table["subject"].tolist(), table["access"].tolist())


def points(figure):
    """Where the points of each panel stand."""
    return [np.asarray(axes.collections[0].get_offsets()).tolist() for axes in figure.axes]


def costs(subject, rollouts, f):
    """A table of costs as far as the picture looks at it."""
    names = [f"method_{index}" for index in range(len(f))]
    return pd.DataFrame({"subject": subject, "method": names, "rollouts_per_task": rollouts, "F": f})


def test_methods_stand_at_their_rollouts_and_their_f():
    """A panel per subject, a point per method with its name; one without F has no name."""
    figure = cost_figure([costs("machine", [0.0, 100.0], [0.3, 0.9]), costs("network", [0.0], [0.5])])
    assert [[[0.0, 0.3], [100.0, 0.9]], [[0.0, 0.5]]] == points(figure)
    assert [["method_0", "method_1"], ["method_0"]] == [
        [text.get_text() for text in axes.texts] for axes in figure.axes
    ]
    assert ["subject machine", "subject network"] == [axes.get_title(loc="left") for axes in figure.axes]


def test_the_picture_is_a_png():
    """Also of a board without methods."""
    empty = costs("machine", [], []).astype({"F": float, "rollouts_per_task": float})
    for tables in ([costs("machine", [1.0], [0.3])], [empty]):
        assert cost_picture(tables).startswith(b"\x89PNG")
