"""Rows of screens in one PNG file, drawn by matplotlib through its objects: nothing global is set."""

import io
import textwrap
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from harness.regions import Intensity

Colours = UInt8[np.ndarray, "row column 3"]
Box = tuple[int, int, int, int]

# Without its black end, which on a dark frame would look like no overlay.
COLOUR_MAP = ListedColormap(mpl.colormaps["inferno"](np.linspace(0.2, 1.0, 256)))
LUMINANCE = (0.299, 0.587, 0.114)
# The frame beneath is dark grey, so that the overlay is brighter than any sprite.
DIMMED = 0.45
# In pixels. Each row of the screen is two high, so that all its rows look alike.
ROW_HEIGHT, GAP, ABOVE, BELOW, BAR, BAR_TEXT = 2, 20, 92, 40, 18, 110
# Points at this resolution, characters.
DPI, HEADING_SIZE, TITLE_SIZE, NOTE_SIZE = 100, 18, 15, 11.5
LONGEST_HEADING, LONGEST_TITLE, LONGEST_NOTE, LONGEST_REASON, REASON_WIDTH = 90, 60, 64, 160, 40
# Agg draws no larger picture; one with more columns gets a lower resolution.
LARGEST_SIDE = 60_000


@dataclass(frozen=True)
class Panel:
    """One screen: `region` painted on the frame, or what is said `instead`; `note` stands below."""

    title: str
    region: Intensity | None = None
    instead: str = ""
    note: str = ""


@dataclass(frozen=True)
class Row:
    """What is drawn beside the frame."""

    heading: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Layout:
    """Where everything stands, in pixels from the lower left corner. A screen of any height is shown as 4:3."""

    screen_rows: int
    n_rows: int
    n_columns: int

    @property
    def panel(self) -> tuple[int, int]:
        """Width and height of a screen."""
        height = ROW_HEIGHT * self.screen_rows
        return round(height * 4 / 3), height

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        width, height = self.panel
        return self.n_columns * (width + GAP) + 2 * GAP + BAR + BAR_TEXT, self.n_rows * (ABOVE + height + BELOW)

    def box(self, row: int, column: int) -> Box:
        """Left, bottom, width and height of a screen."""
        width, height = self.panel
        bottom = self.size[1] - (row + 1) * (ABOVE + height + BELOW) + BELOW
        return GAP + column * (width + GAP), bottom, width, height

    def bar(self, row: int, column: int) -> Box:
        """The same of a colour bar that stands where this screen would."""
        left, bottom, _, height = self.box(row, column)
        return left, bottom, BAR, height


def png(frame: Colours, rows: list[Row]) -> bytes:
    """The rows below each other; each begins with the frame in its colours and ends with a colour bar."""
    layout = Layout(len(frame), len(rows), 1 + max(len(row.panels) for row in rows))
    width, height = layout.size
    dpi = min(DPI, DPI * LARGEST_SIDE / max(width, height))
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=dpi, facecolor="white")
    for index, row in enumerate(rows):
        _draw_row(figure, layout, index, row, frame)
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)  # type: ignore[no-untyped-call]  # a decorator hides its types
    return buffer.getvalue()


def _draw_row(figure: Figure, layout: Layout, index: int, row: Row, frame: Colours) -> None:
    left, bottom, _, height = layout.box(index, 0)
    above = (bottom + height + ABOVE - GAP) / layout.size[1]
    heading = literal(row.heading, LONGEST_HEADING)
    figure.text(left / layout.size[0], above, heading, size=HEADING_SIZE, va="top")
    _show(_axes(figure, layout, layout.box(index, 0)), frame, Panel("frame"))
    for column, panel in enumerate(row.panels, start=1):
        region = np.zeros(frame.shape[:2]) if panel.region is None else panel.region
        _show(_axes(figure, layout, layout.box(index, column)), overlaid(frame, region), panel)
    axes = _axes(figure, layout, layout.bar(index, len(row.panels) + 1))
    bar = figure.colorbar(ScalarMappable(cmap=COLOUR_MAP), cax=axes)
    bar.set_label("share of the largest, per panel", size=NOTE_SIZE)


def _axes(figure: Figure, layout: Layout, box: Box) -> Axes:
    width, height = layout.size
    return figure.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))


def _show(axes: Axes, colours: np.ndarray, panel: Panel) -> None:
    # The axes are 4:3; each pixel of the screen fills its share of them.
    axes.imshow(colours, interpolation="nearest", aspect="auto")
    axes.set(xticks=[], yticks=[])
    # A frame line would hide the outermost pixels.
    axes.set_frame_on(False)
    axes.set_title(literal(panel.title, LONGEST_TITLE), size=TITLE_SIZE, loc="left", pad=5)
    axes.set_xlabel(literal(panel.note, LONGEST_NOTE), size=NOTE_SIZE, loc="left", labelpad=5)
    if panel.instead:
        text = axes.text(0.5, 0.5, literal(panel.instead, LONGEST_REASON, REASON_WIDTH), transform=axes.transAxes)
        text.set(size=TITLE_SIZE, color="white", ha="center", va="center")
        text.set_bbox({"facecolor": "black", "edgecolor": "white", "boxstyle": "round"})


def overlaid(frame: Colours, region: Intensity) -> Float[np.ndarray, "row column 3"]:
    """A region over the frame in dark grey, as colours 0..1: the stronger, the brighter and the less transparent."""
    grey = (frame @ np.array(LUMINANCE) / 255 * DIMMED)[..., np.newaxis]
    # By the root, so that a tenth of the largest is still seen.
    opacity = np.sqrt(region)[..., np.newaxis]
    return np.asarray(grey * (1 - opacity) + COLOUR_MAP(region)[..., :3] * opacity)


def literal(text: str, longest: int, width: int = 0) -> str:
    r"""Text from anywhere, to be drawn as it is: no mathematics, no control characters, nothing the font lacks.

    One line, or lines of `width` characters.

    >>> literal("$x$\n is\tlong", 7), literal("\x1b[1m\N{BRAIN}", 7)
    ('\\$x\\$ is…', '[1m?')
    """
    glyphs = get_font(findfont(FontProperties())).get_charmap()
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    known = shortened("".join(each if ord(each) in glyphs else "?" for each in line), longest)
    # Escaped last: an escape must not be cut in two.
    return "\n".join(textwrap.wrap(known, width) if width else [known]).replace("$", r"\$")


def shortened(text: str, longest: int) -> str:
    """Text of at most `longest` characters.

    >>> shortened("gradient", 8), shortened("gradients", 8)
    ('gradient', 'gradien…')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
