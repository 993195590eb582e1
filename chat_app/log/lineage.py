"""The lineage of copies: which message, and which chat, a fork or a file was taken from.

Forks of forks form a chain. When the rows of a chat in it go, whatever was copied from the chat
names the chat's own original instead, so deletions and lost rights still follow the chain.
Synchronous; needs the transaction in which the rows go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import OuterRef, Subquery

from chat_app.models import ChatOrigin, ContentUse, Message

if TYPE_CHECKING:
    from collections.abc import Collection


def close_gaps(chat_ids: Collection[str]) -> None:
    """Repoint copies made from these chats to the chats' own originals.

    A message that was written in one of them has no other original: its copies keep its id. A fork
    of a chat that is not itself a fork no longer has a source.
    """
    _close_gaps_of_files(chat_ids)
    forks = list(ChatOrigin.objects.filter(source_id__in=chat_ids).exclude(pk__in=chat_ids))
    if not forks:
        return
    between = ChatOrigin.objects.in_bulk(list(chat_ids))
    for fork in forks:
        while fork.source_id in chat_ids:
            _skip(fork, between.get(fork.source_id))
        fork.save(update_fields=["source", "source_title", "source_message"])
    copies = Message.objects.filter(chat_id__in=chat_ids, copied_from__isnull=False)
    copies_of_them = Message.objects.filter(
        copied_from__isnull=False, copied_from__in=copies.values("pk")
    ).exclude(chat_id__in=chat_ids)
    original = Message.objects.filter(pk=OuterRef("copied_from")).values("copied_from")
    # Each pass skips one chat of the chain.
    while copies_of_them.update(copied_from=Subquery(original)):
        pass


def _close_gaps_of_files(chat_ids: Collection[str]) -> None:
    """Repoint files taken from these chats to the chats that those took them from."""
    taken = ContentUse.objects.filter(source_id__in=chat_ids).exclude(chat_id__in=chat_ids)
    before = ContentUse.objects.filter(
        chat_id=OuterRef("source_id"), content_id=OuterRef("content_id")
    )
    # Each pass skips one chat of the chain.
    for _ in chat_ids:
        if not taken.update(source=Subquery(before.values("source"))):
            break


def _skip(fork: ChatOrigin, source: ChatOrigin | None) -> None:
    """Repoint a fork to its source's source; to None if that was not a fork or lost its own."""
    if source is None or source.source_id is None:
        fork.source = None
        return
    message = Message.objects.filter(pk=fork.source_message).values_list("copied_from", flat=True)
    fork.source_id = source.source_id
    fork.source_title = source.source_title
    # A message that the source did not copy comes after all that it did.
    fork.source_message = message.first() or source.source_message
