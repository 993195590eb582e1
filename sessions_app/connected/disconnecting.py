"""Disconnecting daemons, wherever their sockets are. Synchronous.

The rows say which ones, and a signal has each process read its rows at once; a process that misses
it reads them within five seconds (the periodic job "renew agents").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction

from agents_app import connections
from chat_app.log import fanout

if TYPE_CHECKING:
    from collections.abc import Collection

SIGNAL: Final = "daemons.disconnect"
"""The type of the signal to all processes."""


def disconnect(keys: Collection[int]) -> int:
    """End connections (the keys of their rows), and return how many this call ended."""
    with transaction.atomic():
        count = connections.disconnect(keys)
        if count:
            transaction.on_commit(_signal)
    return count


def _signal() -> None:
    fanout.send_from_thread(fanout.PROCESSES_GROUP, {"type": SIGNAL, "response": ""})
