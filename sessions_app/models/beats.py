"""The server processes and workers that are alive, for operators."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone


class ProcessKind(models.TextChoices):
    """The kinds of processes that show that they are alive."""

    SERVER = "server", "Server"
    WORKER = "worker", "Worker"


class ProcessBeat(models.Model):
    """A running process, which renews `seen_at` regularly and deletes its row when it stops.

    A row not renewed for LOST_SECONDS belongs to a process that was killed or hangs.
    """

    LOST_SECONDS: ClassVar = 60.0

    name = models.CharField(primary_key=True, max_length=120)
    kind = models.CharField(max_length=10, choices=ProcessKind)
    # The queues of a worker.
    queues = models.JSONField(default=list)
    started_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Few rows, which are read together."""

        indexes: ClassVar = [models.Index(fields=["seen_at"], name="process_beats")]
        verbose_name = "process"
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return self.name
