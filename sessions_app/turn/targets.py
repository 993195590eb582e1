"""Selection of the agents that answer a turn: the session's own, or members by trigger rules.

All transports use it. It reads nothing: the agents of the chat are among the turn's facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_app import selectors as agents
from chat_app.folding import folded
from chat_app.members.agents.agent_mentions import DISABLED, PRIVATE, MentionStop
from chat_app.members.agents.triggers import triggered
from chat_app.members.membership import AgentMember
from chat_app.mentioned import mentioned_names
from sessions_app import database
from sessions_app.access.standing import agent_disabled, is_private
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chat_app.log.entries import NewMessage
    from sessions_app.records import OpenSession
    from sessions_app.turn.facts import TurnFacts
    from sessions_app.turn.request import TurnRequest


def targets_of(
    request: TurnRequest, message: NewMessage | None, facts: TurnFacts
) -> tuple[list[AgentMember], list[MentionStop]]:
    """Return the agents that answer, and those that would but are quiet, private or switched off.

    Raises RemoteProtocolError: agent_not_found, agent_disabled, and forbidden if the session's
    person may not use, or its credential may not ask one of them.
    """
    if request.asked:
        _check_may_ask(request.session, request.asked)
        return list(request.asked), []
    if request.create.agents is not None:
        named = named_agents(request, request.create.agents, facts.members)
        return _unless_quiet(named, is_message=True)
    targets, stops = _members_to_ask(request, message, facts)
    _check_may_ask(request.session, targets)
    return targets, stops


def is_unprompted(request: TurnRequest, target: AgentMember, text: str | None) -> bool:
    """Return whether an agent answers without having been asked by the person.

    A person asks an agent by opening a session with it, by naming it, by requesting another version
    of its answer, or by having chosen its trigger, as that of the agent in their private chat:
    others may have joined that chat. `text` is that of their message, if there is one.
    """
    if request.unprompted:
        return True
    session, create = request.session, request.create
    is_chosen = request.asked or session.agent_id is not None
    if is_chosen or create.agents is not None or create.replaces is not None:
        return False
    if target.trigger_by is not None and target.trigger_by == session.principal.user_id:
        return False
    return text is None or folded(target.name) not in mentioned_names(text, [target.name])


def named_agents(
    request: TurnRequest, names: Sequence[str], members: Sequence[AgentMember]
) -> list[AgentMember]:
    """Return the agents of the chat that a turn names, in the order of the names.

    Raises RemoteProtocolError: invalid_event if the turn may not name any, agent_not_found for one
    that is not in the chat, agent_disabled, and forbidden.
    """
    session, create = request.session, request.create
    if session.agent_id is not None or create.replaces is not None or create.call is not None:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            "The answering agent is fixed here: leave out `agents`.",
            details={"param": "agents"},
        )
    by_name = {member.name.casefold(): member for member in members}
    by_name |= {member.agent_id: member for member in members}
    by_id: dict[str, AgentMember] = {}
    for name in names:
        member = by_name.get(name) or by_name.get(name.casefold())
        if member is None:
            raise RemoteProtocolError(
                ErrorCode.AGENT_NOT_FOUND,
                f"There is no agent {name!r} in this chat.",
                details={"param": "agents"},
            )
        if not _may_start(member):
            raise _refusal(member)
        by_id[member.agent_id] = member
    _check_may_ask(session, by_id.values())
    return list(by_id.values())


def _check_may_ask(session: OpenSession, targets: Iterable[AgentMember]) -> None:
    for target in targets:
        if not session.principal.rights.may_ask(target.agent_id):
            raise RemoteProtocolError(
                ErrorCode.FORBIDDEN, f"This credential may not ask the agent {target.name}."
            )


def _members_to_ask(
    request: TurnRequest, message: NewMessage | None, facts: TurnFacts
) -> tuple[list[AgentMember], list[MentionStop]]:
    session, members, replaced = request.session, facts.members, facts.replaced
    if session.agent_id is not None and session.agent_name is not None:
        agent = _own_agent(session, session.agent_id, session.agent_name, facts)
        if replaced is not None and agent.agent_id != replaced.agent_id:
            raise RemoteProtocolError(
                ErrorCode.AGENT_NOT_FOUND, "A different agent from the session's answered."
            )
        return _unless_quiet([agent], is_message=message is not None)
    if replaced is not None:
        members = [member for member in members if member.agent_id == replaced.agent_id]
    if message is None:
        return _unless_quiet(_without_message(members), is_message=False)
    called = triggered(message.content, members)
    targets, stops = _unless_quiet([m for m in called if _may_start(m)], is_message=True)
    return targets, [*stops, *_kept_from(called, message.content)]


def _may_start(member: AgentMember) -> bool:
    return member.is_enabled and member.is_usable


def _without_message(members: Sequence[AgentMember]) -> list[AgentMember]:
    """Return the agents of a chat that answer when there is no message to choose by."""
    answering = [member for member in members if member.trigger != "never"]
    enabled = [member for member in answering if _may_start(member)]
    targets = [member for member in enabled if member.trigger == "always"] or enabled[:1]
    if targets:
        return targets
    if answering:
        raise _refusal(answering[0])
    raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, "No agent in this chat can answer.")


def _refusal(member: AgentMember) -> RemoteProtocolError:
    """Return why an agent of a chat does not answer a person."""
    if not member.is_usable:
        return RemoteProtocolError(ErrorCode.FORBIDDEN, is_private(member.name))
    return RemoteProtocolError(*agent_disabled(member.name))


def _kept_from(called: Sequence[AgentMember], text: str) -> list[MentionStop]:
    """Return the agents that a message called but that are private or switched off.

    Agents that were not mentioned by name are left out if others answer.
    """
    named = mentioned_names(text, (member.name for member in called))
    is_answered = any(map(_may_start, called))
    return [
        MentionStop(
            agent_id=member.agent_id,
            agent=member.name,
            reason=DISABLED if member.is_usable else PRIVATE,
            words=f"{member.name} does not answer: it is"
            f" {'switched off' if member.is_usable else 'private'}.",
        )
        for member in called
        if not _may_start(member) and (folded(member.name) in named or not is_answered)
    ]


def _unless_quiet(
    targets: list[AgentMember], *, is_message: bool
) -> tuple[list[AgentMember], list[MentionStop]]:
    if not any(target.is_quiet for target in targets):
        return targets, []
    if not is_message:
        raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, "The agents of this chat are paused.")
    return [], [
        MentionStop(
            agent_id=target.agent_id,
            agent=target.name,
            reason="quiet",
            words=f"{target.name} does not answer: the agents of this chat are paused.",
        )
        for target in targets
    ]


def _own_agent(session: OpenSession, agent_id: str, name: str, facts: TurnFacts) -> AgentMember:
    """Return the session's agent, if it is still in the chat and available to the person."""
    member: AgentMember | None = None
    if session.chat_scoped:
        member = next((m for m in facts.members if m.agent_id == agent_id), None)
        if member is not None and not _may_start(member):
            raise _refusal(member)
    elif facts.agent is not None:
        if not facts.agent.is_enabled:
            raise RemoteProtocolError(*agent_disabled(facts.agent.name))
        member = AgentMember(agent_id, name, "always")
    if member is None:
        raise RemoteProtocolError(
            ErrorCode.AGENT_NOT_FOUND, "The agent of this session no longer exists."
        )
    return member


async def agent_spec(agent_id: str) -> agents.AgentSpec:
    """Return an agent, from the cache if possible; raises AgentNotFoundError."""
    spec = agents.remembered(agent_id)
    return spec if spec is not None else await database.run(agents.get_spec, agent_id)
