"""UAMP sessions, responses and tool calls as rows, and the keys that open them.

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

from sessions_app.states import (
    TOOL_CALL_TRANSITIONS,
    PaymentState,
    ToolCallState,
)
from uamp import (
    RESPONSE_TRANSITIONS,
    SESSION_TRANSITIONS,
    ResponseState,
    SessionState,
    unfinished,
)


def new_session_id() -> str:
    """Return a session id: `sess_` and 128 random bits in hex."""
    return f"sess_{uuid.uuid4().hex}"


def new_response_id() -> str:
    """Return a response id: `resp_` and 128 random bits in hex."""
    return f"resp_{uuid.uuid4().hex}"


class Session(models.Model):
    """A UAMP session (§8.8): who talks, to which agent, in which chat, with what configuration."""

    class Status(models.TextChoices):
        """The states of `uamp.state.SESSION_TRANSITIONS`."""

        IDLE = SessionState.IDLE.value, "idle: no connection holds it"
        ACTIVE = SessionState.ACTIVE.value, "active: a connection holds it"
        CLOSED = SessionState.CLOSED.value

    class Transport(models.TextChoices):
        """How the session was opened."""

        WEBSOCKET = "websocket"
        SSE = "sse", "HTTP + SSE"
        BATCH = "batch"
        DELEGATE = "delegate", "another agent"

    # The states of a session that can be used and resumed.
    OPEN: ClassVar = tuple(state.value for state in unfinished(SESSION_TRANSITIONS))

    id = models.CharField(primary_key=True, max_length=64, default=new_session_id)
    # The id that a client chose: the session's name on the wire, unique among its principal's own.
    client_id = models.CharField(max_length=64, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+"
    )
    # `user:<id>` or `anonymous:<random>`; every later access must come from the same one.
    principal = models.CharField(max_length=80, db_index=True)
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
    # True when the client named the chat: it then hears the whole chat, not only its own turns.
    chat_scoped = models.BooleanField(default=False)
    # Where the chat's log stood: a stream without Last-Event-ID begins there.
    opened_seq = models.BigIntegerField(default=0)
    status = models.CharField(max_length=10, choices=Status, default=Status.IDLE)
    # The connection that took it last: an older one that ends later does not make it idle.
    held_by = models.CharField(max_length=120, blank=True)
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
            models.Index(fields=["-created_at", "-id"], name="session_listing"),
            models.Index(fields=["status", "-created_at", "-id"], name="session_states"),
            models.Index(fields=["transport", "-created_at", "-id"], name="session_transports"),
            models.Index(fields=["agent", "-created_at", "-id"], name="sessions_of_an_agent"),
            models.Index(fields=["status", "seen_at"], name="sessions_seen"),
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
        """Its id on the wire."""
        return self.client_id or self.id


class PendingInput(models.Model):
    """An `input.*` event that came over HTTP and waits for its `response.create`.

    On a socket the connection itself remembers inputs; two HTTP requests may meet two processes.
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
    """What a client event led to, so that sending it again has no second effect."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        Session, models.CASCADE, related_name="inbound_events", db_index=False
    )
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

        QUEUED = ResponseState.QUEUED.value, "queued: no process runs it"
        IN_PROGRESS = ResponseState.IN_PROGRESS.value, "in progress"
        WAITING = ResponseState.WAITING.value, "waiting for a tool, a person or a payment"
        COMPLETED = ResponseState.COMPLETED.value
        CANCELLED = ResponseState.CANCELLED.value
        FAILED = ResponseState.FAILED.value

    LIVE: ClassVar = tuple(state.value for state in unfinished(RESPONSE_TRANSITIONS))

    id = models.CharField(primary_key=True, max_length=40, default=new_response_id)
    chat = models.ForeignKey("chat_app.Chat", models.CASCADE, related_name="responses")
    session = models.ForeignKey(
        Session, models.SET_NULL, null=True, blank=True, related_name="responses"
    )
    agent = models.ForeignKey(
        "agents_app.Agent", models.CASCADE, related_name="responses", db_index=False
    )
    # The message that is answered; None when an answer is made again from the conversation.
    message = models.ForeignKey(
        "chat_app.Message", models.SET_NULL, null=True, blank=True, related_name="+"
    )
    status = models.CharField(max_length=12, choices=Status, default=Status.IN_PROGRESS)
    # What this response overrides of its session: instructions, tools, format, model, context.
    request = models.JSONField(default=dict)
    # The answer so far while it runs, flushed a few times a second.
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
        """Live responses are those without `finished_at`; ended ones are listed newest first."""

        indexes: ClassVar = [
            # SQLite does not see that `status IN (?, ?)` implies a condition on the status.
            models.Index(
                fields=["lease_until"],
                condition=Q(finished_at__isnull=True),
                name="live_response_lease",
            ),
            models.Index(
                fields=["chat"],
                condition=Q(finished_at__isnull=True),
                name="live_response_of_chat",
            ),
            models.Index(
                fields=["session"],
                condition=Q(finished_at__isnull=True),
                name="live_response_of_session",
            ),
            models.Index(fields=["-created_at", "-id"], name="response_listing"),
            models.Index(fields=["status", "-created_at", "-id"], name="response_states"),
            models.Index(fields=["agent", "-created_at", "-id"], name="responses_of_an_agent"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(
                    status__in=("queued", "in_progress", "waiting"), finished_at__isnull=True
                )
                | Q(status__in=("completed", "cancelled", "failed"), finished_at__isnull=False),
                name="an_ended_response_says_when",
            )
        ]

    def __str__(self) -> str:
        return self.id


class ToolCall(models.Model):
    """One tool call of a response. For a long tool the row is the queue."""

    class Kind(models.TextChoices):
        """Who executes it."""

        CLIENT = "client", "the client of the session"
        LONG = "long", "a worker"
        AGENT = "agent", "another agent"

    class Status(models.TextChoices):
        """The states of `sessions_app.states.TOOL_CALL_TRANSITIONS`."""

        ASKING = ToolCallState.ASKING.value, "waiting for approval"
        WAITING = ToolCallState.WAITING.value
        QUEUED = ToolCallState.QUEUED.value
        RUNNING = ToolCallState.RUNNING.value
        DONE = ToolCallState.DONE.value
        FAILED = ToolCallState.FAILED.value
        CANCELLED = ToolCallState.CANCELLED.value
        UNKNOWN = ToolCallState.UNKNOWN.value, "outcome unknown"

    OPEN: ClassVar = tuple(state.value for state in unfinished(TOOL_CALL_TRANSITIONS))

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    call_id = models.CharField(max_length=128)
    response = models.ForeignKey(
        Response, models.CASCADE, related_name="tool_calls", db_index=False
    )
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
        """A call id is used once per response; open calls are those without `finished_at`."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["response", "call_id"], name="call_id_is_used_once"),
            models.CheckConstraint(
                condition=Q(status__in=[state.value for state in ToolCallState]),
                name="tool_call_state_is_known",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["kind", "status", "lease_until"],
                condition=Q(finished_at__isnull=True),
                name="open_tool_calls",
            ),
            models.Index(
                fields=["asked_in"],
                condition=Q(finished_at__isnull=True),
                name="open_tool_calls_asked_for",
            ),
            models.Index(fields=["call_id"], name="tool_call_ids"),
            models.Index(fields=["status", "-id"], name="tool_call_states"),
            models.Index(fields=["kind", "-id"], name="tool_call_kinds"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.call_id})"


