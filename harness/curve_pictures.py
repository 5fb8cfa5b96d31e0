"""Curves of `harness.effect_curves` in the terminal, as a picture, and as JSON."""

import io
from typing import Any

import plotext
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from harness.as_json import to_json
from harness.drawing import literal
from harness.effect_curves import CurveView

# In characters.
WIDEST, HEIGHT = 100, 18
# Several points fit into one character.
DOT = "hd"
LONGEST_TITLE = 100
# Column along x, column along y, and what they are, per curve.
AXES = {
    "response": ("value", "y", "value that the byte is set to", "y"),
    "horizon": ("frame", "effect", "frames after the intervention", "mean |effect|"),
}
# How the points with a role are drawn: a character in the terminal; a marker and a colour of matplotlib.
MARKS = {"do-value": ("o", "o", "tab:orange"), "present": ("X", "X", "black"), "horizon": ("H", "D", "tab:orange")}


def curve_text(view: CurveView, width: int) -> str:
    """One curve in characters, at most `width` of them wide, without colours."""
    x, y, x_label, y_label = AXES[view.curve]
    figure: Any = plotext.figure
    figure.clear()
    figure.theme("colorless")
    figure.plot_size(min(width, WIDEST), HEIGHT)
    figure.label(x_label, "x")
    figure.label(y_label, "y")
    for rows, mark in [(view.points, DOT), *((_with_role(view, role), MARKS[role][0]) for role in _roles(view))]:
        figure.draw(figure.signal(rows[x].tolist(), rows[y].tolist(), marker=mark))
    text: str = plotext.uncolorize(str(figure.build()))
    # Outside of the plot, where a title of any length is shown and a legend hides no point.
    legend = [f"{MARKS[role][0]} {role}" for role in _roles(view)]
    return "\n".join(["   ".join([title_of(view), *legend]), *(line.rstrip() for line in text.splitlines())])


def curve_picture(views: list[CurveView]) -> bytes:
    """The curves as PNG, a panel per output."""
    figure = Figure(figsize=(10, 3.6 * len(views)), dpi=100, layout="constrained")
    for index, view in enumerate(views):
        x, y, x_label, y_label = AXES[view.curve]
        axes = figure.add_subplot(len(views), 1, index + 1)
        axes.set_title(literal(title_of(view), LONGEST_TITLE), loc="left")
        # Values of a byte may be anything, in any order: points. Frames follow each other: a line.
        axes.plot(view.points[x], view.points[y], "." if view.curve == "response" else ".-", color="tab:blue")
        for role in _roles(view):
            rows, (_, marker, colour) = _with_role(view, role), MARKS[role]
            axes.scatter(rows[x], rows[y], marker=marker, color=colour, s=60, zorder=3, label=role, alpha=0.8)
        axes.set(xlabel=x_label, ylabel=y_label)
        if _roles(view):
            axes.legend()
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)  # type: ignore[no-untyped-call]  # a decorator hides its types
    return buffer.getvalue()


def curves_json(views: list[CurveView]) -> str:
    """The same as JSON, with all points."""
    return to_json([vars(view) for view in views])


def title_of(view: CurveView) -> str:
    """What is drawn, in one line."""
    what = "response" if view.curve == "response" else "effect by horizon"
    return (
        f"{view.game}, state {view.state}: {what} of {view.output} to {view.cause}, "
        f"y(reference) = {view.reference_value:g} at {view.horizon_frames} frames"
    )


def _roles(view: CurveView) -> list[str]:
    return [role for role in MARKS if role in set(view.points["role"])]


def _with_role(view: CurveView, role: str) -> Any:
    return view.points[view.points["role"] == role]
