"""Pins: messages that a chat keeps at hand. Each change is a log entry. Synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from chat_app.conversation.errors import PinsAreTheOwners, TooManyPins
from chat_app.conversation.messages import append_act, locked_message
from chat_app.ids import new_event_id
from chat_app.log.entries import milliseconds
from chat_app.log.homes import home_event_id
from chat_app.members.membership import is_owner
from chat_app.models import Pin
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection

    from chat_app.models import Message

Pinning = TypeVar("Pinning", ev.MessagePinned, ev.MessageUnpinned)


def pin_message(*, chat_id: str, message_id: str, user_id: int | None) -> ev.MessagePinned:
    """Pin a message of a chat.

    Returns the event, without `seq` if it was already pinned. Raises MessageNotFound,
    PinsAreTheOwners and TooManyPins.
    """
    with transaction.atomic():
        _pinnable(chat_id=chat_id, message_id=message_id, user_id=user_id)
        event = _event(ev.MessagePinned, chat_id, message_id, user_id)
        pins = Pin.objects.filter(chat_id=chat_id)
        if pins.filter(pk=message_id).exists():
            return event
        if pins.count() >= settings.UAMP_PINS_PER_CHAT:
            raise TooManyPins
        seq = append_act(event)
        Pin.objects.create(message_id=message_id, chat_id=chat_id, seq=seq, pinned_by_id=user_id)
    return msgspec.structs.replace(event, seq=seq)


def unpin_message(*, chat_id: str, message_id: str, user_id: int | None) -> ev.MessageUnpinned:
    """Unpin a message of a chat.

    Returns the event, without `seq` if it was not pinned. Raises MessageNotFound and
    PinsAreTheOwners.
    """
    with transaction.atomic():
        _pinnable(chat_id=chat_id, message_id=message_id, user_id=user_id)
        event = _event(ev.MessageUnpinned, chat_id, message_id, user_id)
        if not Pin.objects.filter(pk=message_id).delete()[0]:
            return event
        seq = append_act(event)
    return msgspec.structs.replace(event, seq=seq)


def pin_from_home(message: Message, *, user_id: int | None) -> None:
    """Pin a message of a locked mirror, as its home says; raises TooManyPins.

    The limit is that of this server.
    """
    chat_id = message.chat_id
    pins = Pin.objects.filter(chat_id=chat_id)
    existing = pins.filter(pk=message.pk)
    if existing.exists():
        if user_id is not None:
            existing.update(pinned_by_id=user_id)
        return
    if pins.count() >= settings.UAMP_PINS_PER_CHAT:
        raise TooManyPins
    event = _event(ev.MessagePinned, chat_id, message.pk, user_id)
    seq = append_act(msgspec.structs.replace(event, event_id=home_event_id()))
    Pin.objects.create(message=message, chat_id=chat_id, seq=seq, pinned_by_id=user_id)


def unpin_from_home(message: Message, *, user_id: int | None, pinned_by: int | None = None) -> None:
    """Unpin a message of a locked mirror, as its home says; `pinned_by` only that person's pin."""
    pins = Pin.objects.filter(pk=message.pk)
    if pinned_by is not None:
        pins = pins.filter(pinned_by_id=pinned_by)
    if pins.delete()[0]:
        event = _event(ev.MessageUnpinned, message.chat_id, message.pk, user_id)
        append_act(msgspec.structs.replace(event, event_id=home_event_id()))


def pinned_among(message_ids: Collection[str]) -> set[str]:
    """Filter messages to those that are pinned, in one query."""
    return set(Pin.objects.filter(pk__in=message_ids).values_list("pk", flat=True))


def _pinnable(*, chat_id: str, message_id: str, user_id: int | None) -> Message:
    message = locked_message(chat_id=chat_id, message_id=message_id, user_id=user_id)
    if message.chat.only_owners_pin and not is_owner(chat_id, user_id):
        raise PinsAreTheOwners
    return message


def _event(kind: type[Pinning], chat_id: str, message_id: str, user_id: int | None) -> Pinning:
    return kind(
        event_id=new_event_id(),
        timestamp=milliseconds(timezone.now()),
        chat_id=chat_id,
        message_id=message_id,
        user_id="" if user_id is None else str(user_id),
    )
