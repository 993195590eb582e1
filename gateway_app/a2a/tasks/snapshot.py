"""The current state of a response as a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uamp
from gateway_app.a2a.tasks.artifacts import artifacts_of, medium_part, parts_of
from gateway_app.a2a.tasks.status import status_of
from gateway_app.a2a.tasks.task import Task, TaskMessage, TaskPart

if TYPE_CHECKING:
    from gateway_app.a2a.tasks.artifacts import Link
    from gateway_app.types.follow_up import ClientFollowUp, FollowUpPart
    from gateway_app.types.stored_response import StoredResponse
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
    """Convert a response to a task.

    `link` returns the absolute address of a medium. `history_length` limits the messages of the
    history; None includes all. See `artifacts_of` for `accepts_data`. `refusal` is the payment
    error that has just occurred, if any.
    """
    artifacts = artifacts_of(stored, link, accepts_data=accepts_data) if with_artifacts else ()
    return Task(
        id=stored.id,
        context_id=stored.thread,
        status=status_of(stored, refusal=refusal),
        artifacts=tuple(artifacts),
        history=history_of(stored, link, history_length),
        signature=stored.signature,
    )


def message_of(task: Task) -> TaskMessage | None:
    """Return the answer of a completed task as one message; None for any other task."""
    parts = tuple(part for artifact in task.artifacts for part in artifact.parts)
    if task.status.state != "completed" or not parts:
        return None
    metadata = {} if task.status.message is None else task.status.message.metadata
    return TaskMessage(message_id=f"{task.id}-answer", role="agent", parts=parts, metadata=metadata)


def history_of(
    stored: StoredResponse, link: Link, history_length: int | None
) -> tuple[TaskMessage, ...]:
    """Return the message that began the task, and those that answered its questions.

    They are in chronological order, limited to the newest `history_length`.
    """
    if not stored.question or history_length == 0:
        return ()
    question = TaskMessage(
        message_id=stored.question_id or f"{stored.id}-question",
        role="user",
        parts=tuple(parts_of(stored.question, link)),
    )
    messages = (question, *(_follow_up(message, link) for message in stored.follow_ups))
    return messages if history_length is None else messages[-history_length:]


def _follow_up(message: ClientFollowUp, link: Link) -> TaskMessage:
    parts = tuple(_part(part, link) for part in message.parts)
    return TaskMessage(message_id=message.message_id, role="user", parts=parts)


def _part(part: FollowUpPart, link: Link) -> TaskPart:
    if isinstance(part.medium, uamp.MediaContent):
        return medium_part(part.medium, link)
    return TaskPart(text=part.text, data=part.data)
