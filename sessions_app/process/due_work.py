"""One statement that says which periodic jobs have something to do.

Each job would otherwise look by itself every second: building and sending queries that find
nothing was most of what an idle process did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection
from django.db.models import Value
from django.db.models.functions import Now

from sessions_app.store import prepared

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.models import QuerySet

    DueRows = Callable[[Now], Sequence[QuerySet[Any]]]


class _Statement(NamedTuple):
    sql: str
    parameters: tuple[Any, ...]


class DueWork:
    """The rows for which jobs have something to do, by job.

    The time is that of the database, so the statement is the same in each round and is built once.
    """

    def __init__(self, rows: Mapping[str, DueRows]) -> None:
        self._rows = rows
        self._statement: _Statement | None = None

    def jobs(self) -> list[str]:
        """Return the jobs that have something to do. Synchronous."""
        if self._statement is None:
            self._statement = self._built()
        ((*found,),) = prepared.rows(connection, *self._statement)
        return [job for job, is_due in zip(self._rows, found, strict=True) if is_due]

    def _built(self) -> _Statement:
        columns: list[str] = []
        parameters: list[Any] = []
        for due in self._rows.values():
            column = []
            for query in due(Now()):
                sql, values = query.order_by().values_list(Value(1)).query.sql_with_params()
                column.append(f"EXISTS ({sql})")
                parameters += values
            columns.append(" OR ".join(column))
        return _Statement(f"SELECT {', '.join(columns)}", tuple(parameters))
