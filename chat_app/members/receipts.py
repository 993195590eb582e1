"""Read receipts: how far each member has read a chat (UAMP §7).

A person whose settings say so reads in private: the marker moves, and only they see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from chat_app.log.entries import NewEvent, append, milliseconds
from chat_app.members.membership import NotAMember, is_member
from chat_app.models import (
    Chat,
    Message,
    ReadReceipt,
)
from chat_app.people.settings import shows_receipts
from uamp import events as ev

if TYPE_CHECKING:
    from django.db.models import QuerySet


def mark_read(*, chat_id: str, user_id: int | None, message_id: str) -> ReadReceipt | None:
    """Move a member's marker forward to a message and publish `message.read`.

    The event of a person who reads in private goes to their own sockets and is no entry of the log.
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
        if shows_receipts(user_id):
            append(chat_id, [NewEvent(type="message.read", payload=uamp.to_dict(event))], at=now)
        else:
            own = fanout.signal_message(
                chat_id=chat_id, frame=uamp.encode(event), to_user_id=user_id
            )
            fanout.publish_on_commit(chat_id, [own])
    return receipt


def receipts_for(chat_id: str, user_id: int) -> QuerySet[ReadReceipt]:
    """Return the markers of a chat that a member sees: their own, and public ones."""
    return ReadReceipt.objects.filter(chat_id=chat_id).exclude(
        ~Q(user_id=user_id), user__person_settings__read_receipts=False
    )
