"""Rows of a table, written by one SQL statement.

GROWTH_ROWS in the environment is another number of rows than 100,000, for benchmarks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import connection, models

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import Field, Model

    from agents_app.models import Agent
    from chat_app.models import Chat
    from sessions_app import models as sessions

ROWS: Final = int(os.environ.get("GROWTH_ROWS", "100000"))


@dataclass(frozen=True, kw_only=True)
class FilledTables:
    """The rows that the tests ask for by name; everything else is the mass around them.

    `chat` has 100,000 messages and answers. `reader` has read them all, `newcomer` none; `author`
    wrote every second one, the agent the others.
    """

    chat: Chat
    agent: Agent
    author: User
    reader: User
    newcomer: User
    root: User
    session: sessions.Session


# So many webhooks and deliveries are due: with none nothing more is asked.
DUE: Final = 3


def ago(seconds: str) -> str:
    """Return the SQL of a time so many seconds ago; `seconds` is an expression."""
    if connection.vendor == "postgresql":
        return f"now() - ({seconds}) * interval '1 second'"
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', -({seconds}) || ' seconds')"


def fill(model: type[Model], count: int = ROWS, first: int = 1, **values: str) -> None:
    """Insert rows; `values` are SQL expressions by column, in which `i` counts from `first`."""
    columns, expressions = [], []
    for field in model._meta.concrete_fields:
        if isinstance(field, models.AutoField) and field.column not in values:
            continue
        column = str(field.column)
        columns.append(connection.ops.quote_name(column))
        expressions.append(values.pop(column, "") or _neutral(field))
    assert not values, values
    numbers = f"generate_series({first}, {first + count - 1}) AS numbers(i)"
    if connection.vendor == "sqlite":
        numbers = (
            f"(WITH RECURSIVE numbers(i) AS (SELECT {first} UNION ALL"  # noqa: S608 numbers
            f" SELECT i + 1 FROM numbers WHERE i < {first + count - 1})"
            " SELECT i FROM numbers) AS numbers"
        )
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {model._meta.db_table} ({', '.join(columns)})"  # noqa: S608 constants
            f" SELECT {', '.join(expressions)} FROM {numbers}"
        )


def _neutral(field: Field[Any, Any]) -> str:
    """Return an expression for a column of which nothing is said."""
    if field.null:
        return "NULL"
    match field:
        case models.BooleanField():
            return "false"
        case models.DateTimeField():
            return ago("i")
        case models.JSONField():
            return "'{}'"
        case models.IntegerField() | models.ForeignKey():
            return "1"
        case _:
            return "''"


def hexadecimal(expression: str) -> str:
    """Return the SQL of a number as 32 hex digits, as a UUID is kept."""
    if connection.vendor == "postgresql":
        return f"lpad(to_hex({expression}), 32, '0')::uuid"
    return f"printf('%032x', {expression})"
