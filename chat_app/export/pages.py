"""The messages of a chat in pages by their place, for a reader who is a member at each page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from chat_app.members.membership import is_member
from chat_app.models import Chat, Message

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE: Final = 50
"""So many messages are in memory at once."""


class ExportStopped(Exception):
    """The reader is no longer a member: the file ends without its last line."""


def pages(chat: Chat, user_id: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of a chat up to its last one now, oldest first.

    Raises ExportStopped when the reader has left the chat.
    """
    after = 0
    while after < chat.last_seq:
        if not is_member(chat.pk, user_id):
            raise ExportStopped
        rows = Message.objects.filter(
            chat_id=chat.pk, seq__gt=after, seq__lte=chat.last_seq, replaced_by__isnull=True
        )
        found = list(rows.order_by("seq")[:PAGE])
        if not found:
            return
        yield [_plain(message) for message in found]
        after = found[-1].seq


def _plain(message: Message) -> dict[str, Any]:
    """Return a message as it is now; one that was deleted has its place and no text."""
    return {
        "id": message.pk,
        "seq": message.seq,
        "role": message.role,
        "name": message.name,
        "sender_kind": "agent" if message.sender_agent_id else "user",
        "content": message.content,
        "content_items": message.content_items,
        "created_at": message.created_at,
        "response_id": message.response_id or None,
        "status": message.status,
        "reply_to": message.reply_to,
        "thread": message.thread,
        "also_in_chat": message.thread is not None and not message.thread_only,
        "revision": message.revision or 0,
        "edited_at": message.edited_at,
        "deleted_at": message.deleted_at,
    }
