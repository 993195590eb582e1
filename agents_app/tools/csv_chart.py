"""Draws one chart of a table, chosen by its columns, in a plain light design.

Only matplotlib's object interface with the Agg canvas is used, which keeps no state between charts.
It is imported when a chart is drawn, because that takes half a second and tens of megabytes.
"""

import io
import logging
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from agents_app.tools.csv_table import Column

logger = logging.getLogger(__name__)

_INK = "#1f2937"
_FAINT = "#d1d5db"
_COLORS = ("#2563eb", "#d97706", "#059669", "#7c3aed")
_BARS = 12
_POINTS = 2000
_LABEL_CHARS = 24


def draw(title: str, columns: Sequence[Column], *, rows: int) -> tuple[bytes, str]:
    """Return a PNG of 1200 x 675 pixels and a sentence that describes it.

    Numbers with a date column become lines, numbers of a few named rows bars, other numbers
    histograms; a table without numbers shows how often the values of a column occur. Columns are
    combined only if they have a value in each of the `rows`. Values that no axis can show (days at
    the end of time, numbers that differ by less than the rounding error) get a different chart.
    """
    for chart in _charts(columns, rows):
        try:
            # If the ends of an axis are too far apart, the chart would make no sense.
            with np.errstate(over="raise"):
                return _drawn(title, chart)
        except (ArithmeticError, RuntimeError, ValueError) as error:
            logger.info("a chart cannot be drawn: %s", error)
    return _drawn(
        title, partial(_frequencies, column=max(columns, key=lambda column: column.filled))
    )


def _charts(columns: Sequence[Column], rows: int) -> list[Callable[[Axes], str]]:
    """Return the possible charts of a table's numbers, best first."""
    numbers = [column for column in columns if column.numbers]
    complete = [column for column in columns if column.filled == rows]
    whole = [column for column in complete if column.numbers][: len(_COLORS)]
    dates = next((column for column in complete if column.dates), None)
    names = next((column for column in complete if column.kind == "text"), None)
    charts: list[Callable[[Axes], str]] = []
    if whole and dates is not None:
        charts.append(partial(_lines, dates=dates, numbers=whole))
    if whole and names is not None and names.distinct == rows <= _BARS:
        charts.append(partial(_named_bars, names=names, numbers=whole[0]))
    charts += [partial(_histogram, numbers=column) for column in numbers[: len(_COLORS)]]
    return charts


def _drawn(title: str, chart: Callable[[Axes], str]) -> tuple[bytes, str]:
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    description = chart(axes)
    _style(axes, _label(title, 60))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue(), description


def _lines(axes: Axes, dates: Column, numbers: Sequence[Column]) -> str:
    order = sorted(range(len(dates.dates)), key=dates.dates.__getitem__)
    order = order[:: max(1, len(order) // _POINTS)]
    for column, color in zip(numbers, _COLORS, strict=False):
        axes.plot(
            [dates.dates[i] for i in order],  # type: ignore[arg-type] # dates are drawable
            [column.numbers[i] for i in order],
            color=color,
            linewidth=1.8,
            label=_label(column.name),
        )
    axes.legend(frameon=False, labelcolor=_INK)
    axes.tick_params(axis="x", rotation=30)
    return f"{_listed(numbers)} over {dates.name}"


def _named_bars(axes: Axes, names: Column, numbers: Column) -> str:
    # Each name occurs once, so the most frequent names are all names, in row order.
    _bars(axes, [name for name, _ in names.frequent], numbers.numbers)
    axes.set_xlabel(_label(numbers.name))
    return f"{numbers.name} of each {names.name}"


def _histogram(axes: Axes, numbers: Column) -> str:
    axes.hist(numbers.numbers, bins=min(30, max(5, numbers.distinct)), color=_COLORS[0])
    axes.set_xlabel(_label(numbers.name))
    axes.set_ylabel("rows")
    return f"how the values of {numbers.name} are distributed"


def _frequencies(axes: Axes, column: Column) -> str:
    _bars(axes, [value for value, _ in column.frequent], [count for _, count in column.frequent])
    axes.set_xlabel("rows")
    return f"how often the values of {column.name} occur"


def _bars(axes: Axes, names: Sequence[str], lengths: Sequence[float]) -> None:
    axes.barh(range(len(names)), lengths, color=_COLORS[0])
    axes.set_yticks(range(len(names)), [_label(name) for name in names])
    axes.invert_yaxis()


def _style(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", color=_INK, fontsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_FAINT)
    axes.tick_params(colors=_INK, labelsize=9)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(_INK)
    axes.grid(color=_FAINT, linewidth=0.6, alpha=0.7, axis="x" if axes.yaxis_inverted() else "y")
    axes.set_axisbelow(True)


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


def _label(text: str, limit: int = _LABEL_CHARS) -> str:
    """Return a label that the font can draw, with matplotlib's math markup escaped."""
    glyphs = get_font(findfont(FontProperties()))
    drawn = "".join(c if glyphs.get_char_index(ord(c)) else "?" for c in text)
    short = drawn if len(drawn) <= limit else f"{drawn[: limit - 1]}…"
    return short.replace("$", r"\$")
