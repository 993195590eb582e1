"""UAMP sessions, responses and tool calls as rows, and the keys that open them (DESIGN D3, D6, D8).

A row in a running state carries a lease and a fence: who holds the fence number writes, and a
sweeper takes over what nobody renewed.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone


def new_session_id() -> str:
    """Return a session id: `sess_` and 128 random bits in hex."""
    return f"sess_{uuid.uuid4().hex}"


def new_response_id() -> str:
    """Return a response id: `resp_` and 128 random bits in hex."""
    return f"resp_{uuid.uuid4().hex}"


class Session(models.Model):
    """A UAMP session (§8.8): who talks, to which agent, in which chat, with what configuration."""

    class Status(models.TextChoices):
        """UAMP §8.8."""

        ACTIVE = "active"
        CLOSED = "closed"

    class Transport(models.TextChoices):
        """How the session was opened."""

        WEBSOCKET = "websocket"
        SSE = "sse", "HTTP + SSE"
        BATCH = "batch"
        DELEGATE = "delegate", "another agent"

    id = models.CharField(primary_key=True, max_length=64, default=new_session_id)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+"
    )
    # `user:<id>` or `anonymous:<random>`; every later access must come from the same one.
    principal = models.CharField(max_length=80, db_index=True)
    api_key = models.ForeignKey(
        "sessions_app.ApiKey", models.SET_NULL, null=True, blank=True, related_name="sessions"
    )
    agent = models.ForeignKey(
        "agents_app.Agent", models.SET_NULL, null=True, blank=True, related_name="+"
    )
    chat = models.ForeignKey("chat_app.Chat", models.CASCADE, related_name="sessions")
    # True when the client named the chat: it then hears the whole chat, not only its own turns.
    chat_scoped = models.BooleanField(default=False)
    # Where the chat's log stood: a stream without Last-Event-ID begins there.
    opened_seq = models.BigIntegerField(default=0)
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    transport = models.CharField(max_length=10, choices=Transport)
    uamp_version = models.CharField(max_length=10)
    config = models.JSONField(default=dict)
    client_capabilities = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    # The last time that a connection had it; a session that nobody resumes is closed (keeper).
    seen_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    close_reason = models.CharField(max_length=100, blank=True)
    # The payment token that its answers are paid with; its secret is not kept.
    payment_token_id = models.CharField(max_length=40, blank=True)
    # The call by which another agent gave the work of this session to its agent.
    parent_call = models.OneToOneField(
        "sessions_app.ToolCall", models.SET_NULL, null=True, blank=True, related_name="child"
    )

    class Meta:
        """Sessions are listed newest first in the admin; the sweep asks for idle ones."""

        permissions: ClassVar = [("end_session", "Can end sessions")]
        indexes: ClassVar = [
            models.Index(fields=["status", "created_at"], name="session_listing"),
            models.Index(fields=["seen_at"], condition=Q(status="active"), name="idle_sessions"),
        ]

    def __str__(self) -> str:
        return self.id


class PendingInput(models.Model):
    """An `input.*` event that came over HTTP and waits for its `response.create`.

    On a socket the connection itself remembers inputs; two HTTP requests may meet two processes.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(Session, models.CASCADE, related_name="pending_inputs")
    event_id = models.CharField(max_length=128)
    payload = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """An event counts once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "event_id"], name="input_counts_once")
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.payload.get('type')}"


class InboundEvent(models.Model):
    """What a client event led to, so that sending it again has no second effect (notes G2)."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(Session, models.CASCADE, related_name="inbound_events")
    event_id = models.CharField(max_length=128)
    sha256 = models.CharField(max_length=64)
    # {"message_id", "response_ids", "first_seq"} of what it started.
    outcome = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Same session and event id: one effect."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "event_id"], name="event_has_one_effect")
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.event_id}"


class Response(models.Model):
    """One agent answer (UAMP §6.5-6.9). It outlives the socket that asked for it."""

    class Status(models.TextChoices):
        """The states of `uamp.state.RESPONSE_TRANSITIONS`."""

        IN_PROGRESS = "in_progress"
        WAITING = "waiting", "waiting for a tool result"
        COMPLETED = "completed"
        CANCELLED = "cancelled"
        FAILED = "failed"

    LIVE: ClassVar = ("in_progress", "waiting")

    id = models.CharField(primary_key=True, max_length=40, default=new_response_id)
    chat = models.ForeignKey("chat_app.Chat", models.CASCADE, related_name="responses")
    session = models.ForeignKey(
        Session, models.SET_NULL, null=True, blank=True, related_name="responses"
    )
    agent = models.ForeignKey("agents_app.Agent", models.CASCADE, related_name="responses")
    # The message that is answered; None when an answer is made again from the conversation.
    message = models.ForeignKey(
        "chat_app.Message", models.SET_NULL, null=True, blank=True, related_name="+"
    )
    status = models.CharField(max_length=12, choices=Status, default=Status.IN_PROGRESS)
    # What this response overrides of its session: instructions, tools, format, model, context.
    request = models.JSONField(default=dict)
    # The answer so far while it runs, flushed a few times a second (DESIGN D2).
    text = models.TextField(blank=True)
    output = models.JSONField(default=list)
    usage = models.JSONField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)
    process = models.CharField(max_length=40, blank=True)
    fence = models.PositiveIntegerField(default=1)
    lease_until = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """A response that ended has no lease; the sweeper asks for expired ones."""

        indexes: ClassVar = [
            models.Index(
                fields=["lease_until"],
                condition=Q(status__in=("in_progress", "waiting")),
                name="live_response_lease",
            ),
            models.Index(
                fields=["chat"],
                condition=Q(status__in=("in_progress", "waiting")),
                name="live_response_of_chat",
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(status__in=("in_progress", "waiting"), finished_at__isnull=True)
                | Q(status__in=("completed", "cancelled", "failed"), finished_at__isnull=False),
                name="an_ended_response_says_when",
            )
        ]

    def __str__(self) -> str:
        return self.id


