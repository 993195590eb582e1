"""Checkpoints of unfinished responses (UAP §12.2)."""

from __future__ import annotations

from django.db import models


class Checkpoint(models.Model):
    """How far a response has come that is not done (UAP §12.2); it is deleted with its end.

    `state` is the JSON of an agent's state, with the messages of this response only, `output` what
    was shown of it, `step` the number of steps so far and `fence` the takeover that saved it.
    """

    response_id = models.CharField(primary_key=True, max_length=40)
    state = models.JSONField()
    output = models.JSONField(default=list)
    step = models.PositiveIntegerField()
    version = models.CharField(max_length=20)
    fence = models.PositiveIntegerField()
    updated_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.response_id} after step {self.step}"
