"""Transcripts of stored recordings."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from chat_app.models.chats import Content


class TranscriptState(models.TextChoices):
    """The state of a transcript: a worker was asked, has stored it, or the server returned none."""

    ASKED = "asked"
    DONE = "done"
    NONE = "none"


class Transcript(models.Model):
    """The transcript of a recording, for everyone who may play it; deleted with the recording."""

    content = models.OneToOneField(
        Content, models.CASCADE, primary_key=True, related_name="transcript"
    )
    state = models.CharField(max_length=5, choices=TranscriptState.choices)
    text = models.TextField(blank=True)
    # When a worker was last asked.
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.content_id} {self.state}"
