"""The one place where sessions, responses and their related rows change state.

Every change is a trigger in a table (`uamp.state`, `sessions_app.states`). The write is conditional
on the states that the trigger moves, so the row decides, not a process's memory of it. The turn
store (`store`) builds its SQL conditions from the same tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessions_app.models import (
    PaymentRequest,
    QueuedTurn,
    Response,
    Session,
    ToolCall,
    WebhookDelivery,
)
from sessions_app.states import (
    DELIVERY_TRANSITIONS,
    PAYMENT_TRANSITIONS,
    QUEUED_TURN_TRANSITIONS,
    TOOL_CALL_TRANSITIONS,
    ToolCallState,
    ToolCallTrigger,
)
from uamp import (
    RESPONSE_TRANSITIONS,
    SESSION_TRANSITIONS,
    LocalProtocolError,
    ResponseState,
    ResponseTrigger,
    SessionState,
    SessionTrigger,
    advance,
    moves,
)

if TYPE_CHECKING:
    from enum import StrEnum

    from django.db.models import Model, QuerySet

_TABLES: Final[dict[type[Model], dict[Any, dict[Any, Any]]]] = {
    Session: SESSION_TRANSITIONS,
    Response: RESPONSE_TRANSITIONS,
    ToolCall: TOOL_CALL_TRANSITIONS,
    PaymentRequest: PAYMENT_TRANSITIONS,
    WebhookDelivery: DELIVERY_TRANSITIONS,
    QueuedTurn: QUEUED_TURN_TRANSITIONS,
}

ENDS: Final = {
    ResponseState.COMPLETED: ResponseTrigger.COMPLETE,
    ResponseState.CANCELLED: ResponseTrigger.CANCEL,
    ResponseState.FAILED: ResponseTrigger.FAIL,
}
"""The trigger that leads to each end of a response."""

CALL_ENDS: Final = {
    ToolCallState.DONE: ToolCallTrigger.FINISH,
    ToolCallState.FAILED: ToolCallTrigger.FAIL,
    ToolCallState.CANCELLED: ToolCallTrigger.CANCEL,
    ToolCallState.UNKNOWN: ToolCallTrigger.LOSE,
}
"""The trigger that leads to each end of a tool call."""

HELD: Final = advance(SESSION_TRANSITIONS, SessionState.IDLE, SessionTrigger.ATTACH)
"""The initial state of a session that a connection holds from the start."""

BEGUN: Final = advance(RESPONSE_TRANSITIONS, ResponseState.QUEUED, ResponseTrigger.START)
"""The initial state of a response, which is run by the process that writes it."""


class TransitionRefused(LocalProtocolError):
    """No row was in a state that the trigger moves; nothing was written."""


def move(rows: QuerySet[Any], trigger: StrEnum, **changes: Any) -> int:
    """Apply `trigger` and `changes` to the `rows` that it may move; return how many moved.

    Other rows are left unchanged. Raises TransitionRefused if the trigger is not in the model's
    table.
    """
    try:
        cells = moves(_TABLES[rows.model], trigger)
        (after,) = set(cells.values())
    except ValueError:
        raise TransitionRefused(f"{trigger!r} moves no {rows.model.__name__}") from None
    return rows.filter(status__in=list(cells)).update(status=after, **changes)


def move_one(rows: QuerySet[Any], trigger: StrEnum, **changes: Any) -> None:
    """Move the only row of a queryset; raises TransitionRefused if it did not move."""
    if not move(rows, trigger, **changes):
        raise TransitionRefused(f"no {rows.model.__name__} was moved by {trigger}")


def move_row(row: Session | Response | ToolCall | PaymentRequest, trigger: StrEnum) -> None:
    """Set the state of a row that the caller has locked and will save.

    Raises LocalProtocolError if the table does not allow the transition.
    """
    table = _TABLES[type(row)]
    row.status = advance(table, type(next(iter(table)))(row.status), trigger)


def end_response(row: Response, status: str) -> None:
    """Set the final state of a locked response; raises LocalProtocolError if not allowed."""
    move_row(row, ENDS[ResponseState(status)])


def end_call(rows: QuerySet[ToolCall], status: str, **changes: Any) -> int:
    """Move calls to a final state; see `move`."""
    return move(rows, CALL_ENDS[ToolCallState(status)], **changes)


def response_ends() -> tuple[tuple[ResponseState, ResponseState], ...]:
    """Return every (previous state, end) pair of the table, for an SQL condition."""
    return tuple(
        (before, end)
        for end, trigger in ENDS.items()
        for before in moves(RESPONSE_TRANSITIONS, trigger)
    )
