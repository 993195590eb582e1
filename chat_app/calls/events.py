"""The events of a call: its state for the members of the chat, and its log entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from chat_app.ids import new_event_id
from chat_app.log.entries import milliseconds
from chat_app.models import CallAgentReason, CallMemberState, CallReason, CallState
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

    from chat_app.models import VoiceCall, VoiceCallAgent, VoiceCallMember


def call_updated(
    call: VoiceCall, members: Iterable[VoiceCallMember], agents: Iterable[VoiceCallAgent]
) -> ev.CallUpdated:
    """Return the current state of a call; members have their `user`, agents their `agent`."""
    return ev.CallUpdated(
        event_id=new_event_id(),
        timestamp=milliseconds(timezone.now()),
        call_id=call.call_id,
        chat_id=call.chat_id,
        state=str(call.state),
        revision=call.revision,
        started_by=None if call.started_by_id is None else str(call.started_by_id),
        media=tuple(call.media),
        started_at=milliseconds(call.started_at),
        answered_at=_milliseconds(call.answered_at),
        ended_at=_milliseconds(call.ended_at),
        reason=call.reason or None,
        members=tuple(_member(call, member) for member in members),
        agents=tuple(_agent(row) for row in agents),
    )


def agent_left(call: VoiceCall, row: VoiceCallAgent) -> ev.AgentStopped:
    """Return the log entry for an agent that left because its host did."""
    host = row.host.get_username()
    return ev.AgentStopped(
        event_id=new_event_id(),
        timestamp=milliseconds(timezone.now()),
        chat_id=call.chat_id,
        agent=str(row.agent),
        agent_id=row.agent_id,
        reason=str(CallAgentReason(row.reason)),
        message=f"{row.agent} left the call with {host}, who had added it. "
        "Add it again to continue.",
    )


def call_ended(call: VoiceCall, members: Iterable[VoiceCallMember]) -> ev.CallEnded:
    """Return the log entry for a call that has ended."""
    took_part = {member.user_id: member.user for member in members if member.joined_at is not None}
    starter = took_part.pop(call.started_by_id or 0, None)
    duration = None
    if call.answered_at is not None and call.ended_at is not None:
        duration = milliseconds(call.ended_at) - milliseconds(call.answered_at)
    return ev.CallEnded(
        event_id=new_event_id(),
        timestamp=milliseconds(timezone.now()),
        call_id=call.call_id,
        chat_id=call.chat_id,
        started_by=None if starter is None else _person(starter),
        participants=tuple(_person(user) for user in took_part.values()),
        started_at=milliseconds(call.started_at),
        duration_ms=duration,
        reason=str(CallReason(call.reason)),
    )


def _member(call: VoiceCall, member: VoiceCallMember) -> ev.CallMember:
    goes_on = call.state != CallState.ENDED
    rings = goes_on and member.state == CallMemberState.RINGING
    return ev.CallMember(
        user_id=str(member.user_id),
        username=member.user.get_username(),
        state=str(member.state),
        joined_at=_milliseconds(member.joined_at),
        rings_until=_milliseconds(member.rings_until) if rings else None,
    )


def _agent(row: VoiceCallAgent) -> ev.CallAgent:
    return ev.CallAgent(
        agent_id=row.agent_id,
        agent=str(row.agent),
        host=str(row.host_id),
        state="joined" if row.left_at is None else "left",
        joined_at=milliseconds(row.joined_at),
        reason=row.reason or None,
    )


def _person(user: User) -> ev.CallPerson:
    return ev.CallPerson(user_id=str(user.pk), username=user.get_username())


def _milliseconds(at: datetime | None) -> int | None:
    return None if at is None else milliseconds(at)
