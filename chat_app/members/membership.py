"""The present people and agents of a chat, and its owners.

The caller is an argument: a stranger gets the same answer as for a chat that does not exist.
"""

from __future__ import annotations

import msgspec

from chat_app.models import Participant, ParticipantRole


class NotAnOwner(Exception):
    """A member of the chat who does not own it."""


class NotAMember(Exception):
    """The person is not in the chat, or there is no such chat: the answer is the same."""


def is_member(chat_id: str, user_id: int | None) -> bool:
    """Return whether a person is in a chat now."""
    return (
        user_id is not None
        and Participant.objects.filter(
            chat_id=chat_id, user_id=user_id, left_at__isnull=True
        ).exists()
    )


class AgentMember(msgspec.Struct, frozen=True):
    """An agent in a chat: when it answers, and what it is shown.

    `is_quiet` says that no agent of the chat answers for now.
    """

    agent_id: str
    name: str
    trigger: str
    keywords: tuple[str, ...] = ()
    context: str = "chat"
    context_messages: int | None = None
    is_quiet: bool = False


def agent_members(chat_id: str) -> list[AgentMember]:
    """Return the agents that are in a chat now."""
    rows = (
        Participant.objects.filter(
            chat_id=chat_id, agent__isnull=False, left_at__isnull=True, agent__is_enabled=True
        )
        .order_by("id")
        .values_list(
            "agent_id",
            "agent__name",
            "trigger",
            "keywords",
            "context",
            "context_messages",
            "chat__agents_quiet",
        )
    )
    return [
        AgentMember(
            agent_id, name, trigger, tuple(keywords or ()), context or "chat", most, bool(quiet)
        )
        for agent_id, name, trigger, keywords, context, most, quiet in rows
    ]


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
