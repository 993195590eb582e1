"""The erasure of messages by age (UAMP_MESSAGE_DAYS). Synchronous.

The entries of all logs are visited in key order, which is chronological, up to the first recent
one. Each message that an entry announced is deleted, and its bodies leave the log, later edits
included; the entries stay, with the digests by which the chain covers them. Visiting an entry twice
changes it once.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils import timezone

from chat_app.conversation.deletion import delete_old
from chat_app.conversation.erasure import without_bodies
from chat_app.log import chain
from chat_app.log.deletions import message_in, without_output
from chat_app.log.entries import lock_chats
from chat_app.models import ChatEvent, LogErasure, Message, MessageRevision

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

ENTRIES: Final = 50
"""How many entries are visited at once: those of one chat share a transaction."""


class OldEntry(NamedTuple):
    """A log entry past the retention period of messages."""

    key: int
    chat_id: str
    seq: int


class ErasedEntries(NamedTuple):
    """The result of an erasure: message count, and the responses whose ends were visited."""

    messages: int
    response_ids: list[str]


def next_entries(before: datetime, *, limit: int) -> list[OldEntry]:
    """Return the next unvisited entries that are older than a time."""
    passed = LogErasure.objects.filter(pk=LogErasure.THE_ROW).values_list("entry", flat=True)
    rows = ChatEvent.objects.filter(pk__gt=passed.first() or 0).order_by("pk")
    entries = []
    columns = ("pk", "chat_id", "seq", "created_at")
    for key, chat_id, seq, at in rows.values_list(*columns)[: min(limit, ENTRIES)]:
        if at >= before:
            break
        entries.append(OldEntry(key, chat_id, seq))
    return entries


def by_chat(entries: Sequence[OldEntry]) -> list[tuple[str, list[int]]]:
    """Group the places of entries by chat."""
    rows = sorted(entries, key=lambda entry: (entry.chat_id, entry.seq))
    return [
        (chat_id, [entry.seq for entry in group])
        for chat_id, group in groupby(rows, key=lambda entry: entry.chat_id)
    ]


def passed(entries: Sequence[OldEntry]) -> None:
    """Record how far the logs were visited, unless another process got further."""
    last = entries[-1].key
    row, _ = LogErasure.objects.get_or_create(pk=LogErasure.THE_ROW)
    LogErasure.objects.filter(pk=row.pk, entry__lt=last).update(
        entry=last, changed_at=timezone.now()
    )


def erase_entries(chat_id: str, places: Sequence[int]) -> ErasedEntries:
    """Delete the messages that entries of a chat announced, and their bodies in the log.

    Must run inside a transaction.
    """
    chat = lock_chats([chat_id]).get(chat_id)
    if chat is None:
        return ErasedEntries(0, [])
    messages = list(Message.objects.filter(chat_id=chat_id, seq__in=places).order_by("seq"))
    count = delete_old(chat, messages)
    revisions = MessageRevision.objects.filter(message__in=messages)
    edits = set(revisions.values_list("seq", flat=True))
    revisions.delete()
    entries = ChatEvent.objects.filter(chat_id=chat_id, seq__in={*places, *edits})
    changed, ended = [], []
    for entry in entries.order_by("seq"):
        if entry.type in ChatEvent.TERMINAL:
            ended.append(entry.response_id)
        payload = _without_words(entry)
        if payload != entry.payload:
            chain.erase(entry, payload)
            changed.append(entry)
    ChatEvent.objects.bulk_update(changed, ["payload", "erased_digest"])
    return ErasedEntries(count, ended)


def _without_words(entry: ChatEvent) -> dict[str, Any]:
    """Return the payload of an entry without the text of its message or answer."""
    payload: dict[str, Any] = entry.payload
    if entry.type in ChatEvent.TERMINAL:
        return without_output(payload)
    said_in = message_in(entry.type, payload)
    return without_bodies(payload, {said_in}) if said_in else payload
