"""Reads of chats. Whoever asks is an argument: a stranger gets the same answer as for no chat."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import msgspec
from django.db import connection
from django.db.models import Q
from django.utils import timezone

import uamp
from chat_app.models import Chat, ChatEvent, Message, Participant, Presence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django.db.models import QuerySet


class ChatHead(msgspec.Struct, frozen=True):
    """Where a chat's log stands."""

    id: str
    kind: str
    epoch: str
    last_seq: int


class AgentMember(msgspec.Struct, frozen=True):
    """An agent in a chat, and when it answers."""

    agent_id: str
    name: str
    trigger: str


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One entry of a chat's log; `payload` is the event without `seq` and `session_id`."""

    seq: int
    type: str
    response_id: str
    payload: dict[str, Any]


class HistoryMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as an agent is shown it."""

    role: str
    content: str
    content_items: tuple[uamp.ContentItem, ...]
    name: str
    agent_id: str | None

    def seen_by(self, agent_id: str, *, shared: bool) -> uamp.Message:
        """Return it from one agent's view: only its own words are the assistant's.

        In a shared chat other members are told apart by `name`.
        """
        role = self.role
        if role == "assistant" and self.agent_id != agent_id:
            role = "user"
        return uamp.Message(
            role=role,
            content=self.content,
            content_items=self.content_items or None,
            name=self.name if shared and self.name else None,
        )


def chats_of(user_id: int) -> QuerySet[Chat]:
    """Return the chats that a person is in."""
    return Chat.objects.filter(
        pk__in=Participant.objects.filter(user_id=user_id, left_at__isnull=True).values("chat_id")
    )


def chat_head(chat_id: str, *, user_id: int | None) -> ChatHead | None:
    """Return the head of a chat that the person is in, or None."""
    if user_id is None:
        return None
    row = chats_of(user_id).filter(pk=chat_id).values_list("id", "kind", "epoch", "last_seq")
    return next((ChatHead(*r) for r in row), None)


def chat_heads(chat_ids: Iterable[str]) -> dict[str, int]:
    """Return the last `seq` of each chat."""
    return dict(Chat.objects.filter(pk__in=list(chat_ids)).values_list("id", "last_seq"))


def events_after(chat_id: str, after: int, *, limit: int = 256) -> list[LoggedEvent]:
    """Return the next entries of a log, in order."""
    rows = (
        ChatEvent.objects.filter(chat_id=chat_id, seq__gt=after)
        .order_by("seq")
        .values_list("seq", "type", "response_id", "payload")[:limit]
    )
    return [LoggedEvent(*row) for row in rows]


def ends_of_responses(chat_id: str, response_ids: Iterable[str]) -> list[LoggedEvent]:
    """Return the terminal events of responses that have ended."""
    rows = (
        ChatEvent.objects.filter(
            chat_id=chat_id, response_id__in=list(response_ids), type__in=ChatEvent.TERMINAL
        )
        .order_by("seq")
        .values_list("seq", "type", "response_id", "payload")
    )
    return [LoggedEvent(*row) for row in rows]


def history(chat_id: str, *, limit: int, before: int | None = None) -> list[HistoryMessage]:
    """Return the last messages of a chat, oldest first."""
    rows = Message.objects.filter(chat_id=chat_id)
    if before is not None:
        rows = rows.filter(seq__lt=before)
    newest = rows.order_by("-seq").values_list(
        "role", "content", "content_items", "name", "sender_agent_id"
    )[:limit]
    return [
        HistoryMessage(
            role=role,
            content=content,
            content_items=msgspec.convert(items, tuple[uamp.ContentItem, ...]),
            name=name,
            agent_id=agent_id,
        )
        for role, content, items, name, agent_id in reversed(newest)
    ]


def history_until(chat_id: str, *, message_id: str | None, limit: int) -> list[HistoryMessage]:
    """Return the messages up to one of them, or all that there are."""
    seq = None
    if message_id is not None:
        seq = Message.objects.filter(pk=message_id).values_list("seq", flat=True).first()
    return history(chat_id, limit=limit, before=None if seq is None else seq + 1)


def search_messages(
    chat_id: str, words: Iterable[str], *, limit: int, without: str | None = None
) -> list[Message]:
    """Return the newest messages of a chat that have every one of the words, in any case."""
    rows = Message.objects.filter(chat_id=chat_id).exclude(pk=without)
    for word in words:
        # SQLite's LIKE knows the case of ASCII only: "ärger" would not find "Ärger".
        cases = {word} if word.isascii() else {word, word.lower(), word.upper(), word.capitalize()}
        rows = rows.filter(reduce(or_, (Q(content__icontains=case) for case in cases)))
    return list(rows.order_by("-seq")[:limit])


def agent_members(chat_id: str) -> list[AgentMember]:
    """Return the agents that are in a chat now."""
    rows = (
        Participant.objects.filter(
            chat_id=chat_id, agent__isnull=False, left_at__isnull=True, agent__is_enabled=True
        )
        .order_by("id")
        .values_list("agent_id", "agent__name", "trigger")
    )
    return [AgentMember(*row) for row in rows]


def is_owner(chat_id: str, user_id: int | None) -> bool:
    """Return whether a person owns a chat, as a member of it."""
    return user_id is not None and (
        Participant.objects.filter(
            chat_id=chat_id,
            user_id=user_id,
            role=Participant.Role.OWNER,
            left_at__isnull=True,
        ).exists()
    )


def owner_id(chat_id: str) -> int | None:
    """Return who has owned a chat for the longest time and is still in it."""
    return (
        Participant.objects.filter(
            chat_id=chat_id,
            user__isnull=False,
            role=Participant.Role.OWNER,
            left_at__isnull=True,
        )
        .order_by("joined_at", "id")
        .values_list("user_id", flat=True)
        .first()
    )


def titles_of(chat_ids: Collection[str]) -> dict[str, str]:
    """Return the titles of those of these chats that have one."""
    rows = Chat.objects.filter(pk__in=chat_ids).exclude(title="")
    return dict(rows.values_list("pk", "title"))


def payers_of(chat_ids: Collection[str]) -> dict[str, str]:
    """Return who pays in chats now: asker, owner, pool or sponsor; LookupError without a chat."""
    if not chat_ids:
        return {}
    # Every turn of an agent with a price asks this: SQL costs a quarter of what the ORM does.
    marks = ", ".join(["%s"] * len(chat_ids))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, payer FROM chat_app_chat WHERE id IN ({marks})",  # noqa: S608 marks only
            list(chat_ids),
        )
        found = {str(pk): str(payer) for pk, payer in cursor.fetchall()}
    if missing := set(chat_ids) - set(found):
        raise LookupError(min(missing))
    return found


def member_ids(chat_id: str) -> list[int]:
    """Return the ids of the people who are in a chat now."""
    return list(
        Participant.objects.filter(
            chat_id=chat_id, user__isnull=False, left_at__isnull=True
        ).values_list("user_id", flat=True)
    )


def group_chats_of(user_id: int) -> list[str]:
    """Return the ids of the shared chats that a person is in."""
    return list(chats_of(user_id).filter(kind=Chat.Kind.GROUP).values_list("id", flat=True))


def online_user_ids(user_ids: Iterable[int]) -> set[int]:
    """Return who of these people has a fresh open socket."""
    fresh = timezone.now() - timedelta(seconds=Presence.FRESH_SECONDS)
    return set(
        Presence.objects.filter(user_id__in=list(user_ids), seen_at__gte=fresh).values_list(
            "user_id", flat=True
        )
    )
