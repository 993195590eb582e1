"""Everything that changes a call, each under the lock of its chat. Synchronous.

The members of the chat receive the state of the call after each change (`call.updated`); the end of
a call is a log entry. Functions open their own transaction.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from chat_app.calls.call_change import (
    CallChange,
    NoSuchCall,
    NoSuchMember,
    NotInCall,
    has_agent_for_calls,
    open_change,
    people_of,
)
from chat_app.calls.states import MEMBER_TRANSITIONS, MemberTrigger
from chat_app.log.entries import lock_chats
from chat_app.log.homes import BelongsElsewhere, check_is_home, guests
from chat_app.models import CallMemberState, VoiceCall, VoiceCallMember

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from chat_app.calls.call_change import Act, Acted

MAX_SWEEP: Final = 100
"""The most chats that one sweep visits."""
NO_CALLS: Final = "This chat is hosted on another server, whose people cannot be called."

NO_GUESTS: Final = "Calls do not reach people on other servers."


class NoOther(LookupError):
    """The chat has no other person, and no agent that takes calls."""


class CallRuns(Exception):
    """The chat already has a call in progress: `call_id`."""

    def __init__(self, call_id: str) -> None:
        super().__init__(f"A call is in progress in this chat: {call_id}. Join it.")
        self.call_id = call_id


class CallIsFull(Exception):
    """The call has as many participants as allowed."""


def begin_call(act: Act, media: Sequence[str] = ()) -> Acted:
    """Call the people of a chat, or one of them; a participant can call one more person this way.

    People of other servers are not called. If a person is alone in a chat with an agent that takes
    calls, the call is running at once. Raises NoSuchMember, BelongsElsewhere in a mirror and for
    guests alone, NoOther, CallRuns, NoSuchCall for the id of a call that has ended, and NotInCall
    if the action is for one person but would call several.
    """
    chat_id, user_id = act.chat_id, act.user_id
    with transaction.atomic():
        chat = lock_chats([chat_id]).get(chat_id)
        people = people_of(chat_id)
        called = {m for m in people - {user_id} if act.to in {None, str(m)}}
        if user_id not in people or (act.to is not None and not called):
            raise NoSuchMember
        check_is_home(chat, NO_CALLS)
        away = set(guests().filter(pk__in=called).values_list("pk", flat=True))
        called -= away
        if away and not called and (act.to is not None or not has_agent_for_calls(chat_id)):
            raise BelongsElsewhere(NO_GUESTS)
        if act.is_for_one and len(called) > 1:
            raise NotInCall
        now = timezone.now()
        open_call = VoiceCall.objects.filter(chat_id=chat_id, ended_at__isnull=True).first()
        if open_call is not None:
            change = CallChange(open_call, now)
            if act.to is None or change.state_of(user_id) != CallMemberState.JOINED:
                raise CallRuns(open_call.call_id)
        else:
            if not called and not has_agent_for_calls(chat_id):
                raise NoOther
            change = CallChange(_new_call(act, media, now), now)
            change.join(user_id, act.session_id)
            if not called:
                change.answer()
        for other in sorted(called):
            # Calling someone who is already being called does not extend the ringing.
            if change.state_of(other) not in {CallMemberState.JOINED, CallMemberState.RINGING}:
                change.ring(other)
        change.settle()
        return change.acted(user_id)


def join_call(act: Act) -> Acted:
    """Join the call of a chat in this session, leaving any other session.

    Raises NoSuchMember, NoSuchCall, CallIsFull, and NotInCall if the addressed person is not in the
    call.
    """
    user_id, session_id = act.user_id, act.session_id
    with transaction.atomic():
        change = open_change(act)
        row = change.members.get(user_id)
        former = row.session_id if row and row.state == CallMemberState.JOINED else ""
        if former == session_id:
            return change.acted(user_id)
        joined = [m for m in change.members.values() if m.state == CallMemberState.JOINED]
        if not former and len(joined) >= settings.UAMP_CALL_PARTICIPANTS:
            raise CallIsFull
        change.join(user_id, session_id)
        if user_id != change.call.started_by_id or len(joined) > 1:
            change.answer()
        change.settle()
        return change.acted(user_id, former_session=former)


def leave_call(act: Act, *, declines: bool = False) -> Acted:
    """Leave or decline the call of a chat; it ends when the last participant leaves.

    Raises NoSuchMember, NoSuchCall, and NotInCall if the person neither takes part nor is called.
    """
    trigger = MemberTrigger.DECLINE if declines else MemberTrigger.LEAVE
    with transaction.atomic():
        change = open_change(act)
        state = change.state_of(act.user_id)
        if state is None or trigger not in MEMBER_TRANSITIONS[state]:
            raise NotInCall
        others = change.acted(act.user_id)
        change.move(act.user_id, trigger)
        change.settle()
        return others


def end_participation(*, chat_id: str, user_id: int, now: datetime) -> None:
    """Remove a person who left the chat from its call; needs a transaction that locks the chat."""
    call = VoiceCall.objects.filter(chat_id=chat_id, ended_at__isnull=True).first()
    if call is None:
        return
    change = CallChange(call, now)
    state = change.state_of(user_id)
    if state is not None and MemberTrigger.LEAVE in MEMBER_TRANSITIONS[state]:
        change.move(user_id, MemberTrigger.LEAVE)
        change.settle()


def renew_participants(session_ids: Collection[str], *, now: datetime) -> None:
    """Mark the call participants in the sessions that a process still holds as seen."""
    held = set(session_ids)
    if not held:
        return
    # Start from the few calls in progress: a join might start from the members of all calls.
    going_on = VoiceCall.objects.filter(ended_at__isnull=True)
    rows = VoiceCallMember.objects.filter(
        call_id__in=going_on.values("id"), state=CallMemberState.JOINED
    ).values_list("id", "session_id")
    seen = [row_id for row_id, session_id in rows if session_id in held]
    if seen:
        VoiceCallMember.objects.filter(pk__in=seen).update(seen_at=now)


def running_calls() -> QuerySet[VoiceCall]:
    """Return the calls that have not ended."""
    return VoiceCall.objects.filter(ended_at__isnull=True)


def sweep_calls(now: datetime) -> int:
    """End overdue ringing, and drop participants whose connection is lost.

    Returns the number of calls changed.
    """
    lost = now - timedelta(seconds=settings.UAMP_CALL_GRACE_SECONDS)
    members = VoiceCallMember.objects.filter(call=OuterRef("pk"))
    joined = members.filter(state=CallMemberState.JOINED)
    over = members.filter(state=CallMemberState.RINGING, rings_until__lte=now)
    due = running_calls().filter(
        Exists(over) | Exists(joined.filter(seen_at__lt=lost)) | ~Exists(joined)
    )
    changed = 0
    for chat_id in list(due.values_list("chat_id", flat=True)[:MAX_SWEEP]):
        with transaction.atomic():
            lock_chats([chat_id])
            # Another process may have got here first.
            call = VoiceCall.objects.filter(chat_id=chat_id, ended_at__isnull=True).first()
            if call is not None:
                changed += _sweep_call(CallChange(call, now), lost)
    return changed


def _sweep_call(change: CallChange, lost: datetime) -> bool:
    for user_id, member in list(change.members.items()):
        rings_until, seen_at = member.rings_until, member.seen_at
        if member.state == CallMemberState.RINGING and rings_until and rings_until <= change.now:
            change.move(user_id, MemberTrigger.MISS)
        if member.state == CallMemberState.JOINED and seen_at and seen_at < lost:
            change.move(user_id, MemberTrigger.LEAVE)
    return change.settle()


def _new_call(act: Act, media: Sequence[str], now: datetime) -> VoiceCall:
    chosen = act.call_id or f"call_{uuid.uuid4().hex}"
    if VoiceCall.objects.filter(chat_id=act.chat_id, call_id=chosen).exists():
        raise NoSuchCall
    return VoiceCall.objects.create(
        chat_id=act.chat_id,
        call_id=chosen,
        started_by_id=act.user_id,
        media=list(media) or ["audio"],
        started_at=now,
        revision=0,
    )
