"""Read receipts: how far each member has read a chat (UAMP §7)."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

import uamp
from chat_app.ids import new_event_id
from chat_app.log.entries import NewEvent, append, milliseconds
from chat_app.members.membership import NotAMember, is_member
from chat_app.models import (
    Chat,
    Message,
    ReadReceipt,
)
from uamp import events as ev


def mark_read(*, chat_id: str, user_id: int | None, message_id: str) -> ReadReceipt | None:
    """Move a member's marker forward to a message and publish `message.read`.

    Returns None when the marker already stood there or further. Raises NotAMember for strangers
    and for messages of other chats.
    """
    now = timezone.now()
    with transaction.atomic():
        # The chat's lock first, as every writer of its log takes it.
        Chat.objects.select_for_update().filter(pk=chat_id).first()
        message = Message.objects.filter(pk=message_id, chat_id=chat_id).first()
        if message is None or user_id is None or not is_member(chat_id, user_id):
            raise NotAMember
        receipt = ReadReceipt.objects.filter(chat_id=chat_id, user_id=user_id).first()
        if receipt is not None and receipt.seq >= message.seq:
            return None
        receipt = receipt or ReadReceipt(chat_id=chat_id, user_id=user_id)
        receipt.message, receipt.seq, receipt.read_at = message, message.seq, now
        receipt.save()
        event = ev.MessageRead(
            event_id=new_event_id(),
            timestamp=milliseconds(now),
            chat_id=chat_id,
            message_id=message_id,
            user_id=str(user_id),
            read_at=milliseconds(now),
        )
        append(chat_id, [NewEvent(type="message.read", payload=uamp.to_dict(event))], at=now)
    return receipt
