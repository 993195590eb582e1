"""Transitions of a call, and of a person in it (uamp.state.advance)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from chat_app.models import CallMemberState, CallState

if TYPE_CHECKING:
    from collections.abc import Mapping


class CallTrigger(StrEnum):
    """The triggers of a call."""

    ANSWER = "answer"
    END = "end"


class MemberTrigger(StrEnum):
    """The triggers of a person in a call."""

    RING = "ring"
    JOIN = "join"
    DECLINE = "decline"
    MISS = "miss"
    LEAVE = "leave"


CALL_TRANSITIONS: Final[Mapping[CallState, Mapping[CallTrigger, CallState]]] = {
    CallState.RINGING: {
        CallTrigger.ANSWER: CallState.RUNNING,
        CallTrigger.END: CallState.ENDED,
    },
    CallState.RUNNING: {
        CallTrigger.ANSWER: CallState.RUNNING,
        CallTrigger.END: CallState.ENDED,
    },
    CallState.ENDED: {},
}

_S, _T = CallMemberState, MemberTrigger
MEMBER_TRANSITIONS: Final[Mapping[CallMemberState, Mapping[MemberTrigger, CallMemberState]]] = {
    _S.RINGING: {
        _T.RING: _S.RINGING,
        _T.JOIN: _S.JOINED,
        _T.DECLINE: _S.DECLINED,
        _T.LEAVE: _S.DECLINED,
        _T.MISS: _S.MISSED,
    },
    # A participant who joins again moves to another session.
    _S.JOINED: {_T.JOIN: _S.JOINED, _T.LEAVE: _S.LEFT, _T.DECLINE: _S.LEFT},
    _S.DECLINED: {_T.RING: _S.RINGING, _T.JOIN: _S.JOINED},
    _S.MISSED: {_T.RING: _S.RINGING, _T.JOIN: _S.JOINED},
    _S.LEFT: {_T.RING: _S.RINGING, _T.JOIN: _S.JOINED},
}
