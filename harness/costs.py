"""What quality costs: F beside rollouts, gradients and seconds per task, as a table and as a picture."""

import io

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from harness.api import Run
from harness.controls import CONTROLS
from harness.drawing import literal
from harness.leaderboard import Board

LONGEST_LABEL = 40


def cost_table(run: Run, board: Board) -> pd.DataFrame:
    """One row per method, cheapest first: F, and what it used per task that it was asked about."""
    rows = board.leaderboard
    n_asked = (rows["n_tasks"] * rows["n_seeds"]).where(rows["n_tasks"] > 0)
    table = pd.DataFrame(
        {
            "subject": board.subject,
            "method": rows["method"],
            "access": rows["access"],
            "F": rows["F"],
            "rollouts_per_task": rows["n_rollouts"] / n_asked,
            "gradients_per_task": rows["n_gradients"] / n_asked,
            "seconds_per_task": run.seconds_per_task(board.subject, rows["method"]),
        }
    )
    order = ["rollouts_per_task", "gradients_per_task", "method"]
    return table[~table["method"].isin(CONTROLS)].sort_values(order, ignore_index=True)


def cost_picture(tables: list[pd.DataFrame]) -> bytes:
    """F against rollouts per task as PNG, one panel per subject; methods that need none stand at 0."""
    buffer = io.BytesIO()
    FigureCanvasAgg(cost_figure(tables)).print_png(buffer)  # type: ignore[no-untyped-call]  # a decorator hides its types
    return buffer.getvalue()


def cost_figure(tables: list[pd.DataFrame]) -> Figure:
    """The figure behind `cost_picture`."""
    figure = Figure(figsize=(8 * len(tables), 6), dpi=100, layout="constrained")
    for index, table in enumerate(tables):
        axes = figure.add_subplot(1, len(tables), index + 1)
        axes.set_title(f"subject {table['subject'].iloc[0]}" if len(table) else "no method", loc="left")
        axes.scatter(table["rollouts_per_task"], table["F"])
        for _, row in table[np.isfinite(table["F"])].iterrows():
            place = (float(row["rollouts_per_task"]), float(row["F"]))
            label = literal(str(row["method"]), LONGEST_LABEL)
            axes.annotate(label, place, xytext=(6, 4), textcoords="offset points", fontsize=9)
        # Zero has no logarithm: below one rollout the axis is linear.
        axes.set_xscale("symlog", linthresh=1)
        axes.set(xlabel="rollouts per task", ylabel="F")
        axes.margins(x=0.25, y=0.1)
    return figure
