"""The tool `csv_report`: reads an uploaded CSV file and answers with a summary and a chart.

It is a long-running tool like any other, so each part of its work is reported as it begins and
may be cancelled there.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Annotated, Final

import msgspec

from agents_app.tools.csv_table import Column, Table, decode, describe, parse
from agents_app.tools.csv_text import DecodedText
from agents_app.tools.registry import ToolContext, ToolOutcome, tool
from uamp.types.content import ContentItem, ImageContent

CHARTS_EXTRA: Final = "charts"
_CELL_CHARS = 40


@tool
def csv_report(
    context: ToolContext,
    content_id: Annotated[
        str, msgspec.Meta(description="content_id of the attached file", min_length=1)
    ],
) -> ToolOutcome:
    """Summarise the columns of an attached CSV file as a Markdown table, with a chart."""
    context.progress(percent=0, step=1, stage="read", message="Reading the file")
    content = context.read_content(content_id)
    decoded = decode(content.data)
    context.progress(percent=5, step=2, stage="parse", message=f"Parsing {content.filename}")
    table = parse(
        decoded.text,
        on_rows=lambda rows: context.progress(
            percent=5, step=2, stage="parse", message=f"Read {rows} rows"
        ),
    )
    total = len(table.columns) + 4
    columns: list[Column] = []
    for number, (name, values) in enumerate(table.columns.items(), start=1):
        context.progress(
            percent=10 + 70 * (number - 1) / len(table.columns),
            step=2 + number,
            total_steps=total,
            stage="statistics",
            message=f"Column {number} of {len(table.columns)}: {_short(name)}",
        )
        columns.append(describe(name, values, delimiter=table.delimiter))
    context.progress(
        percent=80, step=total - 1, total_steps=total, stage="chart", message="Drawing the chart"
    )
    name = content.filename.rsplit(".", 1)[0] or "report"
    items: tuple[ContentItem, ...] = ()
    about = f"This server draws no charts: its extra `{CHARTS_EXTRA}` is not installed."
    if (chart := _chart()) is not None:
        picture, shows = chart.draw(content.filename, columns, rows=table.rows)
        context.progress(
            percent=95, step=total, total_steps=total, stage="write", message="Storing the chart"
        )
        item = context.write_content(picture, mime_type="image/png", filename=f"{name}-chart.png")
        if isinstance(item, ImageContent):
            item = msgspec.structs.replace(item, alt_text=f"Chart: {shows}")
        items, about = (item,), f"The chart shows {_cell(shows, 200)}."
    context.progress(percent=100, step=total, total_steps=total, stage="done", message="Done")
    text = summary(content.filename, table, columns, about, about_text(decoded))
    return ToolOutcome(result=text, content_items=items)


def _chart() -> ModuleType | None:
    """Return the chart renderer, which web processes never load; None without its libraries."""
    if find_spec("matplotlib") is None:
        return None
    from agents_app.tools import csv_chart  # noqa: PLC0415 a web process never needs it

    return csv_chart


def about_text(decoded: DecodedText) -> str:
    """Return in which encoding a file was read, where nothing in it said that."""
    if not decoded.encoding:
        return ""
    doubt = "" if decoded.is_sure else ", which is not certain"
    return (
        f" It was read as {decoded.encoding}{doubt}: if letters are wrong, save it as UTF-8 and"
        " attach that file."
    )


def summary(
    filename: str, table: Table, columns: Sequence[Column], chart: str, encoding: str = ""
) -> str:
    """Summarise a table as Markdown.

    `chart` is a sentence about the chart, `encoding` one about how the file was read.
    """
    rows = [
        f"| {_cell(c.name)} | {c.kind} | {c.filled} | {c.distinct} |"
        f" {' | '.join(_cell(fact) for fact in c.facts)} |"
        for c in columns
    ]
    note = f" Rows with too few or too many values: {table.ragged}." if table.ragged else ""
    size = f"{_counted(table.rows, 'row')} and {_counted(len(columns), 'column')}"
    return "\n".join(
        (
            f"**{_cell(filename)}** has {size}.{note}{encoding}",
            "",
            "| column | kind | filled | different | smallest | largest | typical |",
            "|---|---|---:|---:|---:|---:|---|",
            *rows,
            "",
            chart,
        )
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _cell(text: str, limit: int = _CELL_CHARS) -> str:
    """Return a text that stays in its table cell, without markup."""
    short = _short(" ".join(text.split()), limit)
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>()#|!~" else c for c in short)


def _short(text: str, limit: int = _CELL_CHARS) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
