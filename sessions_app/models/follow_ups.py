"""Follow-ups: messages with which clients answered a response that was waiting for them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from sessions_app.models.responses import Response


class FollowUp(models.Model):
    """A follow-up message, stored for protocols that return it again.

    `parts` are objects with `text` or `data`. A medium is stored once, in the result of a tool
    call; its part refers to it by `call_id` and `medium`. `digest` covers the id and the parts,
    since clients may reuse an id.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    response = models.ForeignKey(
        Response, models.CASCADE, related_name="follow_ups", db_index=False, verbose_name="answer"
    )
    message_id = models.CharField(max_length=256)
    parts = models.JSONField(default=list)
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A response stores each follow-up once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["response", "digest"], name="follow_up_once")
        ]

    def __str__(self) -> str:
        return self.message_id
