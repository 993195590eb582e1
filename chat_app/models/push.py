"""Notifications while no page is open: browsers and what is sent to each (Web Push), and emails."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chat_app.models.chats import Message


class PushSubscription(models.Model):
    """A browser that receives a person's notifications while they are signed in there.

    The row goes with the browser's session: by signing out, by another password, or by age.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="push_subscriptions"
    )
    # Without a constraint, so that a subscription that arrives during a sign-out cannot fail it.
    session = models.ForeignKey(
        "sessions.Session", models.CASCADE, related_name="+", db_constraint=False
    )
    # A secret: with the address, anyone can send to the browser. Pages and logs show its host only.
    endpoint = models.CharField(max_length=2048)
    endpoint_sha256 = models.CharField(max_length=64, unique=True)
    # The browser's keys (RFC 8291), in base64url.
    p256dh = models.CharField(max_length=87)
    auth = models.CharField(max_length=22)
    # The id of the server's key that the browser accepts messages from.
    server_key = models.CharField(max_length=16)
    # Such as "Firefox on Linux".
    device = models.CharField(max_length=60)
    created_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True, blank=True)
    # Messages in a row that the push service did not take.
    failures = models.PositiveSmallIntegerField(default=0)

    class Meta:
        """Operators list the newest ones."""

        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-id"], name="push_subscription_listing")
        ]

    def __str__(self) -> str:
        return f"{self.device} of {self.user}"


class PushDelivery(models.Model):
    """A message to send to a browser, once. The row is the queue, and stays a while as a record."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    subscription = models.ForeignKey(
        PushSubscription, models.CASCADE, related_name="deliveries", db_index=False
    )
    message = models.ForeignKey(Message, models.CASCADE, related_name="+")
    is_mention = models.BooleanField()
    is_followed = models.BooleanField()
    # Counts the attempts so far, and fences off earlier ones.
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    # During an attempt, the time after which it counts as lost.
    leased_until = models.DateTimeField(null=True, blank=True)
    # Workers are not notified again before this time.
    notify_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)

    class Meta:
        """A browser is sent a message once."""

        verbose_name_plural = "push deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["subscription", "message"], name="a_device_is_sent_a_message_once"
            )
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["due_at"], condition=Q(finished_at__isnull=True), name="due_pushes"
            ),
            models.Index(
                fields=["leased_until"],
                condition=Q(finished_at__isnull=True, leased_until__isnull=False),
                name="pushes_under_way",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} to {self.subscription_id}"


class UnreadMail(models.Model):
    """The time of a person's last mail about unread messages; no row if there was none."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="unread_mail"
    )
    # Messages up to this time were mailed, or were read by then.
    looked_until = models.DateTimeField()
    mailed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"mails to {self.user}"
