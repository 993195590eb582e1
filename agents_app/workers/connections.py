"""Release of database connections before a thread waits for something else."""

from __future__ import annotations

from django.db import connections


def release() -> None:
    """Release this thread's connections, unless they are persistent or in a transaction.

    Django's `close_old_connections` also closes connections in a transaction, which aborts it.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
