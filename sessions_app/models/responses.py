"""Responses, and the tool calls and payments that they wait for.

A running response has a lease and a fence. Only the process with the current fence number may
write; the sweep takes over rows whose lease was not renewed.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chat_app.ids import new_hex
from sessions_app.models.sessions import Session
from sessions_app.states import (
    CAUSE_CHARS,
    TOOL_CALL_TRANSITIONS,
    PaymentState,
    ToolCallState,
)
from uamp import RESPONSE_TRANSITIONS, ResponseState, unfinished


def new_response_id() -> str:
    """Return a response id: `resp_` and 128 random bits in hex."""
    return f"resp_{new_hex()}"


_RESPONSE_STATUSES = [
    (ResponseState.QUEUED.value, "queued: no process runs it"),
    (ResponseState.IN_PROGRESS.value, "in progress"),
    (ResponseState.WAITING.value, "waiting for a tool, a person or a payment"),
    (ResponseState.COMPLETED.value, "completed"),
    (ResponseState.CANCELLED.value, "cancelled"),
    (ResponseState.FAILED.value, "failed"),
]


class Response(models.Model):
    """An agent's answer (UAMP §6.5-6.9). It outlives the socket that requested it."""

    LIVE: ClassVar = tuple(state.value for state in unfinished(RESPONSE_TRANSITIONS))

    id = models.CharField(primary_key=True, max_length=40, default=new_response_id)
    chat = models.ForeignKey(
        "chat_app.Chat", models.CASCADE, related_name="responses", db_index=False
    )
    session = models.ForeignKey(
        Session,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="responses",
        db_index=False,
    )
    agent = models.ForeignKey(
        "agents_app.Agent", models.CASCADE, related_name="responses", db_index=False
    )
    # The message being answered; None for a response regenerated from the conversation.
    message = models.ForeignKey(
        "chat_app.Message", models.SET_NULL, null=True, blank=True, related_name="+"
    )
    status = models.CharField(
        max_length=12, choices=_RESPONSE_STATUSES, default=ResponseState.IN_PROGRESS.value
    )
    # Overrides of the session: instructions, tools, format, model, context.
    request = models.JSONField(default=dict)
    # The answer so far, flushed a few times a second while it runs.
    text = models.TextField(blank=True)
    output = models.JSONField(default=list)
    usage = models.JSONField(null=True, blank=True)
    # Estimate for a step that has not been counted yet. It is charged if the process dies.
    usage_under_way = models.JSONField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)
    # The original error message, without credentials. For operators; users read `error`.
    error_cause = models.TextField(null=True, blank=True)  # noqa: DJ001 the column was added to a large table
    # Its requests to models (agents_app.inferences), for operators.
    inferences = models.JSONField(null=True, blank=True)
    process = models.CharField(max_length=40, blank=True)
    fence = models.PositiveIntegerField(default=1)
    # The fence at which no daemon of a connected agent had the question: its first one, or that of
    # an offer to another process; claims move it along. NULL once a daemon may have had it.
    offered_fence = models.PositiveIntegerField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,
        related_name="+",
    )
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Live responses have no `finished_at`; ended ones are listed newest first."""

        indexes: ClassVar = [
            # SQLite does not infer a condition on the status from `status IN (?, ?)`.
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
            # Covers everything that a list of one caller's tasks counts and sorts by.
            models.Index(
                fields=["session", "agent", "status", "finished_at", "created_at", "id"],
                name="responses_of_a_session",
            ),
            models.Index(fields=["chat", "-created_at", "-id"], name="responses_of_a_chat"),
            models.Index(fields=["-created_at", "-id"], name="response_listing"),
            models.Index(fields=["status", "-created_at", "-id"], name="response_states"),
            models.Index(fields=["agent", "-created_at", "-id"], name="responses_of_an_agent"),
            # For deleting a person; few responses are cancelled.
            models.Index(
                fields=["cancel_requested_by"],
                condition=Q(cancel_requested_by__isnull=False),
                name="responses_cancelled_by",
            ),
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
        verbose_name = "answer"
        permissions: ClassVar = [("cancel_response", "Can cancel responses of others")]

    def __str__(self) -> str:
        return self.id


class ToolCallKind(models.TextChoices):
    """Executors of tool calls."""

    CLIENT = "client", "the client of the session"
    LONG = "long", "a worker"
    AGENT = "agent", "another agent"


_TOOL_CALL_STATUSES = [
    (ToolCallState.ASKING.value, "waiting for approval"),
    (ToolCallState.WAITING.value, "waiting"),
    (ToolCallState.QUEUED.value, "queued"),
    (ToolCallState.RUNNING.value, "running"),
    (ToolCallState.DONE.value, "done"),
    (ToolCallState.FAILED.value, "failed"),
    (ToolCallState.CANCELLED.value, "cancelled"),
    (ToolCallState.UNKNOWN.value, "outcome unknown"),
]


class ToolCall(models.Model):
    """A tool call of a response. For long tools, the row is the queue."""

    OPEN: ClassVar = tuple(state.value for state in unfinished(TOOL_CALL_TRANSITIONS))

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    call_id = models.CharField(max_length=128)
    response = models.ForeignKey(
        Response, models.CASCADE, related_name="tool_calls", db_index=False, verbose_name="answer"
    )
    kind = models.CharField(max_length=10, choices=ToolCallKind)
    name = models.CharField(max_length=128)
    arguments = models.TextField(default="{}")
    status = models.CharField(max_length=10, choices=_TOOL_CALL_STATUSES)
    result = models.TextField(blank=True)
    is_error = models.BooleanField(default=False)
    # What kind of failure it was; never text of a person or a tool. "" unless it failed.
    cause = models.CharField(max_length=CAUSE_CHARS, blank=True, default="", db_default="")
    content_items = models.JSONField(default=list)
    # The last `progress` event (UAMP §6.12), for clients that connect late.
    progress = models.JSONField(null=True, blank=True)
    # Number of starts of a long tool. The latest is its fencing number, which holds the lease.
    attempts = models.PositiveIntegerField(default=0)
    # When a worker first started it.
    started_at = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    deadline = models.DateTimeField()
    # The chat in which the call needs approval, and the person who decided. With only a time, the
    # session's visitor decided.
    asked_in = models.CharField(max_length=40, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    # The response that continues an answer which ended at this call (billing.continued_answers).
    continued_by = models.CharField(max_length=40, blank=True, default="", db_default="")

    class Meta:
        """Call ids are unique per response; open calls have no `finished_at`."""

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
        permissions: ClassVar = [("requeue_tool", "Can run tool calls again")]

    def __str__(self) -> str:
        return f"{self.name} ({self.call_id})"


_PAYMENT_STATUSES = [(state.value, state.value.capitalize()) for state in PaymentState]


class PaymentRequest(models.Model):
    """A payment that a response waits for until a deadline (UAMP §7.2).

    Amounts are in the smallest unit of `asset`. `action` is `topup` for an answer already under
    way.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    response = models.ForeignKey(
        Response,
        models.CASCADE,
        related_name="payment_requests",
        db_index=False,
        verbose_name="answer",
    )
    number = models.PositiveIntegerField()
    # The payer who is asked; None means the session's visitor.
    payer = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+"
    )
    asked_in = models.CharField(max_length=40)
    amount = models.BigIntegerField()
    asset = models.CharField(max_length=10)
    reason = models.CharField(max_length=40)
    action = models.CharField(max_length=10, blank=True)
    status = models.CharField(
        max_length=10, choices=_PAYMENT_STATUSES, default=PaymentState.WAITING.value
    )
    hold_id = models.CharField(max_length=40, blank=True)
    account_id = models.BigIntegerField(null=True, blank=True)
    token_id = models.CharField(max_length=40, blank=True)
    deadline = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Numbers are unique per response; waiting requests have no `decided_at`."""

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
            # Waiting requests: those of a chat for its answers, and all of them for operators.
            models.Index(fields=["asked_in", "decided_at"], name="payments_of_a_chat"),
            models.Index(
                fields=["deadline"], condition=Q(decided_at__isnull=True), name="payment_deadlines"
            ),
            models.Index(fields=["status", "-id"], name="payment_states"),
        ]

    def __str__(self) -> str:
        return f"{self.response_id} {self.number}"
