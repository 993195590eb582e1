"""The message that a member acts on, under the lock of its chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from chat_app.conversation.errors import MessageNotFound
from chat_app.log.entries import append, lock_chats, salted_entry
from chat_app.members.membership import is_member
from chat_app.models import Message

if TYPE_CHECKING:
    from typing import Any


def locked_message(
    *,
    chat_id: str,
    message_id: str,
    user_id: int | None,
    deleted: bool = False,
) -> Message:
    """Lock a chat that a person is in and return one of its messages.

    `deleted` allows deleted messages. Raises MessageNotFound. Must run inside a transaction.
    """
    # The lock comes first, as for every writer of a log.
    lock_chats([chat_id])
    message = Message.objects.filter(pk=message_id, chat_id=chat_id).first()
    if message is None or not is_member(chat_id, user_id):
        raise MessageNotFound
    if message.deleted_at is not None and not deleted:
        raise MessageNotFound
    return message


def append_act(event: Any) -> int:
    """Append a member's action to the log of the chat that the event names; return its `seq`."""
    entry = salted_entry(event)
    return append(event.chat_id, [entry], at=timezone.now())
