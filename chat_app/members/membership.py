"""The current people and agents of a chat, and its owners.

The caller is an argument: a stranger gets the same answer as for a chat that does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q

from agents_app.selectors import usable_by
from chat_app.models import ChatEvent, Participant, ParticipantRole

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.contrib.auth.models import User


class NotAnOwner(Exception):
    """The member does not own the chat."""


class NotAMember(Exception):
    """The person is not in the chat, or there is no such chat: callers cannot tell which."""


def is_member(chat_id: str, user_id: int | None) -> bool:
    """Return whether a person is in a chat now."""
    return (
        user_id is not None
        and Participant.objects.filter(
            chat_id=chat_id, user_id=user_id, left_at__isnull=True
        ).exists()
    )


def was_ever_in(user_id: int, chat_ids: Collection[str]) -> bool:
    """Return whether a person is, or was, a member of any of these chats."""
    return Participant.objects.filter(user_id=user_id, chat_id__in=chat_ids).exists()


def has_left_freely(chat_id: str, user_id: int) -> bool:
    """Return whether a person left a chat voluntarily rather than being removed."""
    return Participant.objects.filter(
        chat_id=chat_id, user_id=user_id, left_at__isnull=False, left_freely=True
    ).exists()


def ended_by(chat_id: str, user_id: int) -> int | None:
    """Return the person who ended a membership, perhaps the member; None if that is unknown."""
    has_left = Participant.objects.filter(
        chat_id=chat_id, user_id=user_id, left_at__isnull=False
    ).exists()
    if not has_left:
        return None
    entries = ChatEvent.objects.filter(
        chat_id=chat_id,
        type="participant.left",
        payload__participant__kind="user",
        payload__participant__id=str(user_id),
    )
    entry = entries.order_by("-seq").values_list("payload", flat=True).first()
    by = (entry or {}).get("by") or {}
    return int(by["id"]) if str(by.get("id", "")).isdecimal() else None


def last_leaving(chat_id: str, user_ids: Collection[int]) -> int:
    """Return the place in the log where the last of these people left a chat; 0 if none did."""
    entries = ChatEvent.objects.filter(
        chat_id=chat_id,
        type="participant.left",
        payload__participant__kind="user",
        payload__participant__id__in=[str(user_id) for user_id in user_ids],
    )
    return entries.order_by("-seq").values_list("seq", flat=True).first() or 0


def people_of(chat_id: str) -> list[User]:
    """Return the people of a chat, in the order of joining."""
    rows = Participant.objects.filter(chat_id=chat_id, user__isnull=False, left_at__isnull=True)
    return [row.user for row in rows.select_related("user").order_by("pk") if row.user]


def people_ever_in(chat_ids: Collection[str]) -> set[int]:
    """Return the ids of all who are or were in any of these chats."""
    rows = Participant.objects.filter(chat_id__in=chat_ids, user__isnull=False)
    return set(rows.values_list("user__pk", flat=True))


def active_members(
    chat_ids: Collection[str], user_ids: Collection[int]
) -> set[tuple[str, int | None]]:
    """Return the (chat, person) pairs of current members who are not deactivated."""
    rows = Participant.objects.filter(
        chat_id__in=chat_ids, user_id__in=user_ids, left_at__isnull=True, user__is_active=True
    )
    return set(rows.values_list("chat_id", "user_id"))


class AgentMember(msgspec.Struct, frozen=True):
    """An agent in a chat: when it answers, and which messages it sees.

    `is_quiet` says that the agents of the chat are currently silenced, `is_enabled` whether this
    one is switched on, `is_usable` whether the asker may use it. `trigger_by` is the person who
    chose its trigger, if known.
    """

    agent_id: str
    name: str
    trigger: str
    keywords: tuple[str, ...] = ()
    context: str = "chat"
    context_messages: int | None = None
    is_quiet: bool = False
    is_enabled: bool = True
    is_usable: bool = True
    trigger_by: int | None = None

    def is_named(self, name: str) -> bool:
        """Return whether a name, ignoring case, or an id is this agent's."""
        return name == self.agent_id or name.casefold() == self.name.casefold()


def agent_members(chat_id: str) -> list[AgentMember]:
    """Return the enabled agents of a chat, including those that only their owners may use."""
    return [member for member in all_agent_members(chat_id, asker=None) if member.is_enabled]


def all_agent_members(chat_id: str, *, asker: int | None) -> list[AgentMember]:
    """Return the agents of a chat, including those that are disabled or not the asker's to use."""
    return agents_and_seq(chat_id, asker=asker)[0]


def agents_and_seq(chat_id: str, *, asker: int | None) -> tuple[list[AgentMember], int | None]:
    """Return `all_agent_members` and the chat's last `seq`, which is None without any agent."""
    rows = list(
        Participant.objects.filter(chat_id=chat_id, agent__isnull=False, left_at__isnull=True)
        .order_by("id")
        .annotate(
            is_usable=ExpressionWrapper(usable_by(asker, "agent__") | _is_lent(), BooleanField())
        )
        .values_list(
            "agent_id",
            "agent__name",
            "trigger",
            "keywords",
            "context",
            "context_messages",
            "chat__agents_quiet",
            "agent__is_enabled",
            "is_usable",
            "trigger_by_id",
            "chat__last_seq",
        )
    )
    members = [
        AgentMember(
            agent_id,
            name,
            trigger,
            tuple(keywords or ()),
            context or "chat",
            limit,
            bool(quiet),
            bool(is_enabled),
            bool(is_usable),
            trigger_by,
        )
        for (
            agent_id,
            name,
            trigger,
            keywords,
            context,
            limit,
            quiet,
            is_enabled,
            is_usable,
            trigger_by,
            _,
        ) in rows
    ]
    return members, rows[0][-1] if rows else None


def lent_agents(uses: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Filter (chat, agent) pairs to those in which the agent is lent to the chat."""
    chats, agents = {chat_id for chat_id, _ in uses}, {agent_id for _, agent_id in uses}
    rows = Participant.objects.filter(_is_lent(), chat__in=chats, agent__in=agents)
    return set(rows.filter(left_at__isnull=True).values_list("chat_id", "agent_id")) & set(uses)


def _is_lent() -> Q:
    """Match agents that everyone in their chat may use: their owners added them and are in it."""
    owner = Participant.objects.filter(
        chat=OuterRef("chat"),
        user=OuterRef("agent__owner"),
        user__is_active=True,
        left_at__isnull=True,
    )
    return Q(is_lent=True) & Q(Exists(owner))


def is_owner(chat_id: str, user_id: int | None) -> bool:
    """Return whether a person owns a chat, as a member of it."""
    return user_id is not None and (
        Participant.objects.filter(
            chat_id=chat_id,
            user_id=user_id,
            role=ParticipantRole.OWNER,
            left_at__isnull=True,
        ).exists()
    )
