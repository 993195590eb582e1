"""The withdrawal of files from chats that took them from a chat which no longer shows them.

Synchronous. Rows of other chats are deleted after the commit, without their locks (ADR 56).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

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


def finish_taken(chat_ids: Collection[str]) -> None:
    """Withdraw the files taken from chats that show them no more.

    A process that died may have left them, and the rows of the chats may be about to go.
    """
    rows = _without_source().filter(source_id__in=chat_ids)
    if content_ids := set(rows.values_list("content_id", flat=True)):
        withdraw_taken(content_ids)


class LeftFiles:
    """Looks through all taken files, a batch at a time, for those that are to be withdrawn.

    It finds what `finish_taken` misses: a file copied onward while it was being withdrawn. One
    thread at a time calls it.
    """

    def __init__(self) -> None:
        # The source and the key of the last use that was looked at; None at the beginning.
        self._place: tuple[str, int] | None = None

    def withdraw(self, limit: int) -> int:
        """Look at the next uses, then from the beginning again; return how many chats lost one."""
        rows = _taken()
        if self._place is not None:
            source_id, pk = self._place
            rows = rows.filter(Q(source_id__gt=source_id) | Q(pk__gt=pk), source_id__gte=source_id)
        batch = list(
            rows.annotate(is_left=_IS_LEFT)
            .order_by("source_id", "pk")
            .values_list("source_id", "pk", "content_id", "is_left")[:limit]
        )
        self._place = batch[-1][:2] if len(batch) == limit else None
        left = {content_id for _, _, content_id, is_left in batch if is_left}
        return withdraw_taken(left) if left else 0


_SHOWN = ContentUse.objects.filter(chat_id=OuterRef("source_id"), content_id=OuterRef("content_id"))
# A process of the release before deletes a chat without setting `source` to null.
_SOURCE = Chat.objects.filter(pk=OuterRef("source_id"))
_IS_LEFT: Final = Exists(_SOURCE) & ~Exists(_SHOWN)


def _taken() -> QuerySet[ContentUse]:
    return ContentUse.objects.filter(source__isnull=False)


def _without_source() -> QuerySet[ContentUse]:
    """Return the uses of files whose source still exists and does not show them."""
    return _taken().filter(_IS_LEFT)
