"""Lock timeouts of a thread's writes, on PostgreSQL.

Within `lock_wait`, a turn's write fails if it waits longer for a lock, and another writer then
waits longer. The setting ends with the write's transaction, so pooled connections keep the
database's own `lock_timeout`. SQLite has a single lock with a timeout of its own.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import psycopg
from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIMIT: Final[ContextVar[str | None]] = ContextVar("lock_wait", default=None)


@contextmanager
def lock_wait(milliseconds: int | None) -> Iterator[None]:
    """Limit the lock waits of the writes inside; None keeps the database's own limit."""
    token = _LIMIT.set(None if milliseconds is None else f"{milliseconds}ms")
    try:
        yield
    finally:
        _LIMIT.reset(token)


def limit() -> str | None:
    """Return the limit in PostgreSQL's notation, or None for the database's own."""
    return _LIMIT.get()


def apply_limit() -> None:
    """Set the limit for the current transaction."""
    if limit() is not None and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [limit()])


def is_lock_timeout(error: BaseException) -> bool:
    """Return whether a write failed because another transaction held a lock for too long."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)


def is_timeout(error: BaseException) -> bool:
    """Return whether a write failed on a database time limit, and so had no effect.

    A statement cancelled during its commit is committed nevertheless; repeating it finds that.
    """
    return is_lock_timeout(error) or isinstance(error.__cause__, psycopg.errors.QueryCanceled)
