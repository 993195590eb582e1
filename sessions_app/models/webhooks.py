"""Webhooks: where states of a response, or events of a chat, are sent to; each sending is a row."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from sessions_app.models.responses import Response
from sessions_app.states import DeliveryState


class Webhook(models.Model):
    """A receiver of the states of one response, or of the log of one chat, under a name.

    `secrets` is encrypted (`webhooks.encryption`). `look_at` is when the server looks for what is
    to be sent, and null while nothing is known to be. Of a response `seen` is the state that was
    sent last, or that it had when its client set the webhook. Of a chat `types` are the events that
    are sent, all if empty, and `queued_seq` is the place of the log up to which they were queued.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    response = models.ForeignKey(
        Response, models.CASCADE, null=True, blank=True, related_name="webhooks", db_index=False
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
    # The name under which limits count what is sent: a principal, or a visitor's address.
    counted_as = models.CharField(max_length=200)
    format = models.CharField(max_length=40)
    # The address of this server, as the client names it.
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
        """A webhook is of a response or of a chat; a response has one of a name."""

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
    """One state or event on its way to a webhook, sent until its receiver takes it.

    The row is the queue: `due_at` is the next attempt, while one is under way the time after which
    it counts as lost. `notify_at` is when workers may be notified again. `body` is that of a
    state, deleted at the end. An event of a chat has its `seq` instead, and is read from the log
    for each attempt; its `state` is the type.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", db_index=False)
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=64)
    seq = models.BigIntegerField(null=True, blank=True)
    body = models.TextField(blank=True)
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
        """Deliveries of a webhook are numbered; those without `finished_at` are to be sent."""

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
            # Whether one before it is unsent is asked of each delivery, beside a long history.
            models.Index(
                fields=["webhook", "number"],
                condition=Q(finished_at__isnull=True),
                name="unsent_of_a_webhook",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.webhook_id} {self.number}"
