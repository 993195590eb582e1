"""Appending messages and events to the logs of chats.

Every durable fact is one entry, which gets its `seq` under the chat's row lock. Functions that
append must run in the transaction that writes the fact; delivery happens on commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from django.db import transaction

import uamp
from chat_app.ids import new_event_id
from chat_app.log import chain, fanout
from chat_app.log.history import ends_of_responses
from chat_app.models import (
    Chat,
    ChatEvent,
    Message,
)
from uamp import events as ev
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from collections.abc import Iterable


class NewMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be written; ids and times come from the caller."""

    id: str
    role: uamp.Role
    at: datetime
    name: str = ""
    content: str = ""
    content_items: tuple[uamp.ContentItem, ...] = ()
    sender_user_id: int | None = None
    sender_agent_id: str | None = None
    response_id: str = ""
    status: str = "completed"
    # The event_id of the response.create that sent it, by which its sender recognises it.
    client_event_id: str | None = None
    # The transport of the session that sent it or asked for it.
    transport: str = ""
    # The message of the chat that it replies to, and that message as quoted to agents.
    reply_to: str | None = None
    quote: str = ""
    # The first version of the answer that it replaces.
    version_of: str | None = None
    # The root of its thread, and whether it appears in the chat too.
    thread: str | None = None
    also_in_chat: bool = False
    # In a fork, the source message of which it is a copy.
    copied_from: str | None = None
    # The people of the chat whom it mentions.
    mentions: tuple[int, ...] = ()
    # The people whom it notifies as a reply in a thread.
    followers: tuple[int, ...] = ()
    # The random text that the hashes of the message cover.
    salt: str = msgspec.field(default_factory=chain.new_salt)

    @property
    def is_in_thread_only(self) -> bool:
        """Whether it appears only in its thread, not in the chat."""
        return self.thread is not None and not self.also_in_chat

    @property
    def sender_kind(self) -> str:
        """`agent` if an agent wrote it, `user` otherwise."""
        return "agent" if self.sender_agent_id else "user"

    def event(self, chat_id: str) -> ev.MessageCreated:
        """Return the event that announces it."""
        sender = self.sender_agent_id or (
            str(self.sender_user_id) if self.sender_user_id is not None else "anonymous"
        )
        return ev.MessageCreated(
            event_id=new_event_id(),
            timestamp=milliseconds(self.at),
            chat_id=chat_id,
            mentions=tuple(map(str, self.mentions)) or None,
            followers=tuple(map(str, self.followers)) or None,
            message=ev.ChatMessage(
                id=self.id,
                role=self.role,
                content=self.content,
                content_items=self.content_items or None,
                name=self.name,
                sender_id=sender,
                sender_kind=self.sender_kind,
                created_at=milliseconds(self.at),
                response_id=self.response_id or None,
                status=None if self.status == "completed" else self.status,
                client_event_id=self.client_event_id,
                transport=self.transport or None,
                reply_to=self.reply_to,
                version_of=self.version_of,
                thread=self.thread,
                also_in_chat=self.also_in_chat,
                copied_from=self.copied_from,
                digital_source_type=AI_MADE if self.sender_agent_id else None,
                salt=self.salt,
            ),
        )


class NewEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A durable event to be appended; `message` is set if it announces one."""

    type: str
    payload: dict[str, Any]
    response_id: str = ""
    message: NewMessage | None = None


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one chat that get consecutive places in its log."""

    chat_id: str
    events: Sequence[NewEvent]
    at: datetime


def milliseconds(at: datetime) -> int:
    """Return a time as Unix milliseconds, the unit of `timestamp` (UAMP §4)."""
    return int(at.timestamp() * 1000)


def message_event(chat_id: str, message: NewMessage) -> NewEvent:
    """Return the log entry of a message."""
    return NewEvent(
        type="message.created",
        payload=uamp.to_dict(message.event(chat_id)),
        response_id=message.response_id,
        message=message,
    )


def salted_entry(event: ev.Event, *, response_id: str = "") -> NewEvent:
    """Return the log entry of an event from which a text or a name may be deleted later."""
    payload = {**uamp.to_dict(event), "salt": chain.new_salt()}
    return NewEvent(type=uamp.type_of(event), payload=payload, response_id=response_id)


def lock_chats(chat_ids: Iterable[str]) -> dict[str, Chat]:
    """Lock chats in the order of their ids, before any other lock of a log.

    Must run inside a transaction. On SQLite the transaction itself is the lock.
    """
    locked = Chat.objects.select_for_update(no_key=True).filter(pk__in=set(chat_ids)).order_by("pk")
    return {chat.pk: chat for chat in locked}


def append_many(appends: Sequence[Append]) -> list[int]:
    """Append events to several chats; return the first `seq` of each, in the same order.

    Must run inside a transaction. Chats are locked in the order of their ids, so two callers cannot
    deadlock; several appends to one chat keep their order.
    """
    heads = lock_chats(a.chat_id for a in appends)
    messages: list[Message] = []
    events: list[ChatEvent] = []
    firsts: list[int] = []
    for append in appends:
        chat = heads[append.chat_id]
        firsts.append(chat.last_seq + 1)
        for new in append.events:
            event = ChatEvent(
                chat=chat,
                seq=chat.last_seq + 1,
                type=new.type,
                response_id=new.response_id,
                payload=new.payload,
                created_at=append.at,
            )
            chain.extend(chat, event)
            events.append(event)
            if new.message is not None:
                messages.append(message_row(chat, chat.last_seq, new.message))
        chat.latest_at = append.at
    Message.objects.bulk_create(messages)
    ChatEvent.objects.bulk_create(events)
    Chat.objects.bulk_update(heads.values(), [*chain.HEAD, "latest_at"])
    return firsts


def seq_of_event(chat_id: str, response_id: str, event_id: str) -> int | None:
    """Return the place of a response's terminal event if it is this very one."""
    ends = ends_of_responses(chat_id, [response_id])
    return next((end.seq for end in ends if end.payload["event_id"] == event_id), None)


def message_row(chat: Chat, seq: int, new: NewMessage) -> Message:
    """Return the row of a message at a place of a chat's log; it is not saved."""
    return Message(
        id=new.id,
        chat=chat,
        seq=seq,
        role=new.role,
        sender_user_id=new.sender_user_id,
        sender_agent_id=new.sender_agent_id,
        name=new.name,
        content=new.content,
        content_items=msgspec.to_builtins(new.content_items),
        response_id=new.response_id,
        status=new.status,
        transport=new.transport,
        reply_to=new.reply_to,
        version_of=new.version_of,
        thread=new.thread,
        thread_only=new.is_in_thread_only or None,
        copied_from=new.copied_from,
        salt=new.salt,
        created_at=new.at,
    )


def layer_messages(append: Append, first_seq: int, *, origin: str = "") -> list[dict[str, Any]]:
    """Return the layer messages that publish appended events to a chat."""
    return [
        fanout.event_message(
            chat_id=append.chat_id,
            seq=first_seq + i,
            event_type=new.type,
            response_id=new.response_id,
            frame=fanout.frame_of(new.payload, first_seq + i),
            origin=origin,
        )
        for i, new in enumerate(append.events)
    ]


def append(chat_id: str, events: Sequence[NewEvent], *, at: datetime) -> int:
    """Append events to one chat, publish them on commit, and return the first `seq`."""
    entry = Append(chat_id=chat_id, events=events, at=at)
    with transaction.atomic():
        (first,) = append_many([entry])
        fanout.publish_on_commit(chat_id, layer_messages(entry, first))
    return first
