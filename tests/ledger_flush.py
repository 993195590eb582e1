"""Lets the tests empty the ledger between them; nothing else can.

Django empties the tables after a test that commits: DELETE on SQLite, TRUNCATE on PostgreSQL. The
ledger's triggers refuse both, from everybody. The flush of the tests takes the triggers away and
puts them back in its own transaction.
"""

from typing import Any

from django.db import connection

TRIGGERS_OF_SQLITE = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'ledger_%'"
    " AND sql LIKE '% BEFORE DELETE %'"
)
TRIGGERS_OF_POSTGRESQL = (
    "SELECT tgname, tgrelid::regclass::text FROM pg_trigger"
    " WHERE tgname LIKE 'ledger_%_not_emptied'"
)


def allow_tests_to_empty_the_ledger() -> None:
    """Wrap the statements of `flush` on the database of the tests, in every thread."""
    operations: Any = type(connection.ops)
    flush = operations.sql_flush

    def sql_flush(self: Any, style: Any, tables: Any, **options: Any) -> list[str]:
        statements: list[str] = flush(self, style, tables, **options)
        if not statements:
            return statements
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute(TRIGGERS_OF_SQLITE)
                triggers = cursor.fetchall()
                before = [f"DROP TRIGGER {name}" for name, _ in triggers]
                after = [sql for _, sql in triggers]
            else:
                cursor.execute(TRIGGERS_OF_POSTGRESQL)
                triggers = cursor.fetchall()
                before = [f"ALTER TABLE {table} DISABLE TRIGGER {name}" for name, table in triggers]
                after = [f"ALTER TABLE {table} ENABLE TRIGGER {name}" for name, table in triggers]
        return [*before, *statements, *after]

    sql_flush.__wrapped__ = flush  # type: ignore[attr-defined] # so that a test can do without
    operations.sql_flush = sql_flush
