"""Reads of chats. The reader is an argument: a stranger gets the same answer as for no chat."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec
from django.db import connection
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL
from django.utils import timezone

import uamp
from chat_app.models import Chat, ChatEvent, Message, Participant, Presence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django.db.models import QuerySet


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

    role: uamp.Role
    content: str
    content_items: tuple[uamp.ContentItem, ...]
    name: str
    agent_id: str | None

    def seen_by(self, agent_id: str, *, shared: bool) -> uamp.Message:
        """Return it from one agent's view: only its own words are the assistant's.

        In a shared chat `name` distinguishes the other members.
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


# SQLite uses the index of these rows only where it sees their types in the statement.
_ENDS: Final = RawSQL(  # noqa: S611 constants
    "type IN ({})".format(", ".join(f"'{name}'" for name in ChatEvent.TERMINAL)),
    (),
    output_field=BooleanField(),
)


def ends_of_responses(chat_id: str, response_ids: Iterable[str]) -> list[LoggedEvent]:
    """Return the terminal events of responses that have ended."""
    rows = (
        ChatEvent.objects.filter(_ENDS, chat_id=chat_id, response_id__in=list(response_ids))
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
            role=cast("uamp.Role", role),
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


def titles_of(chat_ids: Collection[str]) -> dict[str, str]:
    """Return the titles of those of these chats that have one."""
    rows = Chat.objects.filter(pk__in=chat_ids).exclude(title="")
    return dict(rows.values_list("pk", "title"))


class ChatPayer(NamedTuple):
    """The payer in a chat: asker, owner, pool or sponsor; with `owner` the owner who said so."""

    rule: str
    owner_id: int | None


def payers_of(chat_ids: Collection[str]) -> dict[str, ChatPayer]:
    """Return the payers of chats now; LookupError without a chat.

    An owner pays who chose it and is an owner still; else each asker pays.
    """
    if not chat_ids:
        return {}
    # Every turn of an agent with a price asks this: SQL costs a quarter of what the ORM does.
    marks = ", ".join(["%s"] * len(chat_ids))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT chat.id, chat.payer, member.user_id FROM chat_app_chat chat"  # noqa: S608 marks only
            " LEFT JOIN chat_app_participant member ON chat.payer = 'owner'"
            " AND member.chat_id = chat.id AND member.user_id = chat.payer_user_id"
            " AND member.role = 'owner' AND member.left_at IS NULL"
            " AND EXISTS (SELECT 1 FROM auth_user WHERE id = member.user_id AND is_active)"
            f" WHERE chat.id IN ({marks})",
            list(chat_ids),
        )
        found = {
            str(pk): ChatPayer("asker" if payer == "owner" and owner is None else payer, owner)
            for pk, payer, owner in cursor.fetchall()
        }
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
