"""The database backend that `DATABASE_URL` selects for PostgreSQL.

Django gives each indexed text column a second index, `..._like`, for `LIKE 'abc%'`. No statement
here has one, ids are text, and every row written would pay for them: a tenth of the database.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base, schema


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    """Makes no `_like` indexes."""

    def _create_like_index_sql(self, model: Any, field: Any) -> None:
        """Return nothing to be created."""


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's own connection otherwise."""

    SchemaEditorClass = DatabaseSchemaEditor
