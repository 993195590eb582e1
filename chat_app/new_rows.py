"""Insert rows with an SQL statement that is built only once per table. Synchronous.

Django builds the statement for every row, which costs several times the work of the database.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection, models

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Insert(NamedTuple):
    """The start of a statement, the placeholders of one row, and the fields they stand for."""

    begin: str
    row: str
    fields: Sequence[models.Field[Any, Any]]


def insert(*rows: models.Model) -> None:
    """Insert new rows of one model; raise IntegrityError.

    Every field has a value except the auto-increment key, which is not read back. No signal is
    sent.
    """
    made = _insert_into(type(rows[0]), connection.vendor)
    values = [
        field.get_db_prep_save(getattr(row, field.attname), connection)
        for row in rows
        for field in made.fields
    ]
    with connection.cursor() as cursor:
        cursor.execute(made.begin + ", ".join([made.row] * len(rows)), values)
    for row in rows:
        row._state.adding = False  # noqa: SLF001 as `save` does
        row._state.db = connection.alias  # noqa: SLF001 as above


@cache
def _insert_into(model: type[models.Model], vendor: str) -> _Insert:
    del vendor  # names are quoted for it
    quote = connection.ops.quote_name
    options = model._meta  # noqa: SLF001 Django's documented API of models
    counted = models.AutoField
    fields = [field for field in options.local_concrete_fields if not isinstance(field, counted)]
    columns = ", ".join(quote(str(field.column)) for field in fields)
    begin = f"INSERT INTO {quote(options.db_table)} ({columns}) VALUES "  # noqa: S608 names of tables and columns
    return _Insert(begin, f"({', '.join(['%s'] * len(fields))})", fields)
