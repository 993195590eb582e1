"""Chats that begin with the history of another chat."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from chat_app.models.chats import Chat


class ChatOrigin(models.Model):
    """The origin of a chat that a person forked from a message of another chat.

    The copied messages belong to the fork (`Message.copied_from` names the original) and stay as
    they are, except that deleting one in the source deletes the copy.
    """

    chat = models.OneToOneField(Chat, models.CASCADE, primary_key=True, related_name="origin")
    source = models.ForeignKey(Chat, models.SET_NULL, null=True, blank=True, related_name="forks")
    # The source's title at the time, and the message at which the copied history ends.
    source_title = models.CharField(max_length=200, blank=True)
    source_message = models.CharField(max_length=40)
    messages = models.PositiveIntegerField()
    # The first entry of the fork's log after the copied messages.
    seq = models.BigIntegerField()
    # Names of the source's agents that the person may not use.
    agents_left_out = models.JSONField(default=list, blank=True)
    forked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    forked_at = models.DateTimeField(default=timezone.now)
    # A digest of the message and the client's idempotency key; None if it sent none.
    key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 unique if set

    class Meta:
        """A repeated request returns the same chat."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["forked_by", "key"], name="a_fork_is_made_once")
        ]
        indexes: ClassVar = [models.Index(fields=["-forked_at", "-chat"], name="fork_listing")]

    def __str__(self) -> str:
        return f"{self.chat_id} from {self.source_message}"
