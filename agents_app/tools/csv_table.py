"""Reads a CSV file as people make them, and says what is in each column.

A file is data from a stranger. It is limited before it is parsed, and what is wrong with
the ToolError describes what to do.
"""

import csv
import io
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agents_app.tools.registry import ToolError

MAX_BYTES = 25 * 1024 * 1024
MAX_ROWS = 500_000
MAX_COLUMNS = 100
ROWS_PER_STEP = 20_000
"""How many rows are read between two signs of life."""

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?", re.ASCII)
_UNFIT_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A parsed file: named columns of equally many values; a missing value is empty."""

    columns: dict[str, list[str]]
    rows: int
    ragged: int
    """Rows with too few or too many values; they were filled up or cut."""
    delimiter: str


@dataclass(frozen=True, kw_only=True)
class Column:
    """What is in a column; `numbers` and `dates` are its values, when all of them are that."""

    name: str
    kind: str
    filled: int
    distinct: int
    frequent: tuple[tuple[str, int], ...]
    numbers: tuple[float, ...] = ()
    dates: tuple[datetime, ...] = ()

    @property
    def facts(self) -> tuple[str, str, str]:
        """Smallest, largest and middle: the mean of numbers, the most frequent of other values."""
        if self.numbers:
            mean = statistics.fmean(self.numbers)
            return _short(min(self.numbers)), _short(max(self.numbers)), f"mean {_short(mean)}"
        if self.dates:
            return f"{min(self.dates):%Y-%m-%d}", f"{max(self.dates):%Y-%m-%d}", ""
        if not self.frequent:
            return "", "", ""
        value, times = self.frequent[0]
        return "", "", f"“{value}” in {times} of {self.filled}"


def decode(data: bytes) -> str:
    """Return a file's text: UTF-8, UTF-16 with its mark, or else Windows-1252.

    Raises ToolError for an empty, too large or binary file.
    """
    if len(data) > MAX_BYTES:
        limit = MAX_BYTES // 1024 // 1024
        raise ToolError(f"The file is larger than {limit} MB. Send a part of it.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    else:
        encodings = ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if _UNFIT_CONTROLS.search(text):
            break
        if not text.strip():
            raise ToolError("The file is empty. Save the table again and attach the new file.")
        return text
    raise ToolError("This is no text file. Save the table as CSV and attach that file.")


def parse(text: str, *, on_rows: Callable[[int], None]) -> Table:
    """Return the table in a text; the first row names the columns.

    `on_rows` is called with the number of rows read, every ROWS_PER_STEP rows. Raises ToolError for
    what is no table, has no rows, or has too many rows or columns.
    """
    delimiter = _delimiter(text)
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
    """Return what is in a column. A comma is a decimal sign where it separates no values."""
    filled = [value for value in values if value]
    counts = Counter(filled)
    numbers: list[float] = []
    dates: list[datetime] = []
    kind = "text"
    for value in filled:
        text = value
        if delimiter != "," and _DECIMAL_COMMA.fullmatch(value):
            text = value.replace(",", ".")
        # What is too large for a number of this machine is no number that could be compared.
        if not _NUMBER.fullmatch(text) or not math.isfinite(number := float(text)):
            numbers = []
            break
        numbers.append(number)
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
        numbers=tuple(numbers),
        dates=tuple(dates),
    )


def _dates(values: Sequence[str]) -> list[datetime]:
    try:
        return [datetime.fromisoformat(value) for value in values]
    except ValueError:
        return []


def _delimiter(text: str) -> str:
    """Return the separator that stands most often in the first row, outside quotation marks."""
    first = re.sub(r'"[^"]*"', "", text.lstrip().split("\n", 1)[0])
    return max(",;\t|", key=first.count)


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
