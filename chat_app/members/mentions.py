"""The people whom messages mention, looked up before a message is written. Synchronous.

Unread mentions are counted from the person's read marker; no counter is maintained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chat_app.folding import folded
from chat_app.mentioned import has_sign, mentioned_names
from chat_app.models import MessageMention, Participant

if TYPE_CHECKING:
    from chat_app.log.entries import NewMessage

MENTIONS_MAX: Final = 200
"""The most people that one message mentions; further names are plain text."""


def mentioned_people(chat_id: str, text: str, *, author: int | None = None) -> tuple[int, ...]:
    """Return the ids of the people of a chat whom a text mentions, except its author."""
    if not has_sign(text):
        return ()
    members = Participant.objects.filter(
        chat_id=chat_id, user__isnull=False, left_at__isnull=True
    ).values_list("user__pk", "user__username")
    names = mentioned_names(text, (name for _, name in members))
    ids = sorted(
        user_id for user_id, name in members if folded(name) in names and user_id != author
    )
    return tuple(ids[:MENTIONS_MAX])


def keep_mentions(chat_id: str, message: NewMessage, seq: int) -> None:
    """Record whom a message mentions, in the transaction that writes it at this place."""
    if message.mentions and not message.is_in_thread_only:
        _write(chat_id, message.id, seq, message.mentions)


def change_mentions(chat_id: str, message_id: str, seq: int, people: tuple[int, ...]) -> None:
    """Replace the mentions of a message at a place of the log."""
    forget_mentions(message_id)
    _write(chat_id, message_id, seq, people)


def forget_mentions(*message_ids: str) -> None:
    """Remove the mentions of messages that were deleted or replaced by another version."""
    MessageMention.objects.filter(message_id__in=message_ids).delete()


def _write(chat_id: str, message_id: str, seq: int, people: tuple[int, ...]) -> None:
    MessageMention.objects.bulk_create(
        MessageMention(message_id=message_id, chat_id=chat_id, user_id=user_id, seq=seq)
        for user_id in people
    )
