"""One change of a call, under the lock of its chat, and its consequences. Synchronous.

The members of the chat receive the state of the call after each change (`call.updated`); the end of
a call is a log entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils import timezone

import uamp
from agents_app.providers.options import takes_calls
from chat_app.calls.events import agent_left, call_ended, call_updated
from chat_app.calls.states import (
    CALL_TRANSITIONS,
    MEMBER_TRANSITIONS,
    CallTrigger,
    MemberTrigger,
)
from chat_app.log import fanout
from chat_app.log.entries import append, lock_chats, salted_entry
from chat_app.models import (
    CallAgentReason,
    CallMemberState,
    CallReason,
    CallState,
    Participant,
    VoiceCall,
    VoiceCallAgent,
    VoiceCallMember,
)

if TYPE_CHECKING:
    from datetime import datetime


class NoSuchMember(LookupError):
    """The person, or the one they call, is not in the chat; callers cannot tell which."""


class NoSuchCall(LookupError):
    """The chat has no call in progress, or a different one."""


class NotInCall(Exception):
    """The person neither takes part in the call nor is being called."""


@dataclass(frozen=True, slots=True)
class Acted:
    """The result of an action: its call, and who else is called or takes part.

    `others` maps user ids to the session in which they take part, or "" while they are called.
    `former_session` is the session in which the person took part until now.
    """

    call_id: str
    others: dict[int, str] = field(default_factory=dict)
    former_session: str = ""

    def only(self, to: str | None) -> int | None:
        """Return the other person whom an action names, or the only one."""
        if to is not None:
            return next((user_id for user_id in self.others if str(user_id) == to), None)
        return next(iter(self.others)) if len(self.others) == 1 else None


@dataclass(frozen=True, slots=True)
class Act:
    """An action of a person in the call of a chat, and the session they act in.

    `call_id` is the intended call, None for the one in progress. `to` is the id of the person
    addressed; `is_for_one` says that it must address exactly one person.
    """

    chat_id: str
    user_id: int
    session_id: str
    call_id: str | None = None
    to: str | None = None
    is_for_one: bool = False


def people_of(chat_id: str) -> set[int]:
    """Return the ids of the people who are in a chat now."""
    return set(
        Participant.objects.filter(
            chat_id=chat_id, user__isnull=False, left_at__isnull=True
        ).values_list("user_id", flat=True)
    )


def has_agent_for_calls(chat_id: str) -> bool:
    """Return whether an agent of the chat can join its calls."""
    rows = Participant.objects.filter(
        chat_id=chat_id, agent__is_enabled=True, left_at__isnull=True
    ).values_list("agent__provider", "agent__options")
    return any(takes_calls(provider, options) for provider, options in rows)


def open_change(act: Act) -> CallChange:
    """Lock a chat and return a change of its call in progress.

    Raises NoSuchMember, NoSuchCall, and NotInCall if the addressed person is not in the call.
    """
    lock_chats([act.chat_id])
    if act.user_id not in people_of(act.chat_id):
        raise NoSuchMember
    call = VoiceCall.objects.filter(chat_id=act.chat_id, ended_at__isnull=True).first()
    if call is None or act.call_id not in {None, call.call_id}:
        raise NoSuchCall
    change = CallChange(call, timezone.now())
    if (act.to is not None or act.is_for_one) and change.acted(act.user_id).only(act.to) is None:
        raise NotInCall
    return change


class CallChange:
    """One change of a call: move its members, then `settle` to write the consequences."""

    def __init__(self, call: VoiceCall, now: datetime) -> None:
        self.call = call
        self.now = now
        rows = call.members.select_related("user").order_by("id")
        self.members: dict[int, VoiceCallMember] = {row.user_id: row for row in rows}
        agents = call.agents.select_related("agent", "host").order_by("id")
        self.agents: dict[str, VoiceCallAgent] = {row.agent_id: row for row in agents}
        self._has_changed = False

    def state_of(self, user_id: int) -> CallMemberState | None:
        """Return a person's state in the call; None if they were never called."""
        row = self.members.get(user_id)
        return None if row is None else CallMemberState(row.state)

    def ring(self, user_id: int) -> None:
        """Call a person, for UAMP_CALL_RING_SECONDS."""
        until = self.now + timedelta(seconds=settings.UAMP_CALL_RING_SECONDS)
        if user_id not in self.members:
            self._add(user_id, CallMemberState.RINGING)
        self.move(user_id, MemberTrigger.RING, rings_until=until)

    def join(self, user_id: int, session_id: str) -> None:
        """Let a person take part in a session."""
        if user_id not in self.members:
            self._add(user_id, CallMemberState.RINGING)
        self.move(
            user_id,
            MemberTrigger.JOIN,
            session_id=session_id,
            joined_at=self.now,
            seen_at=self.now,
            rings_until=None,
        )

    def answer(self) -> None:
        """Answer the call: someone joined the person who started it."""
        self.call.state = uamp.advance(
            CALL_TRANSITIONS, CallState(self.call.state), CallTrigger.ANSWER
        )
        self.call.answered_at = self.call.answered_at or self.now

    def add_agent(self, agent_id: str, host_id: int) -> None:
        """Let an agent take part, or change its host."""
        VoiceCallAgent.objects.update_or_create(
            call=self.call,
            agent_id=agent_id,
            defaults={"host_id": host_id, "joined_at": self.now, "left_at": None, "reason": ""},
        )
        rows = VoiceCallAgent.objects.select_related("agent", "host")
        self.agents[agent_id] = rows.get(call=self.call, agent_id=agent_id)
        self._has_changed = True

    def end_agent(self, agent_id: str, reason: CallAgentReason) -> None:
        """Remove an agent from the call."""
        row = self.agents[agent_id]
        row.left_at, row.reason = self.now, reason
        row.save(update_fields=["left_at", "reason"])
        self._has_changed = True

    def move(self, user_id: int, trigger: MemberTrigger, **fields: object) -> None:
        """Move a person to the next state."""
        row = self.members[user_id]
        row.state = uamp.advance(MEMBER_TRANSITIONS, CallMemberState(row.state), trigger)
        for name, value in fields.items():
            setattr(row, name, value)
        row.save()
        self._has_changed = True

    def settle(self) -> bool:
        """Write the call and the consequences of its members' moves, and publish it on commit.

        Returns whether anything changed. An agent whose host no longer takes part leaves, and the
        log says why.
        """
        states = [member.state for member in self.members.values()]
        if CallMemberState.JOINED not in states:
            has_run = self.call.state == CallState.RUNNING
            self._end(CallReason.ENDED if has_run else CallReason.CANCELLED)
        elif self.call.state == CallState.RINGING and CallMemberState.RINGING not in states:
            is_declined = CallMemberState.DECLINED in states
            self._end(CallReason.DECLINED if is_declined else CallReason.UNANSWERED)
        if self.call.ended_at is None:
            self._end_agents_without_host()
        if not self._has_changed:
            return False
        self.call.revision += 1
        self.call.save()
        event = call_updated(self.call, self.members.values(), self.agents.values())
        signal = fanout.signal_message(
            chat_id=self.call.chat_id, frame=uamp.encode(event), is_watched=True
        )
        fanout.publish_on_commit(self.call.chat_id, [signal])
        return True

    def acted(self, user_id: int, *, former_session: str = "") -> Acted:
        """Return the outcome of an action of a person."""
        others = {
            other: row.session_id if row.state == CallMemberState.JOINED else ""
            for other, row in self.members.items()
            if other != user_id and row.state in {CallMemberState.JOINED, CallMemberState.RINGING}
        }
        return Acted(self.call.call_id, others, former_session)

    def _add(self, user_id: int, state: CallMemberState) -> None:
        row = VoiceCallMember.objects.create(call=self.call, user_id=user_id, state=state)
        self.members[user_id] = VoiceCallMember.objects.select_related("user").get(pk=row.pk)

    def _end_agents_without_host(self) -> None:
        for agent_id, row in self.agents.items():
            if row.left_at is None and self.state_of(row.host_id) != CallMemberState.JOINED:
                self.end_agent(agent_id, CallAgentReason.HOST_LEFT)
                event = agent_left(self.call, row)
                entry = salted_entry(event)
                append(self.call.chat_id, [entry], at=self.now)

    def _end(self, reason: CallReason) -> None:
        for user_id, member in list(self.members.items()):
            if member.state == CallMemberState.RINGING:
                self.move(user_id, MemberTrigger.MISS)
            elif member.state == CallMemberState.JOINED:
                self.move(user_id, MemberTrigger.LEAVE)
        for agent_id, row in self.agents.items():
            if row.left_at is None:
                self.end_agent(agent_id, CallAgentReason.ENDED)
        self.call.state = uamp.advance(
            CALL_TRANSITIONS, CallState(self.call.state), CallTrigger.END
        )
        self.call.ended_at = self.now
        self.call.reason = reason
        self._has_changed = True
        event = call_ended(self.call, self.members.values())
        entry = salted_entry(event)
        append(self.call.chat_id, [entry], at=self.now)
