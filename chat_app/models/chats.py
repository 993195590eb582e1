"""Chats, their messages, and the contents shown in them.

Messages, receipts and membership are rows beside the log (`logs`), so they can be read without
replaying it.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from chat_app.ids import new_hex


def new_chat_id() -> str:
    """Return a chat id: `chat_` and 128 random bits in hex."""
    return f"chat_{uuid.uuid4().hex}"


def new_message_id() -> str:
    """Return a message id: `msg_` and 128 random bits in hex."""
    return f"msg_{new_hex()}"


def new_epoch() -> str:
    """Return a new log epoch: a client that holds a different one must start again."""
    return uuid.uuid4().hex[:8]


class ChatKind(models.TextChoices):
    """How a chat was created: by people, or for a session that named none."""

    GROUP = "group", "chat"
    SESSION = "session", "private chat of a session"


class PayerRule(models.TextChoices):
    """The payer of priced answers in a chat."""

    ASKER = "asker", "the person who asks"
    OWNER = "owner", "the chat's owner"
    POOL = "pool", "the chat's pool"
    SPONSOR = "sponsor", "the agent's owner"


class ChatBudgetPeriod(models.TextChoices):
    """The period that the budget of a chat, or of an agent in it, covers."""

    DAY = "day", "each day, in UTC"
    TOTAL = "total", "in total"


class Chat(models.Model):
    """A conversation: its members, and the head of its log."""

    id = models.CharField(primary_key=True, max_length=40, default=new_chat_id)
    title = models.CharField(max_length=200, blank=True)
    description = models.CharField(max_length=2000, null=True, blank=True)  # noqa: DJ001 the column was added to a large table
    # An emoji, a colour as #rrggbb, or content:<id> of a picture; None derives it from the title.
    avatar = models.CharField(max_length=80, null=True, blank=True)  # noqa: DJ001 as above
    kind = models.CharField(max_length=10, choices=ChatKind, default=ChatKind.GROUP)
    payer = models.CharField(max_length=10, choices=PayerRule, default=PayerRule.ASKER)
    # The owner who chose to pay. Only they can choose it, and it ends when they leave.
    payer_user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    # The prices that this owner, or an owner for the pool, agreed to (`members.agreed_prices`).
    agreed_prices = models.JSONField(null=True, blank=True)
    # Whether only owners may pin messages; None means no.
    only_owners_pin = models.BooleanField(null=True, blank=True)
    # Whether agents are currently silenced; None means no.
    agents_quiet = models.BooleanField(null=True, blank=True)
    # How many times in a row agents may ask each other; None means UAMP_AGENT_HOPS.
    agent_hops = models.PositiveSmallIntegerField(null=True, blank=True)
    # The most that all agents together may cost here, as a decimal string in the currency of
    # prices.
    budget = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 as above
    budget_period = models.CharField(max_length=10, choices=ChatBudgetPeriod, null=True, blank=True)  # noqa: DJ001 as above
    epoch = models.CharField(max_length=8, default=new_epoch)
    last_seq = models.BigIntegerField(default=0)
    # The chain hash of the entry chain_seq. If that is not last_seq, an older server wrote the last
    # entry, and the chain starts again.
    chain_hash = models.BinaryField(max_length=32, null=True)
    chain_seq = models.BigIntegerField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    latest_at = models.DateTimeField(default=timezone.now)
    # Pairs of strings that programs attach (OpenAI's Conversations API).
    metadata = models.JSONField(null=True, blank=True)
    # The server that owns its log (`host` or `host:port`); None for a chat of this one.
    home = models.CharField(max_length=260, null=True, blank=True)  # noqa: DJ001 as above
    # When an owner deleted it. It has no members since then, and its rows are deleted soon after.
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Constraints named after the sentence that they keep true."""

        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(last_seq__gte=0), name="chat_seq_is_not_negative")
        ]
        indexes: ClassVar = [
            models.Index(fields=["-latest_at", "-id"], name="chat_listing"),
            models.Index(fields=["kind", "-latest_at", "-id"], name="chat_kinds"),
            # Visitors' chats, for the sweep that deletes them.
            models.Index(
                fields=["latest_at"], condition=Q(created_by__isnull=True), name="chat_visits"
            ),
            # Deleted chats, for the sweep that deletes their rows.
            models.Index(
                fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="deleted_chats"
            ),
        ]
        permissions: ClassVar = [("export_content", "Can export what was said in chats")]

    def __str__(self) -> str:
        return self.title or self.id


