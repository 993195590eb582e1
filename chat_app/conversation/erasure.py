"""The erasure of people, and of old messages: bodies leave the log, its entries stay.

Synchronous. An entry keeps its place, its type and its ids, so that all references stay valid; its
body and its salt go, and the entry keeps the digest by which the chain covers it. Nothing else ever
changes an entry.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from chat_app.conversation.deletion import delete_messages_of
from chat_app.log import chain
from chat_app.log.retention import empty_chats
from chat_app.members.participants import remove_participant
from chat_app.models import (
    Chat,
    ChatEvent,
    Content,
    Message,
    MessageMention,
    MessageRevision,
    Participant,
    PersonSettings,
    Presence,
    Profile,
    PushSubscription,
    Reaction,
    ReadReceipt,
    ThreadFollower,
    UnreadMail,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from uuid import UUID

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

ENTRIES: Final = 500
"""How many entries of a log one transaction reads and writes."""
_BODY: Final = ("content", "content_items", "text")
_NAMES: Final = frozenset(
    {"name", "username", "display_name", "avatar_url", "status", "canceller_name"}
)
_PERSON: Final = frozenset({"id", "user_id", "sender_id", "from", "to", "by"})
_SAID: Final = frozenset({"content_items", "output", "partial_output"})


def chats_of(user_id: int) -> list[str]:
    """Return the chats that a person was ever in, wrote in or created."""
    joined = Participant.objects.filter(user_id=user_id).values_list("chat_id", flat=True)
    written = Message.objects.filter(sender_user_id=user_id).values_list("chat_id", flat=True)
    made = Chat.objects.filter(created_by_id=user_id).values_list("pk", flat=True)
    return sorted({*joined, *written.distinct(), *made})


def chats_alone(user_id: int) -> list[str]:
    """Return the person's chats that no other person was ever in."""
    mine = set(chats_of(user_id))
    others = Participant.objects.filter(chat_id__in=mine, user__isnull=False)
    return sorted(
        mine - set(others.exclude(user_id=user_id).values_list("chat_id", flat=True).distinct())
    )


def rows(chat_ids: Collection[str]) -> QuerySet[Chat]:
    """Return chats as a query."""
    return Chat.objects.filter(pk__in=chat_ids)


def empty_what_is_left(chat_ids: Collection[str]) -> list[str]:
    """Empty the chats that were kept because money was paid in them; return their ids."""
    ids = list(rows(chat_ids).values_list("pk", flat=True))
    empty_chats(ids)
    rows(ids).update(title="", description=None, avatar=None)
    return ids


def leave(chat_id: str, user: User) -> None:
    """Remove a person from a chat, if they are in it."""
    participant = Participant.objects.filter(
        chat_id=chat_id, user=user, left_at__isnull=True
    ).first()
    if participant is not None:
        remove_participant(chat_id=chat_id, removed_by=user, participant_id=participant.pk)


def erase_in_chat(user_id: int, *, chat_id: str, pseudonym: str) -> int:
    """Delete a person's messages in a chat, and erase them and the person's name from its log.

    Returns the number of messages that had a text. What others wrote about the person stays.
    """
    count = delete_messages_of(user_id, chat_id=chat_id)
    written = Message.objects.filter(chat_id=chat_id, sender_user_id=user_id)
    ids = set(written.values_list("pk", flat=True))
    MessageRevision.objects.filter(message_id__in=ids).delete()
    for entries in _entries(chat_id):
        changed = []
        for entry in entries:
            payload = _erased(entry.payload, str(user_id), ids, pseudonym)
            if entry.erased_digest is not None:
                # A process of the release before erased it without its salt.
                payload = chain.without_salt(payload)
            if payload != entry.payload:
                chain.erase(entry, payload)
                changed.append(entry)
        ChatEvent.objects.bulk_update(changed, ["payload", "erased_digest"])
    # The log comes first, because a check reports a name that differs from an unerased entry's.
    written.update(name=pseudonym, content="", content_items=[], salt=None)
    return count


def erase_profile(user_id: int) -> None:
    """Delete a person's profile, settings, receipts, reactions, mentions and files."""
    with transaction.atomic():
        for model in (
            Profile,
            PersonSettings,
            Presence,
            PushSubscription,
            ReadReceipt,
            Reaction,
            MessageMention,
            ThreadFollower,
            UnreadMail,
        ):
            model._default_manager.filter(user_id=user_id).delete()  # noqa: SLF001 documented API
        contents = list(Content.objects.filter(owner_id=user_id))
        Content.objects.filter(pk__in=[content.pk for content in contents]).delete()
        for content in contents:
            transaction.on_commit(partial(content.blob.delete, save=False))


def _entries(chat_id: str) -> Iterator[list[ChatEvent]]:
    after = 0
    while True:
        rows = ChatEvent.objects.filter(chat_id=chat_id, seq__gt=after).order_by("seq")[:ENTRIES]
        entries = list(rows)
        if not entries:
            return
        yield entries
        after = entries[-1].seq


def without_bodies(payload: dict[str, Any], messages: set[str]) -> dict[str, Any]:
    """Return the payload of an entry without the bodies of these messages; names stay."""
    erased: dict[str, Any] = _erased(payload, None, messages, "")
    return erased


def _erased(value: Any, person: str | None, messages: set[str], pseudonym: str) -> Any:
    """Return a part of a payload without the bodies of these messages and the person's name.

    Content of others is left alone: an id in it, such as that of a tool call, is not a person's.
    """
    if isinstance(value, list):
        return [_erased(item, person, messages, pseudonym) for item in value]
    if not isinstance(value, dict):
        return value
    erased = {
        key: item if key in _SAID else _erased(item, person, messages, pseudonym)
        for key, item in value.items()
    }
    if value.get("message_id") in messages or value.get("id") in messages:
        erased.update(
            {key: [] if key == "content_items" else "" for key in _BODY if value.get(key)}
        )
    if person is not None and any(value.get(key) == person for key in _PERSON):
        erased.update(
            {key: pseudonym for key in _NAMES & value.keys() if isinstance(value[key], str)}
        )
    return erased


def content_ids_of(user_id: int) -> list[UUID]:
    """Return the ids of the files that a person stored."""
    return list(Content.objects.filter(owner_id=user_id).values_list("pk", flat=True))
