"""Messages that wait in the queue while agents are answering in their chat."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from sessions_app.models.sessions import Session
from sessions_app.states import QueuedTurnState

_STATUSES = [
    (QueuedTurnState.QUEUED.value, "queued: answers run in its chat"),
    (QueuedTurnState.STARTING.value, "starting: a process sends it"),
    (QueuedTurnState.FAILED.value, "failed: it was refused"),
]


class QueuedTurn(models.Model):
    """A turn whose message is sent once no answer is running in its chat; the row is then deleted.

    The turn keeps its session and event id, so it starts only once even if the process starting it
    dies.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    chat = models.ForeignKey("chat_app.Chat", models.CASCADE, related_name="queued_turns")
    session = models.ForeignKey(
        Session, models.CASCADE, related_name="queued_turns", db_index=False
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    event_id = models.CharField(max_length=128)
    sha256 = models.CharField(max_length=64)
    # The client's events: its inputs and the `response.create`.
    inputs = models.JSONField(default=list)
    create = models.JSONField(default=dict)
    # The parts of the sender's credential that apply when the turn starts: its budget, which secret
    # of the key it was (Principal.key_version), the agents that it may ask and the chats whose
    # files it may show.
    credential = models.CharField(max_length=40, blank=True, default="", db_default="")
    key_version = models.PositiveIntegerField(null=True, blank=True)
    agents = models.JSONField(null=True, blank=True)
    chats = models.JSONField(null=True, blank=True)
    # Who passed the sender's token on (Principal.actors).
    actors = models.JSONField(default=list, db_default=[], blank=True)
    # How many servers had forwarded the request; an answer that starts later counts them too.
    servers = models.PositiveSmallIntegerField(default=0, db_default=0)
    text = models.TextField(blank=True)
    files = models.PositiveSmallIntegerField(default=0)
    status = models.CharField(max_length=8, choices=_STATUSES, default=QueuedTurnState.QUEUED.value)
    # False: start it alongside the running answers.
    waits = models.BooleanField(default=True)
    code = models.CharField(max_length=40, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    # The earliest next attempt. While the turn is starting: when another process may try.
    due_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """An event is queued once."""

        indexes: ClassVar = [
            models.Index(fields=["due_at"], condition=~Q(status="failed"), name="queued_turns_due"),
            models.Index(fields=["-id"], condition=Q(status="failed"), name="queued_turns_refused"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "event_id"], name="event_is_queued_once"),
            models.CheckConstraint(
                condition=Q(status__in=[state.value for state in QueuedTurnState]),
                name="queued_turn_state_is_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pk} in {self.chat_id}"
