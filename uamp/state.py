"""The life cycles of sessions and responses, as tables (UAMP §5.3, §6.5 to §6.9, §8.8).

A state changes only through a cell of these tables, in memory and in stored rows alike. Each
trigger leads to one state only, so that one guarded write can make the change.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from uamp.errors import LocalProtocolError


class SessionState(StrEnum):
    """Active while a connection holds it; idle until one resumes it; closed for good.

    On the wire (§8.8) a session that is not closed is `active`, because the client that reads it
    holds it.
    """

    IDLE = "idle"
    ACTIVE = "active"
    CLOSED = "closed"


class SessionTrigger(StrEnum):
    """The triggers of a session: a connection attaches or detaches it, or it is ended (§5.3)."""

    ATTACH = "attach"
    DETACH = "detach"
    END = "end"


class ResponseState(StrEnum):
    """Queued until a process runs it; waiting for a tool, a person or a payment; then ended."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    WAITING = "waiting"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class ResponseTrigger(StrEnum):
    """The triggers of a response; `PARK` hands it back for another process to restart."""

    START = "start"
    WAIT = "wait"
    CONTINUE = "continue"
    PARK = "park"
    COMPLETE = "complete"
    CANCEL = "cancel"
    FAIL = "fail"


SESSION_TRANSITIONS: dict[SessionState, dict[SessionTrigger, SessionState]] = {
    SessionState.IDLE: {
        SessionTrigger.ATTACH: SessionState.ACTIVE,
        SessionTrigger.END: SessionState.CLOSED,
    },
    SessionState.ACTIVE: {
        SessionTrigger.ATTACH: SessionState.ACTIVE,
        SessionTrigger.DETACH: SessionState.IDLE,
        SessionTrigger.END: SessionState.CLOSED,
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
        ResponseTrigger.WAIT: ResponseState.WAITING,
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
    """Return the state after ``trigger``; raise LocalProtocolError if there is no such cell."""
    try:
        return table[state][trigger]
    except KeyError:
        raise LocalProtocolError(f"no transition from {state} by {trigger}") from None


def moves(
    table: Mapping[_State, Mapping[_Trigger, _State]], trigger: _Trigger
) -> dict[_State, _State]:
    """Return every state that ``trigger`` applies to and the state after it, to guard a write."""
    return {state: row[trigger] for state, row in table.items() if trigger in row}


def unfinished(table: Mapping[_State, Mapping[_Trigger, _State]]) -> tuple[_State, ...]:
    """Return the states of a table that are not final, in table order."""
    return tuple(state for state, row in table.items() if row)
