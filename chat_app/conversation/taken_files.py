"""The withdrawal of files from chats that took them from a chat which no longer shows them.

Synchronous. Rows of other chats are deleted after the commit, without their locks (ADR 56).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Exists, OuterRef

from chat_app.log.retention import delete_unused
from chat_app.models import Chat, ContentUse

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from django.db.models import QuerySet


def withdraw_taken(content_ids: Collection[UUID]) -> int:
    """Withdraw files from chats whose source no longer shows them; return how many chats lost one.

    That includes chats that took them from those chats.
    """
    count = 0
    rows = _without_source().filter(content_id__in=content_ids)
    with transaction.atomic():
        # Each pass withdraws them from the chats one step further from the source.
        while withdrawn := rows.delete()[0]:
            count += withdrawn
        delete_unused(content_ids)
    return count


def withdraw_left(limit: int) -> int:
    """Look once more for files to withdraw, which a process left behind when it died.

    Returns how many chats lost one.
    """
    rows = _without_source().values_list("content_id", flat=True)[:limit]
    return withdraw_taken(set(rows)) if rows else 0


def finish_taken(chat_ids: Collection[str]) -> None:
    """Withdraw the files taken from chats whose rows are about to go and that show them no more."""
    rows = _without_source().filter(source_id__in=chat_ids)
    if rows:
        withdraw_taken(set(rows.values_list("content_id", flat=True)))


def _without_source() -> QuerySet[ContentUse]:
    """Return the uses of files whose source still exists and does not show them."""
    in_source = ContentUse.objects.filter(
        chat_id=OuterRef("source_id"), content_id=OuterRef("content_id")
    )
    # A process of the release before deletes a chat without setting `source` to null.
    source = Chat.objects.filter(pk=OuterRef("source_id"))
    return ContentUse.objects.filter(Exists(source), source__isnull=False).exclude(
        Exists(in_source)
    )
