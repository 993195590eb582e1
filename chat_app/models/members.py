"""The members of chats, people and agents, and how agents answer."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chat_app.models.chats import Chat, ChatBudgetPeriod
from chat_app.models.people import NotificationLevel


class ParticipantRole(models.TextChoices):
    """The role of a member; `chat_app.members.rights` lists the rights of each."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class ParticipantReplyTrigger(models.TextChoices):
    """The messages of a chat that an agent answers."""

    MENTION = "mention"
    ALWAYS = "always"
    KEYWORD = "keyword", "a mention or a keyword"
    NEVER = "never"


class ContextScope(models.TextChoices):
    """The messages that an agent sees besides the one that it answers."""

    CHAT = "chat", "all messages"
    LAST = "last", "the last messages"
    ADDRESSED = "addressed", "only messages addressed to it and its answers"


class Participant(models.Model):
    """A person or an agent in a chat. Members who leave keep the row, with `left_at`."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="participants", db_index=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="participations",
    )
    agent = models.ForeignKey(
        "agents_app.Agent", models.CASCADE, null=True, blank=True, related_name="participations"
    )
    role = models.CharField(max_length=10, choices=ParticipantRole, default=ParticipantRole.MEMBER)
    trigger = models.CharField(
        max_length=10, choices=ParticipantReplyTrigger, default=ParticipantReplyTrigger.MENTION
    )
    # For an agent: the words of its `keyword` trigger; None means none.
    keywords = models.JSONField(null=True, blank=True)
    # For an agent: the person who chose its trigger and keywords, if known.
    trigger_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    # For an agent: which messages it sees, and for `last` how many; None means the whole chat.
    context = models.CharField(max_length=10, choices=ContextScope, null=True, blank=True)  # noqa: DJ001 the column was added to a large table
    context_messages = models.PositiveSmallIntegerField(null=True, blank=True)
    # For an agent: the most its answers may cost here, as a decimal string in the currency of
    # prices.
    budget = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 as above
    budget_period = models.CharField(max_length=10, choices=ChatBudgetPeriod, null=True, blank=True)  # noqa: DJ001 as above
    # For an agent: whether its owner added it. Then the members may use it although it is private.
    is_lent = models.BooleanField(default=False, db_default=False)
    # For a person: when they muted the chat.
    muted_at = models.DateTimeField(null=True, blank=True)
    # For a person: which of the chat's messages notify them; None follows their settings.
    notifications = models.CharField(  # noqa: DJ001 as above
        max_length=10, choices=NotificationLevel, null=True, blank=True
    )
    # For a person, in their own list: when they pinned and archived the chat, and whether they
    # marked it as unread. An archived chat is back in the list with its next entry.
    pinned_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    marked_unread = models.BooleanField(default=False, db_default=False)
    joined_at = models.DateTimeField(default=timezone.now)
    left_at = models.DateTimeField(null=True, blank=True)
    # For a person who left: whether they chose to; None if unknown. A person who was removed cannot
    # come back through a link.
    left_freely = models.BooleanField(null=True, blank=True)

    class Meta:
        """A participant is one person or one agent, once in a chat."""

        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(user__isnull=False, agent__isnull=True)
                | Q(user__isnull=True, agent__isnull=False),
                name="participant_is_a_user_or_an_agent",
            ),
            models.UniqueConstraint(fields=["chat", "user"], name="user_is_once_in_a_chat"),
            models.UniqueConstraint(fields=["chat", "agent"], name="agent_is_once_in_a_chat"),
        ]

    def __str__(self) -> str:
        return f"{self.user or self.agent} in {self.chat_id}"


class AgentMention(models.Model):
    """A mention by which one agent asked another; the pair window counts these."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="agent_mentions", db_index=False)
    # The ids of both, the smaller one first: a window counts both directions.
    pair = models.CharField(max_length=81)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        """The recent mentions of a pair in a chat are counted."""

        indexes: ClassVar = [
            models.Index(fields=["chat", "pair", "created_at"], name="agent_mentions_of_a_pair")
        ]

    def __str__(self) -> str:
        return f"{self.pair} in {self.chat_id}"
