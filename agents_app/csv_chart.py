"""Draws one chart of a table: what its columns suggest, in a plain light design.

The law: the object interface of matplotlib on its Agg canvas only, which keeps no state between two
charts. It is imported when a chart is drawn, because it takes half a second and tens of megabytes.
"""

import io
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from agents_app.csv_table import Column

_INK = "#1f2937"
_FAINT = "#d1d5db"
_COLORS = ("#2563eb", "#d97706", "#059669", "#7c3aed")
_BARS = 12
_POINTS = 2000
_LABEL_CHARS = 24


def draw(title: str, columns: Sequence[Column]) -> tuple[bytes, str]:
    """Return a PNG of 1200 x 675 pixels and a sentence that says what it shows.

    Numbers over a date column are lines, numbers of few named rows are bars, other numbers are
    histograms; a table without numbers shows how often the values of a column occur.
    """
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    numbers = [column for column in columns if column.numbers][: len(_COLORS)]
    dates = next((column for column in columns if column.dates), None)
    names = next((column for column in columns if column.kind == "text"), None)
    if numbers and dates is not None and _same_length(dates, numbers):
        said = _lines(axes, dates, numbers)
    elif numbers and names is not None and names.distinct == names.filled <= _BARS:
        said = _named_bars(axes, names, numbers[0])
    elif numbers:
        said = _histogram(axes, numbers[0])
    else:
        said = _frequencies(axes, max(columns, key=lambda column: column.filled))
    _style(axes, _label(title, 60))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue(), said


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
    labels = [_label(name) for name, _ in names.frequent]
    positions = range(min(len(labels), len(numbers.numbers)))
    axes.barh(list(positions), numbers.numbers[: len(positions)], color=_COLORS[0])
    axes.set_yticks(list(positions), labels[: len(positions)])
    axes.invert_yaxis()
    axes.set_xlabel(_label(numbers.name))
    return f"{numbers.name} of each {names.name}"


def _histogram(axes: Axes, numbers: Column) -> str:
    axes.hist(numbers.numbers, bins=min(30, max(5, numbers.distinct)), color=_COLORS[0])
    axes.set_xlabel(_label(numbers.name))
    axes.set_ylabel("rows")
    return f"how the values of {numbers.name} are distributed"


def _frequencies(axes: Axes, column: Column) -> str:
    labels = [_label(value) for value, _ in column.frequent]
    axes.barh(range(len(labels)), [count for _, count in column.frequent], color=_COLORS[0])
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("rows")
    return f"how often the values of {column.name} occur"


def _style(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", color=_INK, fontsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_FAINT)
    axes.tick_params(colors=_INK, labelsize=9)
    axes.grid(color=_FAINT, linewidth=0.6, alpha=0.7)
    axes.set_axisbelow(True)


def _same_length(dates: Column, numbers: Sequence[Column]) -> bool:
    return all(column.filled == dates.filled for column in numbers)


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


def _label(text: str, limit: int = _LABEL_CHARS) -> str:
    """Return a text that the font can draw, without what matplotlib takes for a formula."""
    glyphs = get_font(findfont(FontProperties()))
    drawn = "".join(c if glyphs.get_char_index(ord(c)) else "?" for c in text)
    short = drawn if len(drawn) <= limit else f"{drawn[: limit - 1]}…"
    return short.replace("$", r"\$")
