"""The life cycles of sessions and responses, as tables (UAMP §5.3, §6.5 to §6.9, §8.8).

Law of this file: a state changes only by a cell of these tables. Stored rows obey the same tables.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from uamp.errors import LocalProtocolError


class SessionState(StrEnum):
    """Connecting until session.created; active while a response runs; closed for ever."""

    CONNECTING = "connecting"
    IDLE = "idle"
    ACTIVE = "active"
    CLOSED = "closed"


class SessionTrigger(StrEnum):
    """What moves a session."""

    CREATED = "created"
    REFUSED = "refused"
    RESPONSE_STARTED = "response_started"
    RESPONSES_ENDED = "responses_ended"
    ENDED = "ended"


class ResponseState(StrEnum):
    """Waiting is for a tool result or a payment; the last three are terminal."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    WAITING = "waiting"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class ResponseTrigger(StrEnum):
    """What moves a response; ``PARK`` gives it back to be continued by another process."""

    START = "start"
    WAIT = "wait"
    CONTINUE = "continue"
    PARK = "park"
    COMPLETE = "complete"
    CANCEL = "cancel"
    FAIL = "fail"


SESSION_TRANSITIONS: dict[SessionState, dict[SessionTrigger, SessionState]] = {
    SessionState.CONNECTING: {
        SessionTrigger.CREATED: SessionState.IDLE,
        SessionTrigger.REFUSED: SessionState.CLOSED,
    },
    SessionState.IDLE: {
        SessionTrigger.RESPONSE_STARTED: SessionState.ACTIVE,
        SessionTrigger.ENDED: SessionState.CLOSED,
    },
    SessionState.ACTIVE: {
        SessionTrigger.RESPONSE_STARTED: SessionState.ACTIVE,
        SessionTrigger.RESPONSES_ENDED: SessionState.IDLE,
        SessionTrigger.ENDED: SessionState.CLOSED,
    },
    SessionState.CLOSED: {},
}

RESPONSE_TRANSITIONS: dict[ResponseState, dict[ResponseTrigger, ResponseState]] = {
    ResponseState.QUEUED: {
        ResponseTrigger.START: ResponseState.IN_PROGRESS,
        ResponseTrigger.CANCEL: ResponseState.CANCELLED,
        ResponseTrigger.FAIL: ResponseState.FAILED,
    },
    ResponseState.IN_PROGRESS: {
        ResponseTrigger.WAIT: ResponseState.WAITING,
        ResponseTrigger.PARK: ResponseState.QUEUED,
        ResponseTrigger.COMPLETE: ResponseState.COMPLETED,
        ResponseTrigger.CANCEL: ResponseState.CANCELLED,
        ResponseTrigger.FAIL: ResponseState.FAILED,
    },
    ResponseState.WAITING: {
        ResponseTrigger.CONTINUE: ResponseState.IN_PROGRESS,
        ResponseTrigger.CANCEL: ResponseState.CANCELLED,
        ResponseTrigger.FAIL: ResponseState.FAILED,
    },
    ResponseState.COMPLETED: {},
    ResponseState.CANCELLED: {},
    ResponseState.FAILED: {},
}

TERMINAL: frozenset[ResponseState] = frozenset(
    state for state, row in RESPONSE_TRANSITIONS.items() if not row
)

_State = TypeVar("_State", bound=StrEnum)
_Trigger = TypeVar("_Trigger", bound=StrEnum)


def advance(
    table: Mapping[_State, Mapping[_Trigger, _State]], state: _State, trigger: _Trigger
) -> _State:
    """Return the state after ``trigger``; raise LocalProtocolError where the table has no cell."""
    try:
        return table[state][trigger]
    except KeyError:
        raise LocalProtocolError(f"no transition from {state} by {trigger}") from None
