"""Webhooks for the states of a response or the events of a chat, and their deliveries."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from sessions_app.models.responses import Response
from sessions_app.states import DeliveryState


class Webhook(models.Model):
    """A named receiver for the states of one response or the log of one chat.

    `secrets` is encrypted (`webhooks.encryption`). `look_at` is when the server next checks for
    something to send; null if nothing is due.

    For a response, `seen` is the last state sent, or the state it had when the client set the
    webhook. For a chat, `types` are the event types to send (all if empty), and `queued_seq` is the
    last log position that was queued.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    response = models.ForeignKey(
        Response,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="webhooks",
        db_index=False,
        verbose_name="answer",
    )
    chat = models.ForeignKey(
        "chat_app.Chat",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="webhooks",
        db_index=False,
    )
    name = models.CharField(max_length=256)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+"
    )
    principal = models.CharField(max_length=80)
    # The name that rate limits count deliveries under: a principal, or a visitor's address.
    counted_as = models.CharField(max_length=200)
    format = models.CharField(max_length=40)
    # The address by which the client reached this server.
    origin = models.CharField(max_length=300)
    url = models.CharField(max_length=2048)
    secrets = models.TextField(blank=True)
    seen = models.CharField(max_length=64, blank=True)
    types = models.JSONField(default=list, db_default=[], blank=True)
    queued_seq = models.BigIntegerField(default=0, db_default=0)
    sent = models.PositiveIntegerField(default=0)
    look_at = models.DateTimeField(null=True, blank=True)
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_reason = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A webhook belongs to a response or a chat; names are unique per response."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["response", "name"], name="webhook_name_is_unique_to_its_response"
            ),
            models.CheckConstraint(
                condition=Q(response__isnull=True, chat__isnull=False)
                | Q(response__isnull=False, chat__isnull=True),
                name="webhook_of_a_response_or_a_chat",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["chat"], condition=Q(chat__isnull=False), name="webhooks_of_a_chat"
            ),
            models.Index(
                fields=["look_at"], condition=Q(look_at__isnull=False), name="live_webhooks"
            ),
            models.Index(
                fields=["-disabled_at"],
                condition=Q(disabled_at__isnull=False),
                name="disabled_webhooks",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.response_id or self.chat_id} {self.name}"


_DELIVERY_STATUSES = [(state.value, state.value.capitalize()) for state in DeliveryState]


class WebhookDelivery(models.Model):
    """A state or event to deliver to a webhook, retried until the receiver accepts it.

    The row is the queue. `due_at` is the time of the next attempt or, during an attempt, the time
    after which it counts as lost. `notify_at` is when workers may next be notified. `body` holds a
    state and is deleted at the end. A chat event has a `seq` instead and is read from the log for
    each attempt; its `state` is the event type. `payment.refunded` has the `transfer_id` of its
    refund.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", db_index=False)
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=64)
    seq = models.BigIntegerField(null=True, blank=True)
    body = models.TextField(blank=True)
    transfer_id = models.CharField(max_length=40, blank=True, db_default="")
    status = models.CharField(
        max_length=10, choices=_DELIVERY_STATUSES, default=DeliveryState.QUEUED.value
    )
    attempts = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now)
    leased_until = models.DateTimeField(null=True, blank=True)
    notify_at = models.DateTimeField(default=timezone.now)
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    error = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Deliveries are numbered per webhook; unfinished ones have no `finished_at`."""

        verbose_name_plural = "webhook deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["webhook", "number"], name="webhook_delivery_is_numbered"
            ),
            models.CheckConstraint(
                condition=Q(status=DeliveryState.QUEUED.value, finished_at__isnull=True)
                | Q(
                    status__in=[DeliveryState.SENT.value, DeliveryState.FAILED.value],
                    finished_at__isnull=False,
                ),
                name="an_ended_delivery_says_when",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["due_at"],
                condition=Q(finished_at__isnull=True),
                name="queued_webhook_deliveries",
            ),
            models.Index(
                fields=["leased_until"],
                condition=Q(finished_at__isnull=True, leased_until__isnull=False),
                name="webhook_deliveries_under_way",
            ),
            models.Index(fields=["status", "-id"], name="webhook_delivery_states"),
            # Each delivery checks whether an earlier one is unsent; the history may be long.
            models.Index(
                fields=["webhook", "number"],
                condition=Q(finished_at__isnull=True),
                name="unsent_of_a_webhook",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.webhook_id} {self.number}"
