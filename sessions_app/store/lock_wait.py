"""How long the writes of one thread wait for the locks of others, on PostgreSQL.

Within `lock_wait` a write of a turn that meets a lock fails after that time, for another writer to
wait longer. The time ends with the transaction of the write, so that a connection that goes back to
the pool has the database's own `lock_timeout` again. SQLite has one lock, and its own waiting time.
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
    """Let the writes of turns inside wait so long for a lock; None is the database's own limit."""
    token = _LIMIT.set(None if milliseconds is None else f"{milliseconds}ms")
    try:
        yield
    finally:
        _LIMIT.reset(token)


def limit() -> str | None:
    """Return the limit as PostgreSQL writes it; None where the database's own one holds."""
    return _LIMIT.get()


def apply_limit() -> None:
    """Set the limit for the transaction that has begun."""
    if limit() is not None and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [limit()])


def is_lock_timeout(error: BaseException) -> bool:
    """Return whether a write failed because another transaction held a lock for too long."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)


def is_timeout(error: BaseException) -> bool:
    """Return whether a write failed after a time limit of the database, so that it had no effect.

    A statement that is cancelled while it commits is committed all the same; its repeat finds it.
    """
    return is_lock_timeout(error) or isinstance(error.__cause__, psycopg.errors.QueryCanceled)
