"""Writes to chats. Every durable fact is appended to the chat's log in the same transaction.

Functions here are synchronous and open their own transaction unless they say otherwise. They return
what they wrote; delivery happens on commit.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from django.db import transaction
from django.utils import timezone

import uamp
from agents_app.sponsorships import sponsors_of
from chat_app.log import fanout
from chat_app.models import (
    Chat,
    ChatEvent,
    Message,
    Participant,
    ReadReceipt,
)
from chat_app.selectors import ends_of_responses, is_owner, payers_of
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User


class NotAnOwner(Exception):
    """A member of the chat who does not own it."""


class NoSponsor(Exception):
    """No agent of the chat has an owner who pays for its answers."""


class NotAMember(Exception):
    """The person is not in the chat, or there is no such chat: the answer is the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewMessage:
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
    # The event_id of the response.create that sent it, so that its sender knows it again.
    client_event_id: str | None = None

    @property
    def sender_kind(self) -> str:
        """`agent` for what an agent wrote, `user` for everything else."""
        return "agent" if self.sender_agent_id else "user"

    def event(self, chat_id: str) -> ev.MessageCreated:
        """Return the event that announces it."""
        sender = self.sender_agent_id or (
            str(self.sender_user_id) if self.sender_user_id is not None else "anonymous"
        )
        return ev.MessageCreated(
            event_id=str(uuid.uuid4()),
            timestamp=milliseconds(self.at),
            chat_id=chat_id,
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
            ),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEvent:
    """A durable event to be appended; with `message` when it announces one."""

    type: str
    payload: dict[str, Any]
    response_id: str = ""
    message: NewMessage | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Append:
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


def lock_chats(chat_ids: Iterable[str]) -> dict[str, Chat]:
    """Lock chats in the order of their ids, the first lock that every writer of a log takes.

    Must run inside a transaction. On SQLite the transaction itself is the lock.
    """
    locked = Chat.objects.select_for_update().filter(pk__in=set(chat_ids)).order_by("pk")
    return {chat.pk: chat for chat in locked}


def append_many(appends: Sequence[Append]) -> list[int]:
    """Append events to several chats and return the first `seq` of each, position by position.

    Must run inside a transaction. Chats are locked in the order of their ids, so two callers
    cannot block each other; two appends for one chat follow each other as given.
    """
    heads = lock_chats(a.chat_id for a in appends)
    messages: list[Message] = []
    events: list[ChatEvent] = []
    firsts: list[int] = []
    for append in appends:
        chat = heads[append.chat_id]
        firsts.append(chat.last_seq + 1)
        for new in append.events:
            chat.last_seq += 1
            events.append(
                ChatEvent(
                    chat=chat,
                    seq=chat.last_seq,
                    type=new.type,
                    response_id=new.response_id,
                    payload=new.payload,
                    created_at=append.at,
                )
            )
            if new.message is not None:
                messages.append(_message_row(chat, chat.last_seq, new.message))
        chat.latest_at = append.at
    Message.objects.bulk_create(messages)
    ChatEvent.objects.bulk_create(events)
    Chat.objects.bulk_update(heads.values(), ["last_seq", "latest_at"])
    return firsts


def seq_of_event(chat_id: str, response_id: str, event_id: str) -> int | None:
    """Return the place of a response's terminal event if it is this very one."""
    ends = ends_of_responses(chat_id, [response_id])
    return next((end.seq for end in ends if end.payload["event_id"] == event_id), None)


def _message_row(chat: Chat, seq: int, new: NewMessage) -> Message:
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


@transaction.atomic
def create_chat(
    *,
    title: str,
    created_by_id: int | None,
    user_ids: Iterable[int],
    agents: Iterable[tuple[str, str]],
    kind: str = Chat.Kind.GROUP,
) -> Chat:
    """Create a chat with its members; `agents` are pairs of agent id and trigger rule."""
    chat = Chat.objects.create(title=title, created_by_id=created_by_id, kind=kind)
    members = [
        Participant(
            chat=chat,
            user_id=user_id,
            role=(Participant.Role.OWNER if user_id == created_by_id else Participant.Role.MEMBER),
        )
        for user_id in dict.fromkeys(user_ids)
    ]
    members += [
        Participant(chat=chat, agent_id=agent_id, trigger=trigger) for agent_id, trigger in agents
    ]
    Participant.objects.bulk_create(members)
    return chat


