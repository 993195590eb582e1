"""The agents that answer a turn: the session's own, or members by their trigger rules.

This is the one place for every transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_app import selectors as agents
from chat_app.members import membership
from chat_app.members.agent_mentions import MentionStop
from chat_app.members.triggers import triggered
from sessions_app import database
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from chat_app.log.entries import NewMessage
    from chat_app.members.membership import AgentMember
    from sessions_app.records import OpenSession
    from sessions_app.turn.request import TurnRequest
    from sessions_app.turn.versions import ReplacedAnswer


async def targets_of(
    request: TurnRequest, message: NewMessage | None, replaced: ReplacedAnswer | None = None
) -> tuple[list[AgentMember], list[MentionStop]]:
    """Return the agents that answer, and those that would and are quiet.

    Raises RemoteProtocolError agent_not_found.
    """
    session = request.session
    if request.asked:
        return list(request.asked), []
    if session.agent_id is not None and session.agent_name is not None:
        own = await _own_agent(session, session.agent_id, session.agent_name)
        if replaced is not None and own.agent_id != replaced.agent_id:
            raise RemoteProtocolError(
                ErrorCode.AGENT_NOT_FOUND, "Another agent than that of this session answered."
            )
        return _unless_quiet([own], is_message=message is not None)
    members = await database.run(membership.agent_members, session.chat_id)
    if replaced is not None:
        members = [member for member in members if member.agent_id == replaced.agent_id]
    if message is None:
        answering = [m for m in members if m.trigger != "never"]
        targets = [m for m in answering if m.trigger == "always"] or answering[:1]
        if not targets:
            raise RemoteProtocolError(
                ErrorCode.AGENT_NOT_FOUND, "There is no agent in this chat that could answer."
            )
        return _unless_quiet(targets, is_message=False)
    return _unless_quiet(triggered(message.content, members), is_message=True)


def _unless_quiet(
    targets: list[AgentMember], *, is_message: bool
) -> tuple[list[AgentMember], list[MentionStop]]:
    if not any(target.is_quiet for target in targets):
        return targets, []
    if not is_message:
        raise RemoteProtocolError(
            ErrorCode.AGENT_NOT_FOUND, "The agents of this chat are quiet for now."
        )
    return [], [
        MentionStop(
            agent_id=target.agent_id,
            agent=target.name,
            reason="quiet",
            words=f"{target.name} does not answer: the agents of this chat are quiet.",
        )
        for target in targets
    ]


async def _own_agent(session: OpenSession, agent_id: str, name: str) -> AgentMember:
    """Return the session's agent, if it is still in its chat and still for its person."""
    own = membership.AgentMember(agent_id, name, "always")
    if session.chat_scoped:
        members = await database.run(membership.agent_members, session.chat_id)
        own_member = next((m for m in members if m.agent_id == agent_id), None)
        may_answer = own_member is not None
        own = own_member or own
    else:
        may_answer = await _may_answer(session, agent_id)
    if not may_answer:
        raise RemoteProtocolError(
            ErrorCode.AGENT_NOT_FOUND, "The agent of this session is not there any more."
        )
    return own


async def _may_answer(session: OpenSession, agent_id: str) -> bool:
    """Return whether the agent of a private chat is still for its person."""
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


async def agent_spec(agent_id: str) -> agents.AgentSpec:
    """Return an agent, from memory where it is remembered; raises AgentNotFoundError."""
    spec = agents.remembered(agent_id)
    return spec if spec is not None else await database.run(agents.get_spec, agent_id)
