"""Transcripts of stored sounds."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from chat_app.models.chats import Content


class TranscriptState(models.TextChoices):
    """Whether a worker is asked for it, has it, or the server had none."""

    ASKED = "asked"
    DONE = "done"
    NONE = "none"


class Transcript(models.Model):
    """The transcript of a sound, for all who may hear it; deleted with the sound."""

    content = models.OneToOneField(
        Content, models.CASCADE, primary_key=True, related_name="transcript"
    )
    state = models.CharField(max_length=5, choices=TranscriptState.choices)
    text = models.TextField(blank=True)
    # When a worker was asked last.
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.content_id} {self.state}"
