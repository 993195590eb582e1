"""Read receipts: how far each member has read a chat (UAMP §7).

Members can choose to read privately: the marker moves, but only they see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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
    ThreadFollower,
)
from chat_app.people.settings import shows_receipts
from uamp import events as ev

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet


REPLIES_MAX: Final = 100
"""The most replies of a thread that are counted."""


def mark_read(*, chat_id: str, user_id: int | None, message_id: str) -> ReadReceipt | None:
    """Move a member's marker forward to a message and publish `message.read`.

    A message that appears only in a thread moves the marker of that thread, for its followers. The
    event of a person who reads privately goes to their own sockets and not into the log. Returns
    None if the marker was already at or past the message, and for threads. Raises NotAMember for
    strangers and for messages of other chats.
    """
    now = timezone.now()
    with transaction.atomic():
        # The chat's lock comes first, as for every writer of its log.
        Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        message = Message.objects.filter(pk=message_id, chat_id=chat_id).first()
        if message is None or user_id is None or not is_member(chat_id, user_id):
            raise NotAMember
        if message.thread_only:
            _mark_thread_read(message, user_id, now)
            return None
        receipt = ReadReceipt.objects.filter(chat_id=chat_id, user_id=user_id).first()
        if receipt is not None and receipt.seq >= message.seq:
            return None
        receipt = receipt or ReadReceipt(chat_id=chat_id, user_id=user_id)
        receipt.message, receipt.seq, receipt.read_at = message, message.seq, now
        receipt.save()
        _publish(message, user_id, now)
    return receipt


def _mark_thread_read(message: Message, user_id: int, now: datetime) -> None:
    place = ThreadFollower.objects.filter(
        thread=message.thread, user_id=user_id, read_seq__lt=message.seq
    ).first()
    if place is None:
        return
    news = new_replies(user_id, place.read_seq).filter(thread=message.thread)
    replies = len(news.filter(seq__lte=message.seq).values_list("pk")[:REPLIES_MAX])
    place.read_seq = message.seq
    place.save(update_fields=["read_seq"])
    _publish(message, user_id, now, replies=replies)


def new_replies(user_id: int, read_seq: Any) -> QuerySet[Message]:
    """Return thread-only messages by others after a place, which is a number or an expression."""
    written = Message.objects.filter(
        thread_only=True, deleted_at__isnull=True, replaced_by__isnull=True, seq__gt=read_seq
    )
    return written.filter(Q(sender_user__isnull=True) | ~Q(sender_user=user_id))


def _publish(message: Message, user_id: int, now: datetime, *, replies: int | None = None) -> None:
    chat_id = message.chat_id
    event = ev.MessageRead(
        event_id=new_event_id(),
        timestamp=milliseconds(now),
        chat_id=chat_id,
        message_id=message.pk,
        thread=message.thread if message.thread_only else None,
        replies=replies,
        user_id=str(user_id),
        read_at=milliseconds(now),
    )
    if shows_receipts(user_id):
        append(chat_id, [NewEvent(type="message.read", payload=uamp.to_dict(event))], at=now)
    else:
        signal = fanout.signal_message(
            chat_id=chat_id, frame=uamp.encode(event), to_user_id=user_id, is_watched=True
        )
        fanout.publish_on_commit(chat_id, [signal])


def receipts_for(chat_id: str, user_id: int) -> QuerySet[ReadReceipt]:
    """Return the markers of a chat that a member may see: their own, and public ones."""
    return ReadReceipt.objects.filter(chat_id=chat_id).exclude(
        ~Q(user_id=user_id), user__person_settings__read_receipts=False
    )
