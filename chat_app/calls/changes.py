"""All that changes a call, each under the lock of its chat. Synchronous.

The members of the chat receive the call as it is after each change (`call.updated`), and its end is
an entry of the log. Functions open their own transaction.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

import uamp
from chat_app.calls.events import call_ended, call_updated
from chat_app.calls.states import (
    CALL_TRANSITIONS,
    MEMBER_TRANSITIONS,
    CallTrigger,
    MemberTrigger,
)
from chat_app.log import fanout
from chat_app.log.entries import NewEvent, append, lock_chats
from chat_app.models import (
    CallMemberState,
    CallReason,
    CallState,
    Participant,
    VoiceCall,
    VoiceCallMember,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

SWEEP_MOST: Final = 100
"""So many chats are looked at in one sweep."""


class NoSuchMember(LookupError):
    """The person, or the one who is called, is not in the chat; the answer is the same."""


class NoOther(LookupError):
    """No other person is in the chat."""


class NoSuchCall(LookupError):
    """No call goes on in the chat, or another one."""


class CallRuns(Exception):
    """A call goes on in the chat already: `call_id`."""

    def __init__(self, call_id: str) -> None:
        super().__init__(f"A call goes on in this chat: {call_id}. Join it.")
        self.call_id = call_id


class CallIsFull(Exception):
    """As many people take part as are allowed."""


class NotInCall(Exception):
    """The person does not take part in the call, and is not called."""


@dataclass(frozen=True, slots=True)
class Acted:
    """What an act led to: its call, and who is called or takes part besides the one who acted.

    `others` are user ids, each with the session in which they take part, "" for who is called.
    `former_session` is the one in which the person took part until now.
    """

    call_id: str
    others: dict[int, str] = field(default_factory=dict)
    former_session: str = ""

    def only(self, to: str | None) -> int | None:
        """Return the other person whom an act names, or the only one there is."""
        if to is not None:
            return next((user_id for user_id in self.others if str(user_id) == to), None)
        return next(iter(self.others)) if len(self.others) == 1 else None


@dataclass(frozen=True, slots=True)
class Act:
    """Who does something in the call of a chat, in which session.

    `call_id` is the call that they mean, None for the one that goes on. `to` is the id of the
    person whom it is for; `is_for_one` where it is for one person only.
    """

    chat_id: str
    user_id: int
    session_id: str
    call_id: str | None = None
    to: str | None = None
    is_for_one: bool = False


def begin_call(act: Act, media: Sequence[str] = ()) -> Acted:
    """Call the people of a chat, or one of them; a participant calls one more person so.

    Raises NoSuchMember, NoOther, CallRuns, NoSuchCall for the id of a call that has ended, and
    NotInCall where it is for one and several would be called.
    """
    chat_id, user_id = act.chat_id, act.user_id
    with transaction.atomic():
        lock_chats([chat_id])
        people = _people(chat_id)
        called = {m for m in people - {user_id} if act.to in {None, str(m)}}
        if user_id not in people or (act.to is not None and not called):
            raise NoSuchMember
        if act.is_for_one and len(called) > 1:
            raise NotInCall
        now = timezone.now()
        open_call = VoiceCall.objects.filter(chat_id=chat_id, ended_at__isnull=True).first()
        if open_call is not None:
            change = _Change(open_call, now)
            if act.to is None or change.state_of(user_id) != CallMemberState.JOINED:
                raise CallRuns(open_call.call_id)
        else:
            if not called:
                raise NoOther
            change = _Change(_new_call(act, media, now), now)
            change.join(user_id, act.session_id)
        for other in sorted(called):
            # One whom the call rings for already is not rung for longer.
            if change.state_of(other) not in {CallMemberState.JOINED, CallMemberState.RINGING}:
                change.ring(other)
        change.settle()
        return change.acted(user_id)


def join_call(act: Act) -> Acted:
    """Take part in the call of a chat, in this session instead of another one.

    Raises NoSuchMember, NoSuchCall, CallIsFull, and NotInCall where it is for a person who is not
    in the call.
    """
    user_id, session_id = act.user_id, act.session_id
    with transaction.atomic():
        change = _open(act)
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
    """Leave the call of a chat, or do not join it; the last one who leaves ends it.

    Raises NoSuchMember, NoSuchCall, and NotInCall for a person who is not called and does not take
    part.
    """
    trigger = MemberTrigger.DECLINE if declines else MemberTrigger.LEAVE
    with transaction.atomic():
        change = _open(act)
        state = change.state_of(act.user_id)
        if state is None or trigger not in MEMBER_TRANSITIONS[state]:
            raise NotInCall
        others = change.acted(act.user_id)
        change.move(act.user_id, trigger)
        change.settle()
        return others


def end_participation(*, chat_id: str, user_id: int, now: datetime) -> None:
    """Take a person who left the chat out of its call; needs a transaction that locks the chat."""
    call = VoiceCall.objects.filter(chat_id=chat_id, ended_at__isnull=True).first()
    if call is None:
        return
    change = _Change(call, now)
    state = change.state_of(user_id)
    if state is not None and MemberTrigger.LEAVE in MEMBER_TRANSITIONS[state]:
        change.move(user_id, MemberTrigger.LEAVE)
        change.settle()


def renew_participants(session_ids: Collection[str], *, now: datetime) -> None:
    """Say that a process still holds these sessions; those of calls are seen."""
    held = set(session_ids)
    if not held:
        return
    # From the few calls that go on to their members: a join may begin at the members of all calls.
    going_on = VoiceCall.objects.filter(ended_at__isnull=True)
    rows = VoiceCallMember.objects.filter(
        call_id__in=going_on.values("id"), state=CallMemberState.JOINED
    ).values_list("id", "session_id")
    seen = [row_id for row_id, session_id in rows if session_id in held]
    if seen:
        VoiceCallMember.objects.filter(pk__in=seen).update(seen_at=now)


def sweep_calls(now: datetime) -> int:
    """End what rang too long and the participation of those whose connection is lost.

    Returns how many calls were changed.
    """
    lost = now - timedelta(seconds=settings.UAMP_CALL_GRACE_SECONDS)
    members = VoiceCallMember.objects.filter(call=OuterRef("pk"))
    joined = members.filter(state=CallMemberState.JOINED)
    over = members.filter(state=CallMemberState.RINGING, rings_until__lte=now)
    due = VoiceCall.objects.filter(ended_at__isnull=True).filter(
        Exists(over) | Exists(joined.filter(seen_at__lt=lost)) | ~Exists(joined)
    )
    changed = 0
    for chat_id in list(due.values_list("chat_id", flat=True)[:SWEEP_MOST]):
        with transaction.atomic():
            lock_chats([chat_id])
            # Another process may have been here first.
            call = VoiceCall.objects.filter(chat_id=chat_id, ended_at__isnull=True).first()
            if call is not None:
                changed += _sweep_call(_Change(call, now), lost)
    return changed


def _sweep_call(change: _Change, lost: datetime) -> bool:
    for user_id, member in list(change.members.items()):
        rings_until, seen_at = member.rings_until, member.seen_at
        if member.state == CallMemberState.RINGING and rings_until and rings_until <= change.now:
            change.move(user_id, MemberTrigger.MISS)
        if member.state == CallMemberState.JOINED and seen_at and seen_at < lost:
            change.move(user_id, MemberTrigger.LEAVE)
    return change.settle()


def _people(chat_id: str) -> set[int]:
    return set(
        Participant.objects.filter(
            chat_id=chat_id, user__isnull=False, left_at__isnull=True
        ).values_list("user_id", flat=True)
    )


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


def _open(act: Act) -> _Change:
    """Return a change of the call that goes on in a chat, whose row is locked."""
    lock_chats([act.chat_id])
    if act.user_id not in _people(act.chat_id):
        raise NoSuchMember
    call = VoiceCall.objects.filter(chat_id=act.chat_id, ended_at__isnull=True).first()
    if call is None or act.call_id not in {None, call.call_id}:
        raise NoSuchCall
    change = _Change(call, timezone.now())
    if (act.to is not None or act.is_for_one) and change.acted(act.user_id).only(act.to) is None:
        raise NotInCall
    return change


class _Change:
    """One change of a call: moves of its members, then `settle`, which writes what follows."""

    def __init__(self, call: VoiceCall, now: datetime) -> None:
        self.call = call
        self.now = now
        rows = call.members.select_related("user").order_by("id")
        self.members: dict[int, VoiceCallMember] = {row.user_id: row for row in rows}
        self._has_changed = False

    def state_of(self, user_id: int) -> CallMemberState | None:
        """Return a person's state in the call, None for one who was never called."""
        row = self.members.get(user_id)
        return None if row is None else CallMemberState(row.state)

    def ring(self, user_id: int) -> None:
        """Call a person, for a time."""
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
        """Let the call run: a person has joined the one who began it."""
        self.call.state = uamp.advance(
            CALL_TRANSITIONS, CallState(self.call.state), CallTrigger.ANSWER
        )
        self.call.answered_at = self.call.answered_at or self.now

    def move(self, user_id: int, trigger: MemberTrigger, **fields: object) -> None:
        """Move a person to the next state."""
        row = self.members[user_id]
        row.state = uamp.advance(MEMBER_TRANSITIONS, CallMemberState(row.state), trigger)
        for name, value in fields.items():
            setattr(row, name, value)
        row.save()
        self._has_changed = True

    def settle(self) -> bool:
        """Write the call with what follows from its members, and publish it on commit."""
        states = [member.state for member in self.members.values()]
        if CallMemberState.JOINED not in states:
            has_run = self.call.state == CallState.RUNNING
            self._end(CallReason.ENDED if has_run else CallReason.CANCELLED)
        elif self.call.state == CallState.RINGING and CallMemberState.RINGING not in states:
            is_declined = CallMemberState.DECLINED in states
            self._end(CallReason.DECLINED if is_declined else CallReason.UNANSWERED)
        if not self._has_changed:
            return False
        self.call.revision += 1
        self.call.save()
        event = call_updated(self.call, self.members.values())
        signal = fanout.signal_message(
            chat_id=self.call.chat_id, frame=uamp.encode(event), is_watched=True
        )
        fanout.publish_on_commit(self.call.chat_id, [signal])
        return True

    def acted(self, user_id: int, *, former_session: str = "") -> Acted:
        """Return what an act of a person led to."""
        others = {
            other: row.session_id if row.state == CallMemberState.JOINED else ""
            for other, row in self.members.items()
            if other != user_id and row.state in {CallMemberState.JOINED, CallMemberState.RINGING}
        }
        return Acted(self.call.call_id, others, former_session)

    def _add(self, user_id: int, state: CallMemberState) -> None:
        row = VoiceCallMember.objects.create(call=self.call, user_id=user_id, state=state)
        self.members[user_id] = VoiceCallMember.objects.select_related("user").get(pk=row.pk)

    def _end(self, reason: CallReason) -> None:
        for user_id, member in list(self.members.items()):
            if member.state == CallMemberState.RINGING:
                self.move(user_id, MemberTrigger.MISS)
            elif member.state == CallMemberState.JOINED:
                self.move(user_id, MemberTrigger.LEAVE)
        self.call.state = uamp.advance(
            CALL_TRANSITIONS, CallState(self.call.state), CallTrigger.END
        )
        self.call.ended_at = self.now
        self.call.reason = reason
        self._has_changed = True
        event = call_ended(self.call, self.members.values())
        entry = NewEvent(type=uamp.type_of(event), payload=uamp.to_dict(event))
        append(self.call.chat_id, [entry], at=self.now)
