"""Threads of replies with their followers, and mentions."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from chat_app.models.chats import Chat, Message


class MessageThread(models.Model):
    """The replies to a message, counted in the transaction that writes each.

    The messages of a thread name its root (`Message.thread`).
    """

    root = models.OneToOneField(
        Message, models.CASCADE, primary_key=True, related_name="thread_counts"
    )
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="threads", db_index=False)
    # Excludes deleted replies and replaced versions.
    replies = models.PositiveIntegerField(default=0)
    last_seq = models.BigIntegerField()
    last_at = models.DateTimeField()
    # The latest repliers, most recent first, as {kind, id, name}; at most THREAD_FACES.
    faces = models.JSONField(default=list)

    class Meta:
        """The threads of a chat are listed by latest reply."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["chat", "last_seq"], name="thread_has_its_last_seq"),
            models.CheckConstraint(condition=Q(replies__gte=0), name="replies_are_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.replies} replies to {self.root_id}"


class MessageMention(models.Model):
    """A person mentioned by a message of a chat, written with the message.

    Messages that appear only in a thread have none: the people they mention follow the thread.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    message = models.ForeignKey(Message, models.CASCADE, related_name="mention_rows")
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    # The message's place in the log.
    seq = models.BigIntegerField()

    class Meta:
        """A person's mentions in a chat are counted from their read marker on."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["chat", "user", "seq"], name="a_message_mentions_a_person_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.message_id} mentions {self.user}"


class ThreadFollower(models.Model):
    """A person who is notified of new replies in a thread, and how far they have read it.

    They wrote its root or a reply, or were mentioned in one.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    thread = models.ForeignKey(
        MessageThread, models.CASCADE, related_name="followers", db_index=False
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    read_seq = models.BigIntegerField(default=0)

    class Meta:
        """A person follows a thread once."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "user"], name="a_thread_is_followed_once")
        ]

    def __str__(self) -> str:
        return f"{self.user} follows {self.thread_id}"
