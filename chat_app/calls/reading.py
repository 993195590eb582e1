"""Queries about calls: the call in progress, and the recipients of a signal. Synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chat_app.calls.call_change import NotInCall
from chat_app.calls.events import call_updated
from chat_app.models import CallMemberState, VoiceCall, VoiceCallMember

if TYPE_CHECKING:
    from uamp import events as ev


def current_call(chat_id: str) -> ev.CallUpdated | None:
    """Return the call in progress in a chat, if any. The caller has checked the reader."""
    call = VoiceCall.objects.filter(chat_id=chat_id, ended_at__isnull=True).first()
    if call is None:
        return None
    return _event_of(call)


def ringing_calls(user_id: int) -> list[ev.CallUpdated]:
    """Return the calls now ringing for a person, in the chats that they are in."""
    ringing = VoiceCallMember.objects.filter(
        user_id=user_id,
        state=CallMemberState.RINGING,
        call__ended_at__isnull=True,
        call__chat__participants__user_id=user_id,
        call__chat__participants__left_at__isnull=True,
    ).select_related("call")
    return [_event_of(row.call) for row in ringing]


def _event_of(call: VoiceCall) -> ev.CallUpdated:
    return call_updated(
        call,
        call.members.select_related("user").order_by("id"),
        call.agents.select_related("agent").order_by("id"),
    )


def session_of_participant(
    *, chat_id: str, call_id: str, session_id: str, to_user_id: str
) -> tuple[int, str]:
    """Return the user and the session to which a session in a call may send; one query.

    Raises NotInCall unless both take part in that call, the sender in this session.
    """
    rows = VoiceCallMember.objects.filter(
        call__chat_id=chat_id,
        call__call_id=call_id,
        call__ended_at__isnull=True,
        state=CallMemberState.JOINED,
    ).values_list("user_id", "session_id")
    sessions = dict(rows)
    if session_id not in sessions.values():
        raise NotInCall
    for user_id, row_session in sessions.items():
        if str(user_id) == to_user_id and row_session != session_id:
            return user_id, row_session
    raise NotInCall
