"""Deletion of abandoned chats, with the files that only they show."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Exists, OuterRef

from chat_app.log.lineage import close_gaps
from chat_app.models import (
    AgentMention,
    Chat,
    ChatEvent,
    ChatKind,
    Content,
    ContentUse,
    LogCheckpoint,
    Message,
    Participant,
    PayerRule,
    ReadReceipt,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet


def unshared(before: datetime) -> QuerySet[Chat]:
    """Return private session chats that only their creator is in, unused since a time.

    A chat with a title or a payer other than the asker was adopted by a person and is left out. The
    oldest come first.
    """
    others = Participant.objects.filter(chat=OuterRef("pk"), user__isnull=False).exclude(
        user=OuterRef("created_by")
    )
    return (
        Chat.objects.filter(
            Exists(Participant.objects.filter(chat=OuterRef("pk"))),
            kind=ChatKind.SESSION,
            latest_at__lt=before,
            title="",
            payer=PayerRule.ASKER,
        )
        .exclude(Exists(others))
        .order_by("latest_at")
    )


def visits(before: datetime) -> QuerySet[Chat]:
    """Return private session chats without a person, unused since a time, the oldest first."""
    people = Participant.objects.filter(chat=OuterRef("pk"), user__isnull=False)
    return (
        Chat.objects.filter(
            Exists(Participant.objects.filter(chat=OuterRef("pk"))),
            created_by__isnull=True,
            kind=ChatKind.SESSION,
            latest_at__lt=before,
        )
        .exclude(Exists(people))
        .order_by("latest_at")
    )


def deleted() -> QuerySet[Chat]:
    """Return the chats that an owner deleted and whose rows are still there, the oldest first.

    One in which money was paid keeps its row, without members.
    """
    members = Participant.objects.filter(chat=OuterRef("pk"))
    return Chat.objects.filter(Exists(members), deleted_at__isnull=False).order_by("deleted_at")


def empty_chats(chat_ids: Collection[str]) -> None:
    """Delete the contents and members of chats; the rows stay, because others refer to them.

    Forks no longer name them as their source, as if the rows were gone.
    """
    with transaction.atomic():
        close_gaps(chat_ids)
        ids = _shown_in(chat_ids)
        Message.objects.filter(chat_id__in=chat_ids).delete()
        ChatEvent.objects.filter(chat_id__in=chat_ids).delete()
        Chat.objects.filter(pk__in=chat_ids).update(chain_hash=None, chain_seq=None)
        LogCheckpoint.objects.filter(chat_id__in=chat_ids).delete()
        ReadReceipt.objects.filter(chat_id__in=chat_ids).delete()
        ContentUse.objects.filter(chat_id__in=chat_ids).delete()
        Participant.objects.filter(chat_id__in=chat_ids).delete()
        AgentMention.objects.filter(chat_id__in=chat_ids).delete()
        delete_unused(ids)


def delete_chats(chat_ids: Collection[str]) -> int:
    """Delete chats with their rows, and files that nothing else shows or owns.

    Returns the number of chats deleted. Files leave the disk after the commit.
    """
    if not chat_ids:
        return 0
    with transaction.atomic():
        close_gaps(chat_ids)
        ids = _shown_in(chat_ids)
        _, deleted = Chat.objects.filter(pk__in=chat_ids).delete()
        delete_unused(ids)
    return deleted.get("chat_app.Chat", 0)


def _shown_in(chat_ids: Collection[str]) -> list[UUID]:
    uses = ContentUse.objects.filter(chat_id__in=chat_ids)
    return list(uses.values_list("content_id", flat=True))


def delete_unused(content_ids: Collection[UUID]) -> None:
    """Delete the contents that no person owns and no chat shows; needs a transaction."""
    unused = list(Content.objects.filter(pk__in=content_ids, owner__isnull=True, uses__isnull=True))
    Content.objects.filter(pk__in=[content.pk for content in unused]).delete()
    for content in unused:
        transaction.on_commit(partial(content.blob.delete, save=False))