class SharedState(models.Model):
    """The current state of a chat; its changes are entries of the log (`uamp.shared_state`)."""

    chat = models.OneToOneField(Chat, models.CASCADE, primary_key=True, related_name="shared_state")
    version = models.BigIntegerField()
    value = models.JSONField(default=dict)

    class Meta:
        """The first change creates the row."""

        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(version__gte=1), name="state_version_counts_changes")
        ]

    def __str__(self) -> str:
        return f"{self.chat_id} {self.version}"


class MessageStatus(models.TextChoices):
    """The way in which a text ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Message(models.Model):
    """One message of a chat in its current state, with its content items (UAMP §8.4, §8.5).

    Its text before an edit or deletion is in the log, whose entries never change.
    """

    id = models.CharField(primary_key=True, max_length=40, default=new_message_id)
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="messages", db_index=False)
    seq = models.BigIntegerField()
    role = models.CharField(max_length=10)
    sender_user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    sender_agent = models.ForeignKey(
        "agents_app.Agent", models.SET_NULL, null=True, blank=True, related_name="+"
    )
    name = models.CharField(max_length=150, blank=True)
    content = models.TextField(blank=True)
    content_items = models.JSONField(default=list)
    response_id = models.CharField(max_length=40, blank=True, db_index=True)
    status = models.CharField(max_length=10, choices=MessageStatus, default=MessageStatus.COMPLETED)
    # The transport or protocol over which it, or the question it answers, arrived (a
    # SessionTransport); empty for messages older than the column.
    transport = models.CharField(max_length=24, blank=True, default="", db_default="")
    created_at = models.DateTimeField(default=timezone.now)
    # The message of the chat that it replies to, if any.
    reply_to = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 the column was added to a large table
    # Versions of a regenerated answer: each later one names the first, and each but the current one
    # names its replacement.
    version_of = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 as above
    replaced_by = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 as above
    # The root of the thread that it belongs to, and whether it appears only there; None means no.
    thread = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 as above
    thread_only = models.BooleanField(null=True, blank=True)
    # In a fork, the source message of which it is a copy; None if it was written here.
    copied_from = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 as above
    # The random text that the hashes of the message cover (docs/log-chain.md); None if it was
    # deleted, or is older than the column.
    salt = models.CharField(max_length=22, null=True, blank=True)  # noqa: DJ001 as above
    # How often it was edited, and when last; None if it never was.
    revision = models.IntegerField(null=True, blank=True)
    edited_at = models.DateTimeField(null=True, blank=True)
    # The row of a deleted message keeps its place and has no text.
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Messages are read by their place in the log."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["chat", "seq"], name="message_has_its_own_seq")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["version_of"],
                condition=Q(version_of__isnull=False),
                name="message_versions",
            ),
            models.Index(
                fields=["thread", "seq"],
                condition=Q(thread__isnull=False),
                name="message_threads",
            ),
            models.Index(
                fields=["copied_from"],
                condition=Q(copied_from__isnull=False),
                name="message_copies",
            ),
            # For operators: the newest messages of all chats.
            models.Index(fields=["-created_at", "-id"], name="message_listing"),
            # For operators: messages that did not end well, which are few.
            models.Index(
                fields=["status", "-created_at", "-id"],
                condition=~Q(status__in=["completed"]),
                name="message_ends",
            ),
            # The messages of a chat without those that only a thread shows.
            models.Index(
                fields=["chat", "seq"],
                condition=Q(thread_only__isnull=True),
                name="message_main_log",
            ),
        ]

    def __str__(self) -> str:
        # Not a word of the text: pages list messages for people who may not read them.
        return f"#{self.seq} {self.name or self.role}"

    @property
    def sender_id(self) -> str:
        """The id of its sender on the wire; `anonymous` if the sender has no account or is gone."""
        if self.sender_agent_id:
            return str(self.sender_agent_id)
        return "anonymous" if self.sender_user_id is None else str(self.sender_user_id)

    @property
    def sender_kind(self) -> str:
        """The kind of its sender on the wire: `agent` or `user`."""
        return "agent" if self.sender_agent_id else "user"


class Content(models.Model):
    """A stored blob. Its id ends `/api/content/<uuid>` and is the `content_id` of UAMP §8.5.4.

    A client may choose its own `content_id`, which is stored as `handle`: it is valid for its owner
    and in the chats in which the content appears, and meaningless elsewhere.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    handle = models.UUIDField(null=True, blank=True, db_index=True)
    sha256 = models.CharField(max_length=64, db_index=True)
    mime_type = models.CharField(max_length=127)
    filename = models.CharField(max_length=255, blank=True)
    size_bytes = models.PositiveBigIntegerField()
    # The most of it that may count towards a model's input (contents.extents); None if not measured
    # yet.
    extent = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    blob = models.FileField(upload_to="%Y/%m", max_length=255)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="contents"
    )
    # The session of an anonymous owner, or the chat in which an agent made the content.
    owner_key = models.CharField(max_length=80, blank=True, db_index=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """A handle identifies one content of its owner."""

        indexes: ClassVar = [models.Index(fields=["-created_at", "-id"], name="content_listing")]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["owner", "handle"], name="a_person_uses_a_handle_once"),
            models.UniqueConstraint(
                fields=["owner_key", "handle"],
                condition=models.Q(owner__isnull=True),
                name="a_visitor_uses_a_handle_once",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def content_id(self) -> str:
        """Its `content_id` on the wire."""
        return str(self.handle or self.id)

    @property
    def is_made_by_agent(self) -> bool:
        """Whether an agent made it, in a chat."""
        return self.owner_id is None and self.owner_key.startswith("chat:")


class ContentUse(models.Model):
    """A chat in which a content appears: its members may read it."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    content = models.ForeignKey(Content, models.CASCADE, related_name="uses", db_index=False)
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="content_uses")
    # How many messages of the chat show it; None if they were never counted.
    shown_by = models.IntegerField(null=True, blank=True)
    # The chat that it was taken from, by a person who does not own it (ADR 56). Without a
    # constraint: processes of the release before delete chats and do not know this column.
    source = models.ForeignKey(
        Chat,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )

    class Meta:
        """A content is listed once per chat."""

        indexes: ClassVar = [
            models.Index(
                fields=["source"], condition=Q(source__isnull=False), name="contents_taken"
            )
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["content", "chat"], name="content_is_once_in_a_chat")
        ]

    def __str__(self) -> str:
        return f"{self.content_id} in {self.chat_id}"


class ReadReceipt(models.Model):
    """The last `seq` that a member has read. It only moves forward."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="receipts", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="receipts")
    message = models.ForeignKey(Message, models.CASCADE, related_name="receipts")
    seq = models.BigIntegerField()
    read_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """One marker per member and chat."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["chat", "user"], name="one_marker_per_member")
        ]

    def __str__(self) -> str:
        return f"{self.user} read {self.chat_id} up to {self.seq}"


class Presence(models.Model):
    """One open socket of a person, who is online while at least one of their sockets is fresh."""

    FRESH_SECONDS: ClassVar = 75

    id = models.CharField(primary_key=True, max_length=40)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="presences")
    process = models.CharField(max_length=40, db_index=True)
    connected_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Presence is queried by person and by freshness."""

        indexes: ClassVar = [
            models.Index(fields=["user", "seen_at"], name="presence_freshness"),
            models.Index(fields=["-seen_at", "-id"], name="presence_listing"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(seen_at__gte=F("connected_at")), name="seen_not_before_connected"
            )
        ]
        verbose_name_plural = "presence"

    def __str__(self) -> str:
        return f"{self.user} since {self.connected_at:%H:%M}"
