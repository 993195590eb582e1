"""The status of a task: the state of its response, and the pending questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import uamp
from gateway_app.a2a.tasks import payments
from gateway_app.a2a.tasks.task import TaskMessage, TaskPart, TaskStatus
from gateway_app.types.charged_errors import charges_of
from uamp import events as ev
from uamp.amounts import format_amount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway_app.a2a.tasks.task import TaskState
    from gateway_app.types.stored_response import StoredResponse
    from uamp.events import Event

_STATES: Final[dict[str, TaskState]] = {
    "queued": "submitted",
    "completed": "completed",
    "cancelled": "canceled",
}


def status_of(stored: StoredResponse, *, refusal: ev.PaymentError | None = None) -> TaskStatus:
    """Return the status of a response, with its pending questions or the reason of its failure."""
    state: TaskState = _STATES.get(stored.status, "working")
    parts: list[TaskPart] = []
    metadata: dict[str, Any] = {}
    if stored.status == "failed":
        error = stored.error or uamp.ErrorDetail(code="internal_error", message="It failed.")
        state = "rejected" if stored.is_rejected else "failed"
        parts = [TaskPart(text=error.message)]
        about = {"code": error.code, **charges_of(error)}
        metadata = {"uamp_error": about, **payments.failed(error.code)}
    elif stored.pending_questions and not stored.has_ended:
        state = "input-required"
        for event in stored.pending_questions:
            parts += _asking(event, stored.id)
            metadata.update(payments.demanded(event, refusal))
    elif stored.status == "completed" and stored.payments:
        metadata = payments.completed(stored.payments)
    message = None
    if parts or metadata:
        message = TaskMessage(
            message_id=f"{stored.id}-{state}",
            role="agent",
            parts=tuple(parts) or (TaskPart(text="Paid."),),
            metadata=metadata,
        )
    return TaskStatus(state=state, timestamp=timestamp(stored), message=message)


def timestamp(stored: StoredResponse) -> str:
    """Return the time of the response's last change, in UTC with milliseconds."""
    return stored.changed_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _asking(event: Event, task_id: str) -> Iterator[TaskPart]:
    """Yield a question as a sentence for people and as data for programs."""
    match event:
        case ev.ToolCall():
            yield TaskPart(text=f"Run the tool {event.name}, and send its result.")
        case ev.ToolApprovalRequired():
            yield TaskPart(text=f"May {event.agent or 'the agent'} call {event.name}?")
        case ev.PaymentRequired():
            needed = event.requirements
            costs = format_amount(needed.amount, needed.currency)
            what = "This answer"
            if event.response_id != task_id:
                what = f"Work delegated to {(needed.extra or {}).get('agent', 'another agent')}"
            yield TaskPart(text=f"{what} costs up to {costs}.")
    members = uamp.to_dict(event)
    yield TaskPart(data={name: members[name] for name in members if name not in _FRAME})


_FRAME: Final = {"event_id", "timestamp", "session_id", "seq"}
