"""Counts what a call makes the database do: by its own counters, not by a clock.

On PostgreSQL the rows and index entries that were read, of each table; on SQLite the steps of its
virtual machine, at least three for each row that is looked at. Statements that Django sends are
explained as well, with the parameters that they had.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS_BETWEEN: Final = 100
_READ: Final = """
SELECT relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) + coalesce((
    SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index WHERE indrelid = relid
), 0) FROM pg_stat_xact_user_tables"""


@dataclass
class Cost:
    """The work done: `read` rows by table (PostgreSQL), `steps` (SQLite), statements and plans."""

    read: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    statements: list[tuple[str, Any]] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)

    @property
    def amount(self) -> int:
        """Rows and index entries that were read; on SQLite an upper bound of them."""
        return sum(self.read.values()) if connection.vendor == "postgresql" else self.steps // 3

    def __str__(self) -> str:
        read = {table: rows for table, rows in self.read.items() if rows > 100}
        return "\n".join([f"read {self.amount} {read}", *self.plans])


@contextmanager
def counted() -> Iterator[Cost]:
    """Count what happens inside on the connection of this thread."""
    cost = Cost()

    def remember(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 Django's
        if sql.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE")) and not many:
            cost.statements.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(remember):
        if connection.vendor == "postgresql":
            before = _read()
            yield cost
            cost.read = {table: rows - before.get(table, 0) for table, rows in _read().items()}
        else:
            yield from _stepped(cost)
    cost.plans = [_plan(sql, params) for sql, params in cost.statements]


def analyze() -> None:
    """Update the planner's statistics, as PostgreSQL's autovacuum does; on SQLite nothing does."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Without names, it would lock catalogs that all databases share until the rollback.
            names = map(connection.ops.quote_name, connection.introspection.table_names(cursor))
            cursor.execute(f"ANALYZE {', '.join(names)}")


def _read() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.cursor.execute(_READ)
        return {table: int(rows) for table, rows in cursor.fetchall()}


def _stepped(cost: Cost) -> Iterator[Cost]:
    def step() -> int:
        cost.steps += STEPS_BETWEEN
        return 0

    raw: Any = connection.connection
    raw.set_progress_handler(step, STEPS_BETWEEN)
    try:
        yield cost
    finally:
        raw.set_progress_handler(None, 0)


def _plan(sql: str, params: Any) -> str:
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {sql}", params)
        lines = [str(row[-1]) for row in cursor.fetchall()]
    return "\n    ".join([sql[:2000], *lines])
