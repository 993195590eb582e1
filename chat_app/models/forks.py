"""Chats that begin with the history of another one."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from chat_app.models.chats import Chat


class ChatOrigin(models.Model):
    """Where a chat comes from that a person forked from a message of another one.

    The copied messages are its own (`Message.copied_from` names the original): they stay as they
    are, but for those that are deleted in the source.
    """

    chat = models.OneToOneField(Chat, models.CASCADE, primary_key=True, related_name="origin")
    source = models.ForeignKey(Chat, models.SET_NULL, null=True, blank=True, related_name="forks")
    # What the source was called then, and the message that the copied history ends with.
    source_title = models.CharField(max_length=200, blank=True)
    source_message = models.CharField(max_length=40)
    messages = models.PositiveIntegerField()
    # The entry of the fork's log that follows the copied messages.
    seq = models.BigIntegerField()
    # Names of the agents of the source that the person may not use.
    agents_left_out = models.JSONField(default=list, blank=True)
    forked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    forked_at = models.DateTimeField(default=timezone.now)
    # A digest of the message and of the key that the client sent; None where it sent none.
    key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 unique where it is there

    class Meta:
        """A request that is sent again leads to the same chat."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["forked_by", "key"], name="a_fork_is_made_once")
        ]
        indexes: ClassVar = [models.Index(fields=["-forked_at", "-chat"], name="fork_listing")]

    def __str__(self) -> str:
        return f"{self.chat_id} from {self.source_message}"
