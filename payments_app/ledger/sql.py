"""SQL for both databases: rows, row locks and the database's clock.

The ledger is written in SQL because every paid turn passes through it twice.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.utils.dateparse import parse_datetime

if TYPE_CHECKING:
    from collections.abc import Sequence


Row = tuple[Any, ...]


def rows(sql: str, params: Sequence[Any] = ()) -> list[Row]:
    """Run a statement and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        result: list[Row] = cursor.fetchall()
        return result


def run(sql: str, params: Sequence[Any] = ()) -> int:
    """Run a statement and return how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.rowcount)


def row_lock() -> str:
    """Return the end of a locking SELECT; SQLite has a single writer, which is us."""
    return " FOR NO KEY UPDATE" if connection.vendor == "postgresql" else ""


def now_sql() -> str:
    """Return the database's clock, since no process's own clock may decide about expiry."""
    if connection.vendor == "postgresql":
        return "statement_timestamp()"
    return "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')"


def later_sql() -> str:
    """Return the database's clock plus a parameter in seconds."""
    if connection.vendor == "postgresql":
        return "statement_timestamp() + make_interval(secs => %s)"
    return "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s || ' seconds')"


def moment(value: Any) -> datetime:
    """Return a time from a statement's result, which SQLite returns as text."""
    time = parse_datetime(value) if isinstance(value, str) else value
    if not isinstance(time, datetime):
        raise TypeError(f"The database returned no time: {value!r}")
    return time if time.tzinfo else time.replace(tzinfo=UTC)
