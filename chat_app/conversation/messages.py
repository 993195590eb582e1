"""The message that a member acts on, under the lock of its chat."""

from __future__ import annotations

from chat_app.conversation.errors import MessageNotFound
from chat_app.log.entries import lock_chats
from chat_app.members.membership import is_member
from chat_app.models import Message


def locked_message(
    *, chat_id: str, message_id: str, user_id: int | None, deleted: bool = False
) -> Message:
    """Return a message of a chat that a person is in, and lock the chat.

    With `deleted` it may be one that was deleted. Raises MessageNotFound. Must run inside a
    transaction.
    """
    # The lock first, as every writer of a log takes it.
    lock_chats([chat_id])
    message = Message.objects.filter(pk=message_id, chat_id=chat_id).first()
    if message is None or not is_member(chat_id, user_id):
        raise MessageNotFound
    if message.deleted_at is not None and not deleted:
        raise MessageNotFound
    return message
