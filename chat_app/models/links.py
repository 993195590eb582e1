"""Links into a chat: one shows it to anyone, read-only; one lets a signed-in person join it.

The secret part of a link is stored as a hash.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from chat_app.models.chats import Chat
from chat_app.models.members import ParticipantRole


class LinkRow(models.Model):
    """The base of both kinds of link. Once `revoked_at` is set, a link no longer works."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="%(class)ss", db_index=False)
    token_sha256 = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    # None if the server revoked it: its creator left the chat or lost the right.
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        """Only the two kinds have tables."""

        abstract = True

    def __str__(self) -> str:
        return f"link {self.pk} of {self.chat_id}"


class ShareLink(LinkRow):
    """A link to a page that shows a chat to anyone with the link, without signing in."""

    title = models.CharField(max_length=200, blank=True)
    # The last log position that it shows; None includes later messages.
    until_seq = models.BigIntegerField(null=True, blank=True)
    opened_count = models.BigIntegerField(default=0)
    opened_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """The links of a chat are listed in order of creation."""

        indexes: ClassVar = [models.Index(fields=["chat", "-id"], name="share_links_of_a_chat")]


class InviteLink(LinkRow):
    """A link through which a signed-in person joins a chat."""

    role = models.CharField(max_length=10, choices=ParticipantRole, default=ParticipantRole.MEMBER)
    # How many people may join through it; None means any number.
    most_uses = models.PositiveIntegerField(null=True, blank=True)
    used_count = models.PositiveIntegerField(default=0)
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Uses are counted under the lock of the chat and never exceed the limit."""

        indexes: ClassVar = [models.Index(fields=["chat", "-id"], name="invite_links_of_a_chat")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(most_uses__isnull=True) | Q(used_count__lte=F("most_uses")),
                name="invite_link_is_used_up",
            )
        ]