class ToolCall(models.Model):
    """One tool call of a response. For a long tool the row is the queue (DESIGN D6)."""

    class Kind(models.TextChoices):
        """Who executes it."""

        CLIENT = "client", "the client of the session"
        LONG = "long", "a worker"
        AGENT = "agent", "another agent"

    class Status(models.TextChoices):
        """What an open call waits for; the rest are ends.

        `asking`: for a person to allow it; `waiting`: for the client or another agent; `queued`,
        `running`: for a worker.
        """

        ASKING = "asking", "waiting for approval"
        WAITING = "waiting"
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"
        UNKNOWN = "unknown", "outcome unknown"

    OPEN: ClassVar = ("asking", "waiting", "queued", "running")

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    call_id = models.CharField(max_length=128)
    response = models.ForeignKey(Response, models.CASCADE, related_name="tool_calls")
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=128)
    arguments = models.TextField(default="{}")
    status = models.CharField(max_length=10, choices=Status)
    result = models.TextField(blank=True)
    is_error = models.BooleanField(default=False)
    content_items = models.JSONField(default=list)
    # The last `progress` event (UAMP §6.12), so that a late reader sees where it stands.
    progress = models.JSONField(null=True, blank=True)
    # The lease of a long tool, and its fencing number: one more with every start.
    attempts = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    deadline = models.DateTimeField()
    # The chat in which a person has to allow the call, and who did; with a time only: nobody did.
    asked_in = models.CharField(max_length=40, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """A call id is used once per response; open calls are what sweepers ask for."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["response", "call_id"], name="call_id_is_used_once")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["kind", "status", "lease_until"],
                condition=Q(status__in=("asking", "waiting", "queued", "running")),
                name="open_tool_calls",
            ),
            models.Index(
                fields=["asked_in"], condition=~Q(asked_in=""), name="tool_calls_asked_for"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.call_id})"


class PaymentRequest(models.Model):
    """A response waits to be paid (UAMP §7.2); the wait is a row with a deadline.

    Amounts are smallest units of `asset`. `action` is `topup` for an answer that is under way.
    """

    class Status(models.TextChoices):
        """`withdrawn`: the response ended while it waited."""

        WAITING = "waiting"
        PAID = "paid"
        EXPIRED = "expired"
        WITHDRAWN = "withdrawn"

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    response = models.ForeignKey(Response, models.CASCADE, related_name="payment_requests")
    number = models.PositiveIntegerField()
    # Who is asked: a person, or with none the visitor whose session it is.
    payer = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+"
    )
    asked_in = models.CharField(max_length=40)
    amount = models.BigIntegerField()
    asset = models.CharField(max_length=10)
    reason = models.CharField(max_length=40)
    action = models.CharField(max_length=10, blank=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.WAITING)
    hold_id = models.CharField(max_length=40, blank=True)
    account_id = models.BigIntegerField(null=True, blank=True)
    token_id = models.CharField(max_length=40, blank=True)
    deadline = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """A response asks once under a number; what waits is found by its chat."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["response", "number"], name="payment_is_asked_for_once"
            ),
            models.CheckConstraint(condition=Q(amount__gt=0), name="payment_is_of_something"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["asked_in"], condition=Q(status="waiting"), name="waiting_payments"
            )
        ]

    def __str__(self) -> str:
        return f"{self.response_id} {self.number}"


class ApiKey(models.Model):
    """A key of a program. The prefix is shown, the secret part is kept as a hash only."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16, unique=True)
    sha256 = models.CharField(max_length=64)
    scopes = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Named as people say it."""

        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.prefix}…"

    @staticmethod
    def make_secret() -> str:
        """Return a new key: `uak_`, 8 hex, `_`, 256 random bits; those need no slow hash."""
        return f"uak_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"

    @staticmethod
    def split_secret(secret: str) -> tuple[str, str]:
        """Return the prefix that names the row and the hash that proves the rest."""
        return secret[:12], hashlib.sha256(secret.encode()).hexdigest()
