"""Agents in a call: who hosts one, and who may speak to it. Synchronous.

Every function takes the lock of the call's chat in its own transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from agents_app.providers.options import takes_calls
from chat_app.calls.call_change import CallChange, NotInCall, open_change
from chat_app.models import (
    CallAgentReason,
    CallMemberState,
    CallState,
    Participant,
    VoiceCall,
    VoiceCallMember,
)

if TYPE_CHECKING:
    from datetime import datetime

    from chat_app.calls.call_change import Act


class NoSuchAgent(LookupError):
    """The agent is not in the chat, or is disabled."""


class TakesNoCalls(Exception):
    """The agent's model does not both take and produce speech."""


class TooManyAgents(Exception):
    """The call has as many agents as allowed."""


def add_agent(act: Act, name: str) -> None:
    """Add an agent of the chat to its call, hosted by the person who adds it.

    Another participant who adds it again becomes its host. Raises NoSuchMember, NoSuchCall,
    NoSuchAgent, TakesNoCalls, TooManyAgents, and NotInCall unless the person takes part in this
    session and the call has been answered.
    """
    with transaction.atomic():
        change = _joined(act)
        if change.call.state != CallState.RUNNING:
            raise NotInCall
        row = Participant.objects.filter(
            chat_id=act.chat_id, agent__name=name, left_at__isnull=True, agent__is_enabled=True
        ).select_related("agent")
        member = row.first()
        if member is None or member.agent is None:
            raise NoSuchAgent
        agent = member.agent
        if not takes_calls(agent.provider, agent.options):
            raise TakesNoCalls
        there = [entry.agent_id for entry in change.agents.values() if entry.left_at is None]
        if agent.pk not in there and len(there) >= settings.UAMP_CALL_AGENTS:
            raise TooManyAgents
        if agent.pk not in there or change.agents[agent.pk].host_id != act.user_id:
            change.add_agent(agent.pk, act.user_id)
            change.settle()


def remove_agent(act: Act, name: str) -> None:
    """Remove an agent from the call on behalf of any participant. Raises as `add_agent`."""
    with transaction.atomic():
        change = _joined(act)
        for agent_id, row in change.agents.items():
            if row.left_at is None and str(row.agent) == name:
                change.end_agent(agent_id, CallAgentReason.REMOVED)
                change.settle()
                return
        raise NoSuchAgent


def end_agent_participation(*, chat_id: str, agent_id: str, now: datetime) -> None:
    """Remove an agent that left the chat from its call; needs the chat's lock."""
    call = VoiceCall.objects.filter(chat_id=chat_id, ended_at__isnull=True).first()
    if call is None:
        return
    change = CallChange(call, now)
    if agent_id in change.agents and change.agents[agent_id].left_at is None:
        change.end_agent(agent_id, CallAgentReason.NOT_MEMBER)
        change.settle()


def hosted_agent(*, chat_id: str, call_id: str, session_id: str, name: str) -> str:
    """Return the id of an agent in a call whose host takes part in this session.

    Raises NotInCall if there is none.
    """
    call = VoiceCall.objects.filter(chat_id=chat_id, ended_at__isnull=True, call_id=call_id).first()
    if call is None:
        raise NotInCall
    row = call.agents.filter(agent__name=name, left_at__isnull=True).first()
    if row is None:
        raise NotInCall
    host = VoiceCallMember.objects.filter(call=call, user=row.host_id, session_id=session_id)
    if not host.filter(state=CallMemberState.JOINED).exists():
        raise NotInCall
    return row.agent_id


def _joined(act: Act) -> CallChange:
    change = open_change(act)
    row = change.members.get(act.user_id)
    if row is None or row.state != CallMemberState.JOINED or row.session_id != act.session_id:
        raise NotInCall
    return change
