"""Tables that may be larger than memory: their newest rows in memory, the others in a file.

Like those of ``tempfile.SpooledTemporaryFile``, the files have no name that others could open, and
disappear when the spool is closed. They are databases of SQLite, which puts them where
``SQLITE_TMPDIR`` or ``TMPDIR`` says, or in /var/tmp.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import msgspec

Row = TypeVar("Row")

BYTES_IN_MEMORY: Final = 128 * 1024
"""The size of the rows that a table keeps in memory, encoded."""

TMPDIR_ADVICE: Final = "Set TMPDIR to a folder with free space."
"""What to do about a SpoolError."""

_PAGE: Final = 100
_CREATE: Final = "CREATE TABLE rows (number INTEGER PRIMARY KEY, key TEXT UNIQUE, row BLOB)"
_WRITE: Final = (
    "INSERT INTO rows (key, row) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET row = excluded.row"
)
_READ: Final = "SELECT row FROM rows WHERE key = ?"
_READ_ALL: Final = "SELECT key, row FROM rows ORDER BY number"
_COUNT: Final = "SELECT count(*) FROM rows"


class SpoolError(Exception):
    """The temporary file of a table cannot be used, for instance because the disk is full."""


class SpooledTable(Generic[Row]):
    """Rows by key, in the order in which their keys were added. For use by one task or thread.

    Rows are encoded as JSON. All methods raise SpoolError if the file cannot be written or read.
    """

    def __init__(self, kind: type[Row]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self._new: dict[str, bytes] = {}
        self._size = 0
        # The last row read from the file: a check asks for several facts of one row in turn.
        self._last: tuple[str | None, bytes | None] = (None, None)
        self._file: sqlite3.Connection | None = None

    def get(self, key: str, /) -> Row | None:
        """Return the row of a key, or None."""
        data = self._read(key)
        return None if data is None else self._decode(data)

    def __contains__(self, key: object, /) -> bool:
        return isinstance(key, str) and self._read(key) is not None

    def __setitem__(self, key: str, row: Row, /) -> None:
        data = msgspec.json.encode(row)
        self._size += len(key) + len(data)
        self._new[key] = data
        self._last = (None, None)
        if self._size > BYTES_IN_MEMORY:
            self._spill()

    def __len__(self) -> int:
        if self._file is None:
            return len(self._new)
        self._spill()
        with _reported():
            return int(self._file.execute(_COUNT).fetchone()[0])

    def items(self) -> Iterator[tuple[str, Row]]:
        """Yield the keys and rows. Do not set rows while iterating."""
        if self._file is None:
            for key, data in self._new.items():
                yield key, self._decode(data)
            return
        self._spill()
        with _reported():
            rows = self._file.execute(_READ_ALL)
        while page := _next(rows):
            for key, data in page:
                yield key, self._decode(data)

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()

    def _read(self, key: str) -> bytes | None:
        data = self._new.get(key)
        if data is not None or self._file is None:
            return data
        if self._last[0] != key:
            with _reported():
                row = self._file.execute(_READ, (key,)).fetchone()
            self._last = (key, None if row is None else row[0])
        return self._last[1]

    def _spill(self) -> None:
        """Move the rows in memory to the file."""
        with _reported():
            if self._file is None:
                self._file = _opened()
            self._file.executemany(_WRITE, self._new.items())
        self._new, self._size = {}, 0


class Spool:
    """The tables of one check, which are closed together."""

    def __init__(self) -> None:
        self._tables: list[SpooledTable[Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def table(self, kind: type[Row], /) -> SpooledTable[Row]:
        """Return a new table for rows of a type that msgspec encodes."""
        table = SpooledTable(kind)
        self._tables.append(table)
        return table

    def close(self) -> None:
        """Remove the files of all tables."""
        for table in self._tables:
            table.close()


def _opened() -> sqlite3.Connection:
    """Open a database without a name, which is gone once it is closed."""
    file = sqlite3.connect("", isolation_level=None)
    # One transaction that never ends: after a crash the file would not be read.
    for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", _CREATE, "BEGIN"):
        file.execute(statement)
    return file


def _next(rows: sqlite3.Cursor) -> list[tuple[str, bytes]]:
    with _reported():
        return rows.fetchmany(_PAGE)


@contextmanager
def _reported() -> Iterator[None]:
    """Raise a failure of the file as a SpoolError."""
    try:
        yield
    except sqlite3.Error as error:
        raise SpoolError(f"The temporary file cannot be used: {error}") from None
