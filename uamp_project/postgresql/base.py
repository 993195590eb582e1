"""The database backend that `DATABASE_URL` selects for PostgreSQL.

For each indexed text column, Django creates a second index, `..._like`, for `LIKE 'abc%'`. No
statement here uses one, yet ids are text, and every write would maintain those indexes: a tenth of
the database.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base, schema


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    """Creates no `_like` indexes."""

    def _create_like_index_sql(self, model: Any, field: Any) -> None:
        """Return nothing to create."""


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's own connection, with the schema editor above."""

    SchemaEditorClass = DatabaseSchemaEditor
