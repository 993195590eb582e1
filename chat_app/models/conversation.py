"""Rows about messages after they were sent: edits, deletions, reactions and pins."""

from __future__ import annotations

from typing import ClassVar, Final

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chat_app.models.chats import Chat, Message

EMOJI_CHARS: Final = 32


class MessageRevision(models.Model):
    """One text of an edited message: its log entry, and its author.

    Number 0 is the original text. A message that was never edited has no row.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    message = models.ForeignKey(Message, models.CASCADE, related_name="revisions", db_index=False)
    number = models.PositiveIntegerField()
    seq = models.BigIntegerField()
    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The revisions of a message are numbered."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["message", "number"], name="revision_has_its_number")
        ]

    def __str__(self) -> str:
        return f"{self.message_id} revision {self.number}"


class MessageDeletion(models.Model):
    """A deleted message, and who deleted it. Its body is left out of every read of the log."""

    message = models.OneToOneField(
        Message, models.CASCADE, primary_key=True, related_name="deletion"
    )
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="deletions")
    # The response whose answer it was; empty for a message written by a person.
    response_id = models.CharField(max_length=40, blank=True)
    deleted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    deleted_at = models.DateTimeField(default=timezone.now)
    # Whether the copies in forks are certainly deleted too.
    copies_deleted = models.BooleanField(default=False, db_default=False)

    class Meta:
        """The log is also read by response; a sweep looks for copies that were left."""

        indexes: ClassVar = [
            models.Index(fields=["response_id"], name="deleted_answers"),
            models.Index(
                fields=["deleted_at"], condition=Q(copies_deleted=False), name="copies_to_delete"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} deleted"


class Reaction(models.Model):
    """A member's emoji reaction to a message."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    message = models.ForeignKey(Message, models.CASCADE, related_name="reactions", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="reactions")
    emoji = models.CharField(max_length=EMOJI_CHARS)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A member gives a message the same emoji only once."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["message", "emoji", "user"], name="an_emoji_is_given_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.emoji} for {self.message_id}"


class Pin(models.Model):
    """A pinned message, and who pinned it."""

    message = models.OneToOneField(Message, models.CASCADE, primary_key=True, related_name="pin")
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="pins", db_index=False)
    seq = models.BigIntegerField()
    pinned_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    pinned_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The pins of a chat are listed in log order."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["chat", "seq"], name="pin_has_its_own_seq")
        ]

    def __str__(self) -> str:
        return f"{self.message_id} pinned"
