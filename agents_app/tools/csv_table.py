"""Parses the CSV files that people have, and describes each column.

Files are untrusted input: they are limited before they are parsed, and a ToolError explains how to
fix an invalid one.
"""

import csv
import io
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agents_app.tools import csv_text
from agents_app.tools.csv_numbers import numbers_of
from agents_app.tools.csv_text import DecodedText
from agents_app.tools.registry import ToolError

MAX_BYTES = 25 * 1024 * 1024
MAX_ROWS = 500_000
MAX_COLUMNS = 100
ROWS_PER_STEP = 20_000
"""The rows read between two progress reports."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?", re.ASCII)
_UNFIT_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f]")
# The first line in which spreadsheets name the separator.
_SEPARATOR_LINE = re.compile(r'\s*"?sep=(.)\1*"?[ \t]*(?:\r\n?|\n|\Z)', re.IGNORECASE)
_SEPARATORS = ",;\t|"
_SAMPLE_CHARS = 65_536
_SAMPLE_LINES = 20


@dataclass(frozen=True, kw_only=True)
class Table:
    """A parsed file: named columns of equal length; missing values are empty."""

    columns: dict[str, list[str]]
    rows: int
    ragged: int
    """Rows with too few or too many values, which were padded or cut."""
    delimiter: str


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column; `numbers` and `dates` are set if all values are of that type."""

    name: str
    kind: str
    filled: int
    distinct: int
    frequent: tuple[tuple[str, int], ...]
    numbers: tuple[float, ...] = ()
    dates: tuple[datetime, ...] = ()

    @property
    def facts(self) -> tuple[str, str, str]:
        """Minimum, maximum, and the mean of numbers or the most frequent other value."""
        if self.numbers:
            mean = statistics.fmean(self.numbers)
            return _short(min(self.numbers)), _short(max(self.numbers)), f"mean {_short(mean)}"
        if self.dates:
            return f"{min(self.dates):%Y-%m-%d}", f"{max(self.dates):%Y-%m-%d}", ""
        if not self.frequent:
            return "", "", ""
        value, times = self.frequent[0]
        return "", "", f"“{value}” in {times} of {self.filled}"


def decode(data: bytes) -> DecodedText:
    """Decode a file, noting the encoding if it had to be guessed.

    Raises ToolError for an empty, too large or binary file.
    """
    if len(data) > MAX_BYTES:
        limit = MAX_BYTES // 1024 // 1024
        raise ToolError(f"The file is larger than {limit} MB. Send a part of it.")
    decoded = csv_text.detect(data)
    if decoded is None or _UNFIT_CONTROLS.search(decoded.text):
        raise ToolError(
            "This file is not text, or not in an encoding that is known. Save the table as CSV in"
            " UTF-8 and attach that file."
        )
    if not decoded.text.strip():
        raise ToolError("The file is empty. Save the table again and attach the new file.")
    return decoded


def parse(text: str, *, on_rows: Callable[[int], None]) -> Table:
    """Parse a table; the first row names the columns.

    `on_rows` is called with the number of rows read, every ROWS_PER_STEP rows. Raises ToolError if
    the text is not a table, has no rows, or has too many rows or columns.
    """
    delimiter, text = _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = (row for row in reader if row)
        names = _names(next(rows, []))
        values: list[list[str]] = [[] for _ in names]
        count = ragged = 0
        for row in rows:
            count += 1
            if count > MAX_ROWS:
                raise ToolError(f"The file has more than {MAX_ROWS} rows. Send a part of it.")
            ragged += len(row) != len(names)
            for column, value in zip(values, _fitted(row, len(names)), strict=True):
                column.append(value.strip())
            if count % ROWS_PER_STEP == 0:
                on_rows(count)
    except csv.Error as error:
        raise ToolError(
            f"Line {reader.line_num} of the file cannot be read ({error})."
            " Check its quotation marks and save it as CSV again."
        ) from error
    if count == 0:
        raise ToolError("The file has a first row with names and no rows below it.")
    return Table(
        columns=dict(zip(names, values, strict=True)),
        rows=count,
        ragged=ragged,
        delimiter=delimiter,
    )


def describe(name: str, values: Sequence[str], *, delimiter: str) -> Column:
    """Determine the type and statistics of a column."""
    filled = [value for value in values if value]
    counts = Counter(filled)
    numbers = numbers_of(filled, delimiter=delimiter)
    dates: list[datetime] = []
    kind = "text"
    if numbers:
        kind = "number"
    elif filled and all(_DATE.fullmatch(value) for value in counts):
        dates = _dates(filled)
        kind = "date" if dates else "text"
    return Column(
        name=name,
        kind=kind if filled else "empty",
        filled=len(filled),
        distinct=len(counts),
        frequent=tuple(counts.most_common(12)),
        numbers=numbers,
        dates=tuple(dates),
    )


def _dates(values: Sequence[str]) -> list[datetime]:
    try:
        return [datetime.fromisoformat(value) for value in values]
    except ValueError:
        return []


def _delimiter(text: str) -> tuple[str, str]:
    """Return the separator, and the text without a line that names it.

    By default, it is the separator that occurs equally often in most of the first lines; among
    equals, the most frequent in the first row. Quoted text is ignored.
    """
    if (named := _SEPARATOR_LINE.match(text)) is not None:
        return named[1], text[named.end() :]
    sample = re.sub(r'"[^"]*"', "", text[:_SAMPLE_CHARS])
    lines = [line for line in sample.splitlines() if line.strip()][:_SAMPLE_LINES]

    def fits(separator: str) -> tuple[int, int]:
        counts = [line.count(separator) for line in lines]
        first = counts[0] if counts else 0
        return (counts.count(first), first) if first else (0, 0)

    return max(_SEPARATORS, key=fits), text


def _names(row: Sequence[str]) -> list[str]:
    if len(row) > MAX_COLUMNS:
        raise ToolError(f"The file has more than {MAX_COLUMNS} columns. Send fewer of them.")
    names: list[str] = []
    for position, raw in enumerate(row, start=1):
        name = plain = " ".join(raw.split()) or f"column {position}"
        number = position
        while name in names:
            name, number = f"{plain} ({number})", number + 1
        names.append(name)
    return names


def _fitted(row: list[str], width: int) -> list[str]:
    return row[:width] + [""] * (width - len(row))


def _short(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.4g}"