class PaymentRequest(models.Model):
    """A response waits to be paid (UAMP §7.2); the wait is a row with a deadline.

    Amounts are smallest units of `asset`. `action` is `topup` for an answer that is under way.
    """

    class Status(models.TextChoices):
        """The states of `sessions_app.states.PAYMENT_TRANSITIONS`."""

        WAITING = PaymentState.WAITING.value
        PAID = PaymentState.PAID.value
        EXPIRED = PaymentState.EXPIRED.value
        WITHDRAWN = PaymentState.WITHDRAWN.value

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    response = models.ForeignKey(
        Response, models.CASCADE, related_name="payment_requests", db_index=False
    )
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
        """A response asks once under a number; those without `decided_at` wait."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["response", "number"], name="payment_is_asked_for_once"
            ),
            models.CheckConstraint(condition=Q(amount__gt=0), name="payment_is_of_something"),
            models.CheckConstraint(
                condition=Q(status__in=[state.value for state in PaymentState]),
                name="payment_state_is_known",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["asked_in"], condition=Q(decided_at__isnull=True), name="waiting_payments"
            ),
            models.Index(
                fields=["deadline"], condition=Q(decided_at__isnull=True), name="payment_deadlines"
            ),
            models.Index(fields=["status", "-id"], name="payment_states"),
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


class Ticket(models.Model):
    """A one-time ticket (access.tickets) that was not used yet; its secret is not kept."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    # What the person showed when they asked for it: a key, or the Django session of a cookie.
    api_key = models.ForeignKey(ApiKey, models.CASCADE, null=True, blank=True, related_name="+")
    web_session = models.CharField(max_length=40, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"of {self.user_id} until {self.expires_at}"
