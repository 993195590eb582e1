"""Previews of pictures."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from chat_app.models.chats import Content


class ContentPreview(models.Model):
    """A picture as browsers can show it, re-encoded by the server; empty if that failed."""

    content = models.OneToOneField(
        Content, models.CASCADE, primary_key=True, related_name="preview"
    )
    data = models.BinaryField()
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"preview of {self.content_id}"
