"""The read of a stored API key, which most requests begin with. Synchronous.

Its statement is made by Django once: to make it anew costs ten times what it costs to run.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection

from sessions_app.models import ApiKey

if TYPE_CHECKING:
    from datetime import datetime


class StoredKey(NamedTuple):
    """A key and its owner."""

    pk: int
    sha256: str
    revoked_at: datetime | None
    expires_at: datetime | None
    used_at: datetime | None
    user_id: int
    username: str
    is_active: bool


def find_key(prefix: str) -> StoredKey | None:
    """Return the key of a prefix."""
    with connection.cursor() as cursor:
        cursor.execute(_statement(connection.vendor), [prefix])
        row = cursor.fetchone()
    if row is None:
        return None
    key = StoredKey(*row)
    return key._replace(
        revoked_at=_moment(key.revoked_at),
        expires_at=_moment(key.expires_at),
        used_at=_moment(key.used_at),
    )


def _moment(value: Any) -> Any:
    """Return a time as Django reads it from a column: SQLite has no time zones."""
    if connection.vendor != "sqlite":
        return value
    operations: Any = connection.ops
    return operations.convert_datetimefield_value(value, None, connection)


@cache
def _statement(vendor: str) -> str:
    del vendor  # the statement is in its dialect
    fields = ("pk", "sha256", "revoked_at", "expires_at", "used_at", "user_id")
    keys = ApiKey.objects.filter(prefix="").values_list(
        *fields, "user__username", "user__is_active"
    )
    return str(keys.query.sql_with_params()[0])
