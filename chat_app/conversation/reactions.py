"""Reactions: emoji that members give messages. Each change is a log entry. Synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from chat_app.conversation.errors import NotAnEmoji, TooManyReactions
from chat_app.conversation.messages import append_act, locked_message
from chat_app.emoji import bare_emoji, is_emoji
from chat_app.ids import new_event_id
from chat_app.log.entries import milliseconds
from chat_app.log.homes import home_event_id
from chat_app.models import Reaction
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection

    from chat_app.models import Message

Reacting = TypeVar("Reacting", ev.ReactionAdded, ev.ReactionRemoved)

LISTED: Final = 20
"""How many of the members who gave an emoji are listed."""


def add_reaction(*, chat_id: str, message_id: str, user_id: int, emoji: str) -> ev.ReactionAdded:
    """Add an emoji reaction of a member to a message.

    An emoji with and without a variation selector is the same, in the form that was given first.
    Returns the event, without `seq` if the member had already given that emoji. Raises
    MessageNotFound, NotAnEmoji and TooManyReactions.
    """
    if not is_emoji(emoji):
        raise NotAnEmoji
    with transaction.atomic():
        locked_message(chat_id=chat_id, message_id=message_id, user_id=user_id)
        event = _event(ev.ReactionAdded, chat_id, message_id, user_id, emoji)
        return _add(event, user_id)


def _add(event: ev.ReactionAdded, user_id: int) -> ev.ReactionAdded:
    """Add a reaction to a message of a locked chat; raises TooManyReactions."""
    message_id = event.message_id
    event = msgspec.structs.replace(event, emoji=_stored_form(message_id, event.emoji))
    reactions = Reaction.objects.filter(message_id=message_id)
    if reactions.filter(user_id=user_id, emoji=event.emoji).exists():
        return event
    if reactions.filter(user_id=user_id).count() >= settings.UAMP_REACTIONS_PER_MEMBER:
        raise TooManyReactions
    is_new = not reactions.filter(emoji=event.emoji).exists()
    kinds = reactions.values("emoji").distinct().count() if is_new else 0
    if kinds >= settings.UAMP_REACTIONS_PER_MESSAGE:
        raise TooManyReactions
    Reaction.objects.create(message_id=message_id, user_id=user_id, emoji=event.emoji)
    return msgspec.structs.replace(event, seq=append_act(event))


def remove_reaction(
    *, chat_id: str, message_id: str, user_id: int, emoji: str
) -> ev.ReactionRemoved:
    """Remove a reaction of the member.

    Returns the event, without `seq` if there was none. Raises MessageNotFound.
    """
    with transaction.atomic():
        locked_message(chat_id=chat_id, message_id=message_id, user_id=user_id)
        event = _event(ev.ReactionRemoved, chat_id, message_id, user_id, emoji)
        return _remove(event, user_id)


def _remove(event: ev.ReactionRemoved, user_id: int) -> ev.ReactionRemoved:
    """Remove a reaction to a message of a locked chat."""
    event = msgspec.structs.replace(event, emoji=_stored_form(event.message_id, event.emoji))
    rows = Reaction.objects.filter(message_id=event.message_id, user_id=user_id, emoji=event.emoji)
    if not rows.delete()[0]:
        return event
    return msgspec.structs.replace(event, seq=append_act(event))


def add_from_home(message: Message, *, user_id: int, emoji: str) -> None:
    """Add a reaction to a message of a locked mirror, as its home says.

    Raises NotAnEmoji and TooManyReactions: the limits are those of this server.
    """
    if not is_emoji(emoji):
        raise NotAnEmoji
    event = _event(ev.ReactionAdded, message.chat_id, message.pk, user_id, emoji)
    _add(msgspec.structs.replace(event, event_id=home_event_id()), user_id)


def remove_from_home(message: Message, *, user_id: int, emoji: str) -> None:
    """Remove a reaction to a message of a locked mirror, as its home says."""
    event = _event(ev.ReactionRemoved, message.chat_id, message.pk, user_id, emoji)
    _remove(msgspec.structs.replace(event, event_id=home_event_id()), user_id)


def reactions_of(message_ids: Collection[str], reader: int) -> dict[str, list[dict[str, Any]]]:
    """Return the reactions to each of these messages, in the order given, in one query.

    Each is {emoji, count, own, users}: how many members gave it, whether the reader did, and the
    first LISTED members.
    """
    alike = ["message_id", "emoji"]
    rows = (
        Reaction.objects.filter(message_id__in=message_ids)
        .annotate(
            place=Window(RowNumber(), partition_by=alike, order_by="id"),
            given=Window(Count("id"), partition_by=alike),
            own=Window(Count("id", filter=Q(user_id=reader)), partition_by=alike),
        )
        .filter(place__lte=LISTED)
        .order_by("id")
    )
    by_message: dict[str, dict[str, dict[str, Any]]] = {}
    columns = ("message_id", "emoji", "user_id", "user__username", "given", "own")
    for message_id, emoji, user_id, name, count, own_count in rows.values_list(*columns):
        new = {"emoji": emoji, "count": count, "own": own_count > 0, "users": []}
        reaction = by_message.setdefault(message_id, {}).setdefault(emoji, new)
        reaction["users"].append({"id": str(user_id), "name": name})
    return {message_id: list(by_emoji.values()) for message_id, by_emoji in by_message.items()}


def _stored_form(message_id: str, emoji: str) -> str:
    """Return an emoji in the form in which the message has it; needs the message locked."""
    emojis = set(Reaction.objects.filter(message_id=message_id).values_list("emoji", flat=True))
    if emoji in emojis:
        return emoji
    return next((other for other in emojis if bare_emoji(other) == bare_emoji(emoji)), emoji)


def _event(
    kind: type[Reacting], chat_id: str, message_id: str, user_id: int, emoji: str
) -> Reacting:
    return kind(
        event_id=new_event_id(),
        timestamp=milliseconds(timezone.now()),
        chat_id=chat_id,
        message_id=message_id,
        emoji=emoji,
        user_id=str(user_id),
    )
