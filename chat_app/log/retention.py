"""Chats that are deleted when no one can read them any more, with the files that only they show."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Exists, OuterRef

from chat_app.models import Chat, Content, ContentUse, Participant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet


def visits(before: datetime) -> QuerySet[Chat]:
    """Return private chats of sessions without a person, unused since a time, the oldest first."""
    people = Participant.objects.filter(chat=OuterRef("pk"), user__isnull=False)
    return (
        Chat.objects.filter(created_by__isnull=True, kind=Chat.Kind.SESSION, latest_at__lt=before)
        .exclude(Exists(people))
        .order_by("latest_at")
    )


def delete_chats(chat_ids: Sequence[str]) -> int:
    """Delete chats with all that belongs to them, and files that nothing else shows or owns.

    Returns how many chats were deleted. Files leave the disk after the commit.
    """
    if not chat_ids:
        return 0
    with transaction.atomic():
        shown = list(
            ContentUse.objects.filter(chat_id__in=chat_ids).values_list("content_id", flat=True)
        )
        _, deleted = Chat.objects.filter(pk__in=chat_ids).delete()
        unused = list(Content.objects.filter(pk__in=shown, owner__isnull=True, uses__isnull=True))
        Content.objects.filter(pk__in=[content.pk for content in unused]).delete()
        for content in unused:
            transaction.on_commit(partial(content.blob.delete, save=False))
    return deleted.get("chat_app.Chat", 0)
