"""Mirrors: chats whose log belongs to another server, their home (ADR 66).

Only what the home says is appended here, except for what a member of this server does to their own
membership and messages. Callers check that the home may say it. Synchronous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.db import transaction

from chat_app.contents import references
from chat_app.conversation.deletion import delete_in_mirror
from chat_app.conversation.errors import EmptyMessage
from chat_app.conversation.pins import pin_from_home, unpin_from_home
from chat_app.conversation.reactions import add_from_home, remove_from_home
from chat_app.conversation.revisions import revise
from chat_app.log.entries import append, lock_chats, message_event
from chat_app.members.agents.agent_mentions import append_stops
from chat_app.members.chats import append_change, create_chat
from chat_app.members.mentions import keep_mentions, mentioned_people
from chat_app.members.origin_rights import take
from chat_app.members.participants import join, leave
from chat_app.models import Chat, Message, Participant
from chat_app.people.names import clean_title

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.contrib.auth.models import User

    from chat_app.log.entries import NewMessage
    from chat_app.log.history import LoggedEvent
    from chat_app.members.agents.agent_mentions import MentionStop


class ForeignMessage(Exception):
    """The id is that of a message in another chat."""


def make_mirror(*, home: str, title: str, member: User) -> str:
    """Make the mirror of a chat with its first member here, and return its id."""
    with transaction.atomic():
        chat = create_chat(title=title, created_by_id=None, user_ids=[member.pk], agents=[])
        # It has an author, as visitors' chats, which are deleted after a while, have not.
        Chat.objects.filter(pk=chat.pk).update(home=home, created_by=member)
    return chat.pk


def set_chat(
    chat_id: str, *, title: str, only_owners_pin: bool, users: Collection[User]
) -> set[int]:
    """Copy title, rules and members from a mirror's home; return the removed members.

    No one owns a mirror: with `only_owners_pin` no member pins. Needs a transaction.
    """
    chat = lock_chats([chat_id])[chat_id]
    state = (clean_title(title), only_owners_pin)
    if state != (chat.title, bool(chat.only_owners_pin)):
        chat.title, chat.only_owners_pin = state
        chat.save(update_fields=["title", "only_owners_pin"])
        append_change(chat)
    here = Participant.objects.filter(chat=chat, user__isnull=False, left_at__isnull=True)
    members = {row.user_id: row for row in here.select_related("user")}
    for user in users:
        if user.pk not in members:
            join(chat, by=user, user=user)
    out = members.keys() - {user.pk for user in users}
    for user_id in out:
        leave(members[user_id], by=None)
    return {user_id for user_id in out if user_id is not None}


def holds(chat_id: str, message_id: str) -> bool:
    """Return whether a message is in a chat."""
    return Message.objects.filter(pk=message_id, chat_id=chat_id).exists()


def add_message(chat_id: str, new: NewMessage) -> int | None:
    """Append a message of the home with its files; return its place, None if it is there already.

    Needs a transaction. Raises ForeignMessage.
    """
    chat = lock_chats([chat_id])[chat_id]
    existing_chat = Message.objects.filter(pk=new.id).values_list("chat_id", flat=True).first()
    if existing_chat is not None:
        if existing_chat != chat.pk:
            raise ForeignMessage
        return None
    people = mentioned_people(chat_id, new.content, author=new.sender_user_id)
    new = msgspec.structs.replace(new, mentions=people)
    seq = append(chat_id, [message_event(chat_id, new)], at=new.at)
    keep_mentions(chat_id, new, seq)
    ids = references.content_ids(new.content_items)
    take(chat_id, ids, taken_by=new.sender_user_id, shown=ids)
    return seq


def edit(chat_id: str, message_id: str, content: str, *, author_id: int | None) -> None:
    """Change a message as its author did at the home; needs a transaction.

    No one else can, the home included: messages of a person here are changed here.
    """
    message = _locked(chat_id, message_id)
    if message is None or message.content == content or message.sender_user_id != author_id:
        return
    try:
        revise(message, content)
    except EmptyMessage:
        return


def react(chat_id: str, message_id: str, *, user_id: int, emoji: str, given: bool) -> None:
    """Add or remove a reaction as the home says; needs a transaction.

    Raises NotAnEmoji and TooManyReactions.
    """
    message = _locked(chat_id, message_id)
    if message is not None:
        (add_from_home if given else remove_from_home)(message, user_id=user_id, emoji=emoji)


def pin(chat_id: str, message_id: str, *, user_id: int | None, given: bool) -> None:
    """Pin or unpin a message as the home says; needs a transaction. Raises TooManyPins."""
    message = _locked(chat_id, message_id)
    if message is not None:
        (pin_from_home if given else unpin_from_home)(message, user_id=user_id)


def stop(chat_id: str, message_id: str, stop: MentionStop) -> None:
    """Append why an agent of the home does not answer a message; needs a transaction."""
    if _locked(chat_id, message_id) is not None:
        append_stops(chat_id, [stop], message_id=message_id)


def take_back(chat_id: str, entry: LoggedEvent) -> None:
    """Undo what a member did here and the home has refused: a reaction, or a change of a pin."""
    payload = entry.payload
    user_id = int(payload["user_id"])
    with transaction.atomic():
        message = _locked(chat_id, payload["message_id"])
        if message is None:
            return
        match entry.type:
            case "reaction.added":
                remove_from_home(message, user_id=user_id, emoji=payload["emoji"])
            case "message.pinned":
                unpin_from_home(message, user_id=user_id, pinned_by=user_id)
            case "message.unpinned":
                pin_from_home(message, user_id=user_id)


def _locked(chat_id: str, message_id: str) -> Message | None:
    """Lock a mirror and return one of its messages; None if it does not exist or was deleted."""
    lock_chats([chat_id])
    return Message.objects.filter(pk=message_id, chat_id=chat_id, deleted_at=None).first()


def delete(chat_id: str, message_id: str) -> None:
    """Delete a message that was deleted at the home; needs a transaction."""
    message = _locked(chat_id, message_id)
    if message is not None:
        delete_in_mirror(message)
