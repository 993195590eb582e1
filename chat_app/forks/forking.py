"""Forking a chat: creating a new chat that begins with a copy of another chat's history.

Synchronous. The history is read without a lock; one transaction writes the new chat, which is
invisible to everyone else until its commit. The source is neither locked nor changed, and no money
moves.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from uuid import UUID

import msgspec
from django.db import IntegrityError, OperationalError, transaction
from django.utils import timezone

import uamp
from agents_app import selectors as agents
from agents_app.rest.rights import ALL, MissingRight
from chat_app.contents import references
from chat_app.conversation.errors import MessageNotFound
from chat_app.forks.copies import history_until
from chat_app.forks.origins import forked_event
from chat_app.log import chain
from chat_app.log.entries import NewMessage, message_row, milliseconds, salted_entry
from chat_app.members.chats import create_chat
from chat_app.members.membership import is_member
from chat_app.models import (
    Chat,
    ChatEvent,
    ChatOrigin,
    ContentUse,
    Message,
    MessageDeletion,
    Participant,
    ParticipantReplyTrigger,
    ReadReceipt,
    new_message_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django.contrib.auth.models import User

    from agents_app.rest.rights import Rights
    from chat_app.forks.copies import CopiedHistory
    from uamp import events as ev

ATTEMPTS: Final = 3
"""How often reading a history is tried while its messages keep being deleted."""


class _HistoryChanged(Exception):
    """A message was deleted after the history was read."""


class _Agents(NamedTuple):
    """Ids and triggers of agents that become members, and the names of the others.

    `chosen` are the ids of those whose trigger the person has chosen in the source.
    """

    members: list[tuple[str, str]]
    left_out: list[str]
    chosen: set[str]


def fork_chat(
    *,
    chat_id: str,
    message_id: str,
    forked_by: User,
    title: str | None = None,
    key: str | None = None,
    admit: Callable[[int], None],
    rights: Rights = ALL,
) -> ev.ChatForked:
    """Create a chat with another chat's history up to a message; return its event without `seq`.

    Repeating the same `key` for the same message returns the same chat. `admit` is called with the
    bytes of text to be stored, and may raise. `rights` are those of the credential. Raises
    MissingRight for one that is for certain chats, MessageNotFound for strangers and unknown
    messages, ForkTooLarge, and OperationalError if messages of the history keep being deleted.
    """
    if rights.chats is not None:
        raise MissingRight(
            "This credential is restricted to certain chats and cannot create others."
        )
    digest = None if key is None else _digest(message_id, key)
    for attempt in range(ATTEMPTS):
        if (existing := _existing_fork(forked_by, digest)) is not None:
            return forked_event(existing)
        message = Message.objects.filter(
            pk=message_id, chat_id=chat_id, deleted_at__isnull=True
        ).first()
        if message is None or not is_member(chat_id, forked_by.pk):
            raise MessageNotFound
        history = history_until(message)
        if attempt == 0:
            admit(history.size)
        try:
            return _write(message, history, forked_by=forked_by, title=title, digest=digest)
        except _HistoryChanged:
            continue
        except IntegrityError:
            if (existing := _existing_fork(forked_by, digest)) is None:
                raise
            return forked_event(existing)
    raise OperationalError("messages of the history are being deleted")


def _digest(message_id: str, key: str) -> str:
    return hashlib.sha256(f"{message_id}\n{key}".encode()).hexdigest()


def _existing_fork(forked_by: User, digest: str | None) -> ChatOrigin | None:
    if digest is None:
        return None
    rows = ChatOrigin.objects.select_related("chat", "forked_by")
    return rows.filter(forked_by=forked_by, key=digest).first()


@transaction.atomic
def _write(
    message: Message,
    history: CopiedHistory,
    *,
    forked_by: User,
    title: str | None,
    digest: str | None,
) -> ev.ChatForked:
    """Write the new chat, its history and members."""
    source = Chat.objects.get(pk=message.chat_id)
    now = timezone.now()
    usable = _agents_for(source.pk, forked_by)
    chat = create_chat(
        title=source.title if title is None else title,
        created_by_id=forked_by.pk,
        user_ids=[forked_by.pk],
        agents=usable.members,
    )
    # Approvals pay for what the person chose. The trigger in the fork is the agent's own.
    Participant.objects.filter(chat=chat, agent__isnull=False).exclude(
        agent_id__in=usable.chosen
    ).update(trigger_by=None)
    fork = ChatOrigin.objects.create(
        chat=chat,
        source=source,
        source_title=source.title,
        source_message=message.pk,
        messages=len(history.messages),
        seq=len(history.messages) + 1,
        agents_left_out=usable.left_out,
        forked_by=forked_by,
        forked_at=now,
        key=digest,
    )
    _check_unchanged(message, history, forked_by)
    event = forked_event(fork)
    rows = _copies(chat, history)
    Message.objects.bulk_create([row for row, _ in rows])
    entries = [_entry(chat, row.seq, payload, now) for row, payload in rows]
    entries.append(_entry(chat, fork.seq, salted_entry(event).payload, now))
    for entry in entries:
        chain.extend(chat, entry)
    ChatEvent.objects.bulk_create(entries)
    chat.save(update_fields=chain.HEAD)
    _use_contents(chat, source, history)
    # Messages that the person saw in the source are not unread here.
    newest = rows[-1][0]
    ReadReceipt.objects.create(
        chat=chat, user=forked_by, message=newest, seq=newest.seq, read_at=now
    )
    return event


def _check_unchanged(message: Message, history: CopiedHistory, forked_by: User) -> None:
    """Raise if the person left, or a text was deleted, after the history was read."""
    if not is_member(message.chat_id, forked_by.pk):
        raise MessageNotFound
    ids = [original.pk for original in history.messages]
    is_whole = bool(ids) and all(original.deleted_at is None for original in history.messages)
    if not is_whole or MessageDeletion.objects.filter(pk__in=ids).exists():
        raise _HistoryChanged


def _agents_for(chat_id: str, person: User) -> _Agents:
    """Return the agents of a chat as new members, if the person may use them themselves."""
    rows = Participant.objects.filter(
        chat_id=chat_id, agent__isnull=False, left_at__isnull=True
    ).select_related("agent")
    members: list[tuple[str, str]] = []
    left_out: list[str] = []
    for row in rows.order_by("pk"):
        spec = agents.get_agent(str(row.agent_id), viewer=person)
        if spec is None:
            left_out.append(str(row.agent))
        else:
            members.append((spec.id, spec.trigger))
    if len(members) == 1:
        # In a chat with a single agent, every message addresses it.
        members = [(members[0][0], ParticipantReplyTrigger.ALWAYS)]
    triggers = dict(members)
    chosen = {
        str(row.agent_id)
        for row in rows
        if row.trigger_by_id == person.pk and row.trigger == triggers.get(str(row.agent_id))
    }
    return _Agents(members, left_out, chosen)


def _copies(chat: Chat, history: CopiedHistory) -> list[tuple[Message, dict[str, Any]]]:
    """Return the rows of the copied messages, and the event that announces each."""
    ids = {row.pk: new_message_id() for row in history.messages}
    by_first = {history.first_versions[old_id]: new for old_id, new in ids.items()}
    copied = []
    for seq, original in enumerate(history.messages, start=1):
        answered = original.reply_to and history.first_versions.get(original.reply_to)
        new = NewMessage(
            id=ids[original.pk],
            role=cast("uamp.Role", original.role),
            at=original.created_at,
            name=original.name,
            content=original.content,
            content_items=msgspec.convert(original.content_items, tuple[uamp.ContentItem, ...]),
            sender_user_id=original.sender_user_id,
            sender_agent_id=original.sender_agent_id,
            status=original.status,
            transport=original.transport,
            reply_to=by_first.get(answered or ""),
            copied_from=original.pk,
        )
        copied.append((message_row(chat, seq, new), uamp.to_dict(new.event(chat.pk))))
    return copied


def _entry(chat: Chat, seq: int, payload: dict[str, Any], at: datetime) -> ChatEvent:
    return ChatEvent(
        chat=chat,
        seq=seq,
        type=payload["type"],
        payload={**payload, "timestamp": milliseconds(at)},
        created_at=at,
    )


def _use_contents(chat: Chat, source: Chat, history: CopiedHistory) -> None:
    """Give the fork's members access to the contents of the copied messages.

    Contents withdrawn from the source stay withdrawn.
    """
    counts: Counter[UUID] = Counter()
    for original in history.messages:
        if original.content_items:
            items = msgspec.convert(original.content_items, tuple[uamp.ContentItem, ...])
            counts.update({UUID(content_id) for content_id in references.content_ids(items)})
    uses = ContentUse.objects.filter(chat=source, content_id__in=list(counts))
    ContentUse.objects.bulk_create(
        ContentUse(
            chat=chat, content_id=content_id, shown_by=counts[content_id], source_id=taken_from
        )
        for content_id, taken_from in uses.values_list("content_id", "source_id")
    )
