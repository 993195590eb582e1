"""The heartbeat of a process: the row by which others notice within five seconds that it died.

It beats on a thread with its own connection, so that neither a busy event loop nor slow statements
make a living process look dead. A process that was suspended for longer loses its responses, and
its next beat writes the row again.

On SQLite there are no others, and each write would wake the disk: there it beats slowly.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from django.db import connection
from django.db import connections as database_connections

from agents_app import connections
from sessions_app import database

logger = logging.getLogger(__name__)

BEAT_SECONDS: Final = 0.8
SLOW_BEAT_SECONDS: Final = 5.0
STOP_SECONDS: Final = 5.0


class Heartbeat:
    """The thread that renews the lease of a process until it is stopped."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for the last beat."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _beat(self) -> None:
        pause, lease = BEAT_SECONDS, connections.LEASE_SECONDS
        if connection.vendor == "sqlite":
            pause, lease = SLOW_BEAT_SECONDS, 4 * SLOW_BEAT_SECONDS
        try:
            while not self._stopped.is_set():
                try:
                    database.on_persistent_connection(
                        connections.renew, self._process, seconds=lease
                    )
                except Exception:
                    logger.exception("the heartbeat of %s was not written", self._process)
                self._stopped.wait(pause)
        finally:
            database_connections.close_all()
