"""One statement that shows which periodic jobs have work.

If each job queried for its own work every second, these queries would take most of the CPU of an
idle process.
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
    """The rows that give each job work.

    The statement uses the database's clock, so it never changes and is built only once.
    """

    def __init__(self, rows: Mapping[str, DueRows]) -> None:
        self._rows = rows
        self._statement: _Statement | None = None

    def jobs(self) -> list[str]:
        """Return the names of the jobs that have work. Synchronous."""
        if self._statement is None:
            self._statement = self._built()
        ((*flags,),) = prepared.rows(connection, *self._statement)
        return [job for job, is_due in zip(self._rows, flags, strict=True) if is_due]

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
