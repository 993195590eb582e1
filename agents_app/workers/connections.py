"""Database connections are given back before a thread waits for something else."""

from __future__ import annotations

from django.db import connections


def release() -> None:
    """Give the connections of this thread back, unless they persist or a transaction is open.

    Django's `close_old_connections` closes them within a transaction, too, and so ends it.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
