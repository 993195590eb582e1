"""The chats that a person is in, and the titles of chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.db.models import Exists, OuterRef

from chat_app.models import Chat, ChatKind, Participant

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from django.db.models import QuerySet


def chats_of(user_id: int) -> QuerySet[Chat]:
    """Return the chats that a person is in."""
    return Chat.objects.filter(
        pk__in=Participant.objects.filter(user_id=user_id, left_at__isnull=True).values("chat_id")
    )


class ChatMetadata(NamedTuple):
    """A chat: its id, its age, and what programs attached to it."""

    id: str
    created_at: datetime
    metadata: dict[str, str] | None


def metadata_of(chat_id: str, *, reader_id: int) -> ChatMetadata | None:
    """Return a chat that a person is in; None for any other."""
    row = chats_of(reader_id).filter(pk=chat_id).values_list("pk", "created_at", "metadata").first()
    return None if row is None else ChatMetadata(*row)


def changed_since(at: datetime) -> QuerySet[Chat]:
    """Return the chats whose log was written to since a time."""
    return Chat.objects.filter(latest_at__gte=at)


def latest_chats(user_id: int, *, limit: int) -> list[tuple[str, int]]:
    """Return the shared chats that a person is in, as pairs of id and last `seq`.

    The most recently active come first: `limit` of them, and one more if there are more.
    """
    chats = chats_of(user_id).filter(kind=ChatKind.GROUP).order_by("-latest_at", "pk")
    return list(chats.values_list("pk", "last_seq")[: limit + 1])


def titles_of(chat_ids: Collection[str]) -> dict[str, str]:
    """Return the titles of the chats that have one."""
    rows = Chat.objects.filter(pk__in=chat_ids).exclude(title="")
    return dict(rows.values_list("pk", "title"))


def title_and_pin_rule(chat_id: str) -> tuple[str, bool]:
    """Return a chat's title, and whether only its owners pin messages."""
    rows = Chat.objects.filter(pk=chat_id).values_list("title", "only_owners_pin")
    title, only_owners_pin = rows.first() or ("", False)
    return title, bool(only_owners_pin)


def chats_with_presence(user_id: int) -> list[str]:
    """Return the ids of the shared chats whose members are notified of a person's presence.

    Chats of more than UAMP_PRESENCE_MEMBERS people are left out, since every arrival would send a
    frame to everyone online.
    """
    limit = settings.UAMP_PRESENCE_MEMBERS
    people = Participant.objects.filter(
        chat=OuterRef("pk"), user__isnull=False, left_at__isnull=True
    )
    shared = chats_of(user_id).filter(kind=ChatKind.GROUP)
    return list(shared.exclude(Exists(people[limit : limit + 1])).values_list("id", flat=True))
