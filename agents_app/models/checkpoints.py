"""Checkpoints of unfinished responses (UAP §12.2)."""

from __future__ import annotations

from django.db import models


class Checkpoint(models.Model):
    """The saved progress of an unfinished response (UAP §12.2), deleted when the response ends.

    `state` is the JSON of an agent's state, with only the messages of this response. `output` is
    what had been shown and `usage` what had been used, None if unknown; `step` counts the steps so
    far, and `fence` is the takeover that saved it.
    """

    response_id = models.CharField(primary_key=True, max_length=40)
    state = models.JSONField()
    output = models.JSONField(default=list)
    usage = models.JSONField(null=True, blank=True)
    step = models.PositiveIntegerField()
    version = models.CharField(max_length=20)
    fence = models.PositiveIntegerField()
    updated_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.response_id} after step {self.step}"
