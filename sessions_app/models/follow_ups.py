"""Follow-ups: the messages with which a client answered a response that waited for it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from sessions_app.models.responses import Response


class FollowUp(models.Model):
    """One such message, for protocols that show it again.

    `parts` are objects with `text` or `data`. A medium is the place that it has in the result of a
    tool call, as `call_id` and `medium`: its bytes are stored once. `digest` is of the
    id and the parts: a client may use an id again.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    response = models.ForeignKey(
        Response, models.CASCADE, related_name="follow_ups", db_index=False
    )
    message_id = models.CharField(max_length=256)
    parts = models.JSONField(default=list)
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A response has each of its follow-ups once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["response", "digest"], name="follow_up_once")
        ]

    def __str__(self) -> str:
        return self.message_id
