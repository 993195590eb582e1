"""The rows by which operators see that processes and workers are alive.

A process renews its row every BEAT_SECONDS and deletes it when it stops in order. A row that is not
renewed for `ProcessBeat.LOST_SECONDS` belongs to a process that was killed, hangs, or cannot reach
the database; others delete it after FORGOTTEN_SECONDS.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from sessions_app import database
from sessions_app.models import ProcessBeat, ProcessKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

BEAT_SECONDS: Final = 15.0
FORGOTTEN_SECONDS: Final = 3600.0


def beat(name: str, kind: ProcessKind, queues: Sequence[str] = ()) -> None:
    """Record that a process is alive, and delete the rows of processes lost long ago."""
    now = timezone.now()
    if not ProcessBeat.objects.filter(name=name).update(seen_at=now):
        ProcessBeat.objects.create(
            name=name, kind=kind, queues=list(queues), started_at=now, seen_at=now
        )
    ProcessBeat.objects.filter(seen_at__lt=now - timedelta(seconds=FORGOTTEN_SECONDS)).delete()


def stop(name: str) -> None:
    """Delete the row of a process that stops."""
    ProcessBeat.objects.filter(name=name).delete()


class WorkerBeat:
    """Renews the row of a worker on a thread of its own, from `start` to `stop`."""

    def __init__(self, queues: Sequence[str]) -> None:
        self.name = f"{socket.gethostname()[:40]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._queues = sorted(queues)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="beat", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, which deletes the row."""
        self._stopping.set()
        self._thread.join(BEAT_SECONDS)

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            self._write(beat, ProcessKind.WORKER, self._queues)
            self._stopping.wait(BEAT_SECONDS)
        self._write(stop)

    def _write(self, write: Callable[..., None], *values: object) -> None:
        try:
            database.scoped(write, self.name, *values)
        except (DatabaseError, InterfaceError):
            # The next beat tries again; until then operators see an old one.
            logger.warning("the beat of worker %s was not written", self.name, exc_info=True)
