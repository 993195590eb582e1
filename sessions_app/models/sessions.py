"""Sessions, and the record of their client events (UAMP §8.8)."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from uamp import SESSION_TRANSITIONS, SessionState, unfinished


def new_session_id() -> str:
    """Return a session id: `sess_` and 128 random bits in hex."""
    return f"sess_{uuid.uuid4().hex}"


class SessionTransport(models.TextChoices):
    """The way a session was opened: by a native transport, an agent or another protocol."""

    WEBSOCKET = "websocket"
    SSE = "sse", "HTTP + SSE"
    BATCH = "batch"
    REST = "rest", "REST"
    DELEGATE = "delegate", "another agent"
    COMPLETIONS = "completions", "Chat Completions"
    RESPONSES = "responses", "Responses"
    ANTHROPIC = "anthropic", "Anthropic Messages"
    REALTIME = "realtime", "Realtime"
    AG_UI = "ag-ui", "AG-UI"
    A2A = "a2a", "A2A"
    ACP = "acp", "ACP"
    ENVELOPE = "envelope", "Signed envelope"


_STATUSES = [
    (SessionState.IDLE.value, "idle: no connection holds it"),
    (SessionState.ACTIVE.value, "active: a connection holds it"),
    (SessionState.CLOSED.value, "closed"),
]


class Session(models.Model):
    """A UAMP session (§8.8): its principal, agent, chat and configuration."""

    # The states in which a session can be used and resumed.
    OPEN: ClassVar = tuple(state.value for state in unfinished(SESSION_TRANSITIONS))

    id = models.CharField(primary_key=True, max_length=64, default=new_session_id)
    # The client's own id for the session on the wire, unique per principal.
    client_id = models.CharField(max_length=64, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+"
    )
    # See `access.principal`. Every later access must come from the same principal.
    principal = models.CharField(max_length=80)
    api_key = models.ForeignKey(
        "sessions_app.ApiKey", models.SET_NULL, null=True, blank=True, related_name="sessions"
    )
    agent = models.ForeignKey(
        "agents_app.Agent",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    chat = models.ForeignKey("chat_app.Chat", models.CASCADE, related_name="sessions")
    # True if the client named the chat. It then receives the whole chat, not only its own turns.
    chat_scoped = models.BooleanField(default=False)
    # `Chat.last_seq` at opening: a stream without Last-Event-ID starts there.
    opened_seq = models.BigIntegerField(default=0)
    # Created by a request without a session or chat. It is deleted with its private chat after
    # UAMP_EPHEMERAL_HOURS, unless its id is used again (process.retention).
    ephemeral = models.BooleanField(default=False, db_default=False)
    status = models.CharField(max_length=10, choices=_STATUSES, default=SessionState.IDLE.value)
    # The last connection to attach. The end of an older one does not make the session idle.
    held_by = models.CharField(max_length=120, blank=True)
    transport = models.CharField(max_length=24, choices=SessionTransport)
    uamp_version = models.CharField(max_length=10)
    config = models.JSONField(default=dict)
    client_capabilities = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    # When a connection last held it. A session that is not resumed is closed (retention).
    seen_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    close_reason = models.CharField(max_length=100, blank=True)
    # The payment token that pays for its answers; the secret is not stored.
    payment_token_id = models.CharField(max_length=40, blank=True)
    # The call with which another agent delegated work to this session's agent.
    parent_call = models.OneToOneField(
        "sessions_app.ToolCall", models.SET_NULL, null=True, blank=True, related_name="child"
    )

    class Meta:
        """The admin lists sessions newest first; the sweep reads idle ones."""

        permissions: ClassVar = [("end_session", "Can end sessions")]
        indexes: ClassVar = [
            models.Index(fields=["principal", "transport", "id"], name="sessions_of_a_principal"),
            models.Index(fields=["-created_at", "-id"], name="session_listing"),
            models.Index(fields=["status", "-created_at", "-id"], name="session_states"),
            models.Index(fields=["transport", "-created_at", "-id"], name="session_transports"),
            models.Index(fields=["agent", "-created_at", "-id"], name="sessions_of_an_agent"),
            models.Index(fields=["status", "seen_at"], name="sessions_seen"),
            models.Index(
                fields=["seen_at"], condition=Q(ephemeral=True), name="ephemeral_sessions"
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(status__in=[state.value for state in SessionState]),
                name="session_state_is_known",
            ),
            models.UniqueConstraint(
                fields=["principal", "client_id"],
                condition=~Q(client_id=""),
                name="client_id_is_unique_to_its_principal",
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def wire_id(self) -> str:
        """The session's id on the wire."""
        return self.client_id or self.id


class PendingInput(models.Model):
    """An `input.*` event sent over HTTP that waits for its `response.create`.

    A socket keeps inputs in memory, but two HTTP requests may reach two processes.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        Session, models.CASCADE, related_name="pending_inputs", db_index=False
    )
    event_id = models.CharField(max_length=128)
    payload = models.JSONField()
    size_bytes = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """An event counts once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "event_id"], name="input_counts_once")
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.payload.get('type')}"


class InboundEvent(models.Model):
    """The outcome of a client event. Sending the event again has no further effect."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        Session, models.CASCADE, related_name="inbound_events", db_index=False
    )
    event_id = models.CharField(max_length=128)
    sha256 = models.CharField(max_length=64)
    # {"message_id", "response_ids", "first_seq"} of the turn that it started.
    outcome = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Each session and event id has one effect."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "event_id"], name="event_has_one_effect")
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.event_id}"
