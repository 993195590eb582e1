"""The agents that answer a turn: the session's own, or members by their trigger rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agents_app import selectors as agents
from chat_app.members import membership
from sessions_app import database
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.log.entries import NewMessage
    from sessions_app.records import OpenSession

MENTION: Final = re.compile(r"(?<![\w@/.])@([\w][\w.-]*)")


async def targets_of(
    session: OpenSession, message: NewMessage | None
) -> list[membership.AgentMember]:
    """Return the agents that answer; raises RemoteProtocolError agent_not_found."""
    if session.agent_id is not None and session.agent_name is not None:
        if not await _may_answer(session, session.agent_id):
            raise RemoteProtocolError(
                ErrorCode.AGENT_NOT_FOUND, "The agent of this session is not there any more."
            )
        return [membership.AgentMember(session.agent_id, session.agent_name, "always")]
    members = await database.run(membership.agent_members, session.chat_id)
    if message is None:
        targets = [m for m in members if m.trigger == "always"] or members[:1]
        if not targets:
            raise RemoteProtocolError(
                ErrorCode.AGENT_NOT_FOUND, "There is no agent in this chat that could answer."
            )
        return targets
    return triggered(message.content, members)


async def _may_answer(session: OpenSession, agent_id: str) -> bool:
    """Return whether the session's agent is still in its chat, and still for its person."""
    if session.chat_scoped:
        members = await database.run(membership.agent_members, session.chat_id)
        return agent_id in {member.agent_id for member in members}
    try:
        spec = await agent_spec(agent_id)
    except agents.AgentNotFoundError:
        return False
    viewer = session.principal.user_id
    if session.parent is not None:
        # Its delegating agent was checked when it gave the work.
        return spec.is_enabled
    if spec.is_public or (viewer is not None and spec.owner_id == viewer):
        return spec.is_enabled
    return await database.run(agents.get_agent, spec.name, viewer=viewer) is not None


def triggered(text: str, members: Sequence[membership.AgentMember]) -> list[membership.AgentMember]:
    """Return the agents that a message of a shared chat makes answer, in the order of joining."""
    mentioned = {name.rstrip(".-").casefold() for name in MENTION.findall(text)}
    return [
        member
        for member in members
        if member.trigger == "always"
        or (member.trigger == "mention" and member.name.casefold() in mentioned)
    ]


async def agent_spec(agent_id: str) -> agents.AgentSpec:
    """Return an agent, from memory where it is remembered; raises AgentNotFoundError."""
    spec = agents.remembered(agent_id)
    return spec if spec is not None else await database.run(agents.get_spec, agent_id)