def update_chat(
    *, chat_id: str, changed_by: User, title: str | None = None, payer: str | None = None
) -> None:
    """Change a chat's title or its payer; sends the change to the members.

    An owner who chooses `owner` becomes the payer. Raises NotAMember to strangers, NotAnOwner
    to members who do not own it, NoSponsor where no agent of the chat is sponsored.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update().filter(pk=chat_id).first()
        if chat is None or not is_member(chat_id, changed_by.pk):
            raise NotAMember
        if not is_owner(chat_id, changed_by.pk):
            raise NotAnOwner
        before = (chat.title, chat.payer, chat.payer_user_id)
        chat.title = chat.title if title is None else title
        if payer is not None:
            _set_payer(chat, Chat.Payer(payer), changed_by)
        if (chat.title, chat.payer, chat.payer_user_id) == before:
            return
        chat.save(update_fields=["title", "payer", "payer_user"])
        _append_change(chat)


def _set_payer(chat: Chat, payer: Chat.Payer, by: User) -> None:
    chosen = payers_of([chat.pk])[chat.pk]
    if payer == chosen.rule == Chat.Payer.OWNER:
        # One of the owners pays already: another one does not take it over by saving a form.
        return
    if payer == Chat.Payer.SPONSOR != chat.payer:
        members = Participant.objects.filter(
            chat=chat, agent__isnull=False, left_at__isnull=True
        ).values_list("agent_id", flat=True)
        if not sponsors_of([agent_id for agent_id in members if agent_id]):
            raise NoSponsor
    chat.payer = payer
    chat.payer_user = by if payer == Chat.Payer.OWNER else None


def _append_change(chat: Chat) -> None:
    now = timezone.now()
    payload = {
        "type": "chat.updated",
        "event_id": str(uuid.uuid4()),
        "timestamp": milliseconds(now),
        "chat_id": chat.pk,
        "title": chat.title,
        "payer": str(chat.payer),
    }
    append(chat.pk, [NewEvent(type="chat.updated", payload=payload)], at=now)


def add_participant(
    *,
    chat_id: str,
    added_by: User,
    user: User | None = None,
    agent_id: str | None = None,
    trigger: str = Participant.Trigger.MENTION,
) -> Participant:
    """Add a person or an agent to a chat, or take them back; sends it to the members.

    One that comes back is a member, whatever it was before. Where the owner or the pool pays, an
    agent is added by an owner, because its answers are paid from then on. Raises NotAMember unless
    `added_by` is in the chat, NotAnOwner for an agent that another member adds there.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update().filter(pk=chat_id).first()
        if chat is None or not is_member(chat_id, added_by.pk):
            raise NotAMember
        is_paid_by_chat = chat.payer in {Chat.Payer.OWNER, Chat.Payer.POOL}
        if agent_id is not None and is_paid_by_chat and not is_owner(chat_id, added_by.pk):
            raise NotAnOwner
        participant, created = Participant.objects.get_or_create(
            chat=chat, user=user, agent_id=agent_id, defaults={"trigger": trigger}
        )
        if not created and participant.left_at is None:
            return participant
        participant.left_at = None
        participant.role = Participant.Role.MEMBER
        participant.trigger = trigger
        participant.save(update_fields=["left_at", "role", "trigger"])
        _append_membership(participant, "participant.joined")
    return participant


def remove_participant(*, chat_id: str, removed_by: User, participant_id: int) -> None:
    """Let a member leave; an owner may remove any member.

    An owner who leaves pays for nothing any more. When the last owner leaves, the person who has
    been there the longest owns the chat. Raises NotAMember when the caller may not, or the
    participant is not in the chat.
    """
    with transaction.atomic():
        chat = Chat.objects.select_for_update().filter(pk=chat_id).first()
        caller = Participant.objects.filter(
            chat_id=chat_id, user=removed_by, left_at__isnull=True
        ).first()
        participant = Participant.objects.filter(
            chat_id=chat_id, pk=participant_id, left_at__isnull=True
        ).first()
        if chat is None or caller is None or participant is None:
            raise NotAMember
        if caller != participant and caller.role != Participant.Role.OWNER:
            raise NotAMember
        participant.left_at = timezone.now()
        participant.save(update_fields=["left_at"])
        _append_membership(participant, "participant.left")
        if participant.role == Participant.Role.OWNER:
            _without_owner(chat, participant)


def _without_owner(chat: Chat, left: Participant) -> None:
    """Give a chat without an owner one, and stop a member who left from paying for it."""
    people = Participant.objects.filter(chat=chat, user__isnull=False, left_at__isnull=True)
    if not people.filter(role=Participant.Role.OWNER).exists():
        longest = people.order_by("joined_at", "id").first()
        if longest is not None:
            longest.role = Participant.Role.OWNER
            longest.save(update_fields=["role"])
    if chat.payer == Chat.Payer.OWNER and chat.payer_user_id == left.user_id:
        chat.refresh_from_db()
        chat.payer, chat.payer_user = Chat.Payer.ASKER, None
        chat.save(update_fields=["payer", "payer_user"])
        _append_change(chat)


def _append_membership(participant: Participant, event_type: str) -> None:
    """Membership is part of the log; the event type is ours, unknown to older clients."""
    member = participant.user or participant.agent
    name = participant.user.get_username() if participant.user else str(participant.agent)
    now = timezone.now()
    append(
        participant.chat_id,
        [
            NewEvent(
                type=event_type,
                payload={
                    "type": event_type,
                    "event_id": str(uuid.uuid4()),
                    "timestamp": milliseconds(now),
                    "chat_id": participant.chat_id,
                    "participant": {
                        "kind": "user" if participant.user else "agent",
                        "id": str(member.pk) if member else "",
                        "name": name,
                    },
                },
            )
        ],
        at=now,
    )


def is_member(chat_id: str, user_id: int | None) -> bool:
    """Return whether a person is in a chat now."""
    return (
        user_id is not None
        and Participant.objects.filter(
            chat_id=chat_id, user_id=user_id, left_at__isnull=True
        ).exists()
    )


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
            event_id=str(uuid.uuid4()),
            timestamp=milliseconds(now),
            chat_id=chat_id,
            message_id=message_id,
            user_id=str(user_id),
            read_at=milliseconds(now),
        )
        append(chat_id, [NewEvent(type="message.read", payload=uamp.to_dict(event))], at=now)
    return receipt
