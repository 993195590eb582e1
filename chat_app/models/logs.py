"""The log of a chat: its entries, their erasures, and its signed heads.

`ChatEvent` is authoritative. `seq` is gapless per chat: it is taken from `Chat.last_seq` under the
chat's row lock, in the transaction that writes the fact.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from chat_app.models.chats import Chat


class ChatEvent(models.Model):
    """One durable event of a chat's log, exactly as sent over the wire.

    Written once; only the erasure of a person or of old messages ever changes it.
    """

    TERMINAL: ClassVar = ("response.done", "response.error", "response.cancelled")
    # The types that turns and readers write all the time; the index of types leaves them out.
    COMMON: ClassVar = ("message.created", "message.read", "response.created", "response.done")

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="events", db_index=False)
    seq = models.BigIntegerField()
    type = models.CharField(max_length=40)
    response_id = models.CharField(max_length=40, blank=True)
    payload = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)
    # Its place in the hash chain (`uamp.logs.chain`); None for entries older than the chain.
    chain_hash = models.BinaryField(max_length=32, null=True)
    # The digest of the original payload, if something was erased from the entry.
    erased_digest = models.BinaryField(max_length=32, null=True)

    class Meta:
        """Gapless order per chat; one end per response."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["chat", "seq"], name="event_has_its_own_seq"),
            models.UniqueConstraint(
                fields=["response_id"],
                condition=Q(type__in=("response.done", "response.error", "response.cancelled")),
                name="response_ends_once",
            ),
        ]
        indexes: ClassVar = [
            # For operators: the newest entries of a type, without the types in COMMON.
            models.Index(
                fields=["type", "-id"],
                condition=~Q(
                    type__in=(
                        "message.created", "message.read", "response.created", "response.done",
                    )
                ),
                name="event_types",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.chat_id}#{self.seq} {self.type}"


class LogErasure(models.Model):
    """The extent to which old messages were erased from the logs of all chats. One row.

    `entry` is the key of the last erased entry: keys follow the order of time.
    """

    THE_ROW: ClassVar = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=THE_ROW)
    entry = models.BigIntegerField(default=0)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """The server has one row."""

        verbose_name = "erasure of old logs"
        verbose_name_plural = "erasures of old logs"
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(id=1), name="one_erasure_of_logs"),
        ]

    def __str__(self) -> str:
        return f"until entry {self.entry}"


class LogCheckpoint(models.Model):
    """The signed head of a chat's log at one time (`uamp.logs.checkpoint`). Written once."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="checkpoints", db_index=False)
    seq = models.BigIntegerField()
    note = models.CharField(max_length=2000)
    created_at = models.DateTimeField(default=timezone.now)
    # Its leaf in the tree of the server (`LogTree`); None until it is added.
    leaf = models.BigIntegerField(null=True, blank=True)

    class Meta:
        """At most one per log position, and per leaf of the tree."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["chat", "seq"], name="checkpoint_has_its_own_seq"),
            models.UniqueConstraint(fields=["leaf"], name="checkpoint_has_its_own_leaf"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-id"], name="checkpoint_listing"),
            models.Index(
                fields=["id"], condition=Q(leaf__isnull=True), name="checkpoint_without_leaf"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.chat_id}#{self.seq}"
