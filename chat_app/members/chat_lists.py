"""The chats that a person is in, and the titles of chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chat_app.models import Chat, ChatKind, Participant

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.db.models import QuerySet


def chats_of(user_id: int) -> QuerySet[Chat]:
    """Return the chats that a person is in."""
    return Chat.objects.filter(
        pk__in=Participant.objects.filter(user_id=user_id, left_at__isnull=True).values("chat_id")
    )


def titles_of(chat_ids: Collection[str]) -> dict[str, str]:
    """Return the titles of those of these chats that have one."""
    rows = Chat.objects.filter(pk__in=chat_ids).exclude(title="")
    return dict(rows.values_list("pk", "title"))


def group_chats_of(user_id: int) -> list[str]:
    """Return the ids of the shared chats that a person is in."""
    return list(chats_of(user_id).filter(kind=ChatKind.GROUP).values_list("id", flat=True))
