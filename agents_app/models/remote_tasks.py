"""Answers of remote agents that are in progress on other servers."""

from __future__ import annotations

from django.db import models


class RemoteTask(models.Model):
    """A remote agent's running answer, as its own server names it; deleted when that answer ends.

    `ids` are those of the protocol: a task (A2A), or a session and its response (UAMP). `rounds` is
    the number of the agent's messages in this response before the answer, and `fence` the takeover
    that wrote the row.
    """

    response_id = models.CharField(primary_key=True, max_length=40)
    protocol = models.CharField(max_length=20)
    address = models.TextField()
    ids = models.JSONField()
    rounds = models.PositiveIntegerField()
    fence = models.PositiveIntegerField()
    updated_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.response_id} over {self.protocol}"
