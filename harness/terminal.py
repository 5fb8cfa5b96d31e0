"""What the command line prints: tables, drill-downs and progress."""

import math
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table

SECONDS_BETWEEN_LINES = 10.0
# Rich pads every cell by one on both sides and separates columns by one.
GAP = 3
# Where nobody watches, a table is as wide as it is.
WIDEST = 1000
# Of a column whose cells may have several lines.
NARROWEST = 30

output = Console(emoji=False, width=None if sys.stdout.isatty() else WIDEST)
messages = Console(emoji=False, stderr=True)


class Bar:
    """Progress for people: a bar with the remaining time, or a line now and then where nobody watches."""

    def __init__(self) -> None:
        self._rich = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=messages,
        )
        self._task: Any = None
        self._what = ""
        self._n_units = self._n_done = 0
        self._last_line = 0.0

    def __enter__(self) -> "Bar":  # noqa: PYI034  # beartype can't check Self on a method
        if messages.is_terminal:
            self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        if messages.is_terminal:
            self._rich.stop()

    def wait(self, what: str) -> None:
        """Something begins whose length nobody knows; shown where somebody watches."""
        if messages.is_terminal:
            self._show(what, None)

    def start(self, what: str, n_units: int) -> None:
        """A pass of `n_units` begins; one that has nothing to do is not shown."""
        self._what, self._n_units, self._n_done = what, n_units, 0
        if messages.is_terminal and n_units:
            self._show(what, n_units)
        elif n_units:
            self._line()

    def _show(self, what: str, n_units: int | None) -> None:
        if self._task is not None and not self._rich.tasks[-1].completed:
            self._rich.remove_task(self._task)
        self._task = self._rich.add_task(escape(what), total=n_units)

    def advance(self) -> None:
        """One unit is done."""
        self._n_done += 1
        if messages.is_terminal:
            self._rich.advance(self._task)
        elif time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES:
            self._line()

    def warn(self, text: str) -> None:
        """Something the user should know; the run goes on."""
        messages.print(f"warning: {text}", markup=False, highlight=False, soft_wrap=True)

    def _line(self) -> None:
        self._last_line = time.monotonic()
        sys.stderr.write(f"{self._what}: {self._n_done}/{self._n_units}\n")
        sys.stderr.flush()


def print_table(
    frame: pd.DataFrame,
    *,
    title: str,
    headings: dict[str, str] | None = None,
    n_key_columns: int = 1,
    folded: str = "",
) -> None:
    """A table of everything in `frame`, or of the columns in `headings` under their headings.

    Cells are never broken up, but for sentences in the column `folded`: what does not fit beside each other follows
    below, with the key columns repeated. Where nobody watches, everything is on one line.
    """
    shown = headings or {name: name.replace("_", " ") for name in frame.columns}
    texts = {name: [cell(value) for value in frame[name]] for name in shown}
    widths = {name: max(len(line) for line in (shown[name], *texts[name])) + GAP for name in shown}
    if folded:
        widths[folded] = min(widths[folded], NARROWEST)
    for part, names in enumerate(_groups(list(shown), widths, n_key_columns, output.width - GAP)):
        table = Table(
            title=escape(title) if part == 0 else None, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1)
        )
        for name in names:
            justify: JustifyMethod = "right" if _is_number(frame[name]) else "left"
            table.add_column(escape(shown[name]), justify=justify, no_wrap=name != folded, overflow="fold")
        for index in range(len(frame)):
            table.add_row(*(escape(texts[name][index]) for name in names))
        output.print(table)


def _groups(names: list[str], widths: dict[str, int], n_keys: int, limit: int) -> list[list[str]]:
    keys, groups = names[:n_keys], [names[:n_keys]]
    for name in names[n_keys:]:
        if len(groups[-1]) > n_keys and sum(widths[each] for each in (*groups[-1], name)) > limit:
            groups.append(list(keys))
        groups[-1].append(name)
    return groups


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def cell(value: Any) -> str:
    """One value as people read it: three decimals, a dash for undefined."""
    if value is pd.NA or value is None or (isinstance(value, float) and math.isnan(value)):
        return "—"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def bar(share: float, width: int = 12) -> str:
    """A bar of `share` in [0, 1].

    >>> bar(0.5, width=4)
    '██  '
    """
    return "█" * round(share * width) + " " * (width - round(share * width))


def print_error(text: str) -> None:
    """One line on stderr."""
    messages.print(f"error: {text}", markup=False, highlight=False, soft_wrap=True)


def print_text(text: str) -> None:
    """A line on stdout as it is."""
    output.print(text, markup=False, highlight=False, soft_wrap=True)
