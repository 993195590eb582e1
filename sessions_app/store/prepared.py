"""Statements prepared once per connection, because planning them costs more than running them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper


def rows(
    connection: BaseDatabaseWrapper, statement: str, parameters: Sequence[Any] | Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Return the rows of a statement; raises Django's database errors.

    Python's SQLite driver caches statements itself.
    """
    if connection.vendor != "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            result: list[tuple[Any, ...]] = cursor.fetchall()
            return result
    connection.ensure_connection()
    raw: Any = connection.connection
    with connection.wrap_database_errors:
        # Django disables prepared statements on its connections, and the pool may share this one.
        raw.prepare_threshold = 0
        try:
            return psycopg.Cursor(raw).execute(statement, parameters).fetchall()
        finally:
            raw.prepare_threshold = None
