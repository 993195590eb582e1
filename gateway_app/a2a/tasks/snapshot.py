"""A response as the task that it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway_app.a2a.tasks.artifacts import artifacts_of, parts_of
from gateway_app.a2a.tasks.status import status_of
from gateway_app.a2a.tasks.task import Task, TaskMessage

if TYPE_CHECKING:
    from gateway_app.a2a.tasks.artifacts import Link
    from gateway_app.shapes.stored_response import StoredResponse
    from uamp import events as ev


def task_of(
    stored: StoredResponse,
    *,
    link: Link,
    history_length: int | None = None,
    with_artifacts: bool = True,
    accepts_data: bool = True,
    refusal: ev.PaymentError | None = None,
) -> Task:
    """Return a response as a task.

    `link` makes absolute addresses of media. `history_length` is the most messages of the history;
    None is all of them. `accepts_data` is as in `artifacts_of`. `refusal` is why a payment was not
    taken a moment ago.
    """
    artifacts = artifacts_of(stored, link, accepts_data=accepts_data) if with_artifacts else ()
    return Task(
        id=stored.id,
        context_id=stored.thread,
        status=status_of(stored, refusal=refusal),
        artifacts=tuple(artifacts),
        history=history_of(stored, link, history_length),
    )


def message_of(task: Task) -> TaskMessage | None:
    """Return a completed task as the one message that its answer is; None for any other."""
    parts = tuple(part for artifact in task.artifacts for part in artifact.parts)
    if task.status.state != "completed" or not parts:
        return None
    metadata = {} if task.status.message is None else task.status.message.metadata
    return TaskMessage(message_id=f"{task.id}-answer", role="agent", parts=parts, metadata=metadata)


def history_of(
    stored: StoredResponse, link: Link, history_length: int | None
) -> tuple[TaskMessage, ...]:
    """Return the message that the response answers, unless no history is wanted."""
    if not stored.question or history_length == 0:
        return ()
    asked_for = TaskMessage(
        message_id=stored.question_id or f"{stored.id}-question",
        role="user",
        parts=tuple(parts_of(stored.question, link)),
    )
    return (asked_for,)
