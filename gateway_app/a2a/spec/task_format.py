"""The format of the transports' specification: `task.*` events and task statuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from gateway_app.a2a.tasks.messages import Id, SentMessage, invalid
from gateway_app.a2a.tasks.task import StatusUpdate, Task, TaskPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gateway_app.a2a.tasks.errors import TaskError
    from gateway_app.a2a.tasks.task import TaskStatus, TaskUpdate

PAYMENT_CODE = "payment_required"


class _WireSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of client input; unknown members are ignored."""


class SpecFile(_WireSpec, frozen=True):
    """The file of a part, as base64 bytes or a URI."""

    bytes: str | None = None
    uri: str | None = None
    name: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    mime_type: Annotated[str, msgspec.Meta(max_length=127)] | None = None


class SpecPart(_WireSpec, frozen=True):
    """A part of a message; `type` names the member that is set."""

    type: Literal["text", "file", "data"]
    text: str | None = None
    file: SpecFile | None = None
    data: Any = None


class SpecMessage(_WireSpec, frozen=True):
    """A message of a client."""

    role: Literal["user"]
    parts: Annotated[tuple[SpecPart, ...], msgspec.Meta(min_length=1, max_length=64)]
    message_id: Id | None = None
    context_id: Annotated[str, msgspec.Meta(max_length=256)] = ""
    metadata: dict[str, Any] | None = None


class TaskRequest(_WireSpec, frozen=True):
    """The body of `POST /tasks`."""

    message: SpecMessage
    context_id: Annotated[str, msgspec.Meta(max_length=256)] = ""


def parse_message(body: TaskRequest, *, new_id: str) -> SentMessage:
    """Return the message of a request; raises RemoteProtocolError for an invalid part."""
    message = body.message
    return SentMessage(
        message_id=message.message_id or new_id,
        parts=tuple(_part(part) for part in message.parts),
        context_id=message.context_id or body.context_id,
        metadata=message.metadata or {},
    )


def _part(part: SpecPart) -> TaskPart:
    if part.type == "data":
        return TaskPart(data=part.data)
    if part.type == "text" and part.text is not None:
        return TaskPart(text=part.text)
    file = part.file
    if part.type == "text" or file is None or (file.bytes is None) == (file.uri is None):
        raise invalid(
            f"A part of type {part.type} must have `{part.type}`, and a file bytes or a uri."
        )
    return TaskPart(raw=file.bytes, url=file.uri, filename=file.name, media_type=file.mime_type)


def started(task: Task) -> tuple[str, dict[str, Any]]:
    """Return the first event of a stream."""
    return "task.started", {
        "id": task.id,
        "status": "running",
        "contextId": task.context_id,
    }


def event_of(update: TaskUpdate) -> tuple[str, dict[str, Any]]:
    """Return the event for an update: a piece of the answer, or a new status.

    A piece without `append` begins the answer, or replaces the text so far.
    """
    if isinstance(update, StatusUpdate):
        return _end(update.task_id, update.status)
    return "task.message", {
        "id": update.task_id,
        "role": "agent",
        "parts": _parts(update.artifact.parts),
        "append": update.append,
    }


def _end(task_id: str, status: TaskStatus) -> tuple[str, dict[str, Any]]:
    body = {"id": task_id, **_shown_status(status)}
    match status.state:
        case "completed":
            return "task.completed", body
        case "failed" | "rejected" | "canceled":
            return "task.failed", body
        case "input-required":
            return "task.input_required", body
        case _:
            return "task.working", body


def refused(error: TaskError) -> tuple[str, dict[str, Any]]:
    """Return the event that ends a broken stream."""
    return "task.failed", {"status": "failed", "code": error.reason, "error": error.message}


def demanded(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of `task.failed` for a task that must be paid for before it begins.

    `body` is the body of a 402. The client sends `X-PAYMENT` with a new task.
    """
    return {
        **body,
        "status": "failed",
        "code": PAYMENT_CODE,
        "status_code": 402,
        "accepts": body["context"]["accepts"],
    }


def task_body(task: Task) -> dict[str, Any]:
    """Return a task as the body of a GET or DELETE response."""
    parts = [part for artifact in task.artifacts for part in artifact.parts]
    messages = [{"role": message.role, "parts": _parts(message.parts)} for message in task.history]
    if parts:
        messages.append({"role": "agent", "parts": _parts(parts)})
    return {
        "id": task.id,
        "contextId": task.context_id,
        **_shown_status(task.status),
        "messages": messages,
    }


def _shown_status(status: TaskStatus) -> dict[str, Any]:
    running = status.state in {"submitted", "working"}
    body: dict[str, Any] = {"status": "running" if running else status.state}
    if status.message is not None:
        body["message"] = {"role": "agent", "parts": _parts(status.message.parts)}
        if (error := status.message.metadata.get("uamp_error")) is not None:
            body["code"] = error["code"]
    return body


def _parts(parts: Iterable[TaskPart]) -> list[dict[str, Any]]:
    return [_shown_part(part) for part in parts]


def _shown_part(part: TaskPart) -> dict[str, Any]:
    if part.text is not None:
        return {"type": "text", "text": part.text}
    if part.raw is None and part.url is None:
        return {"type": "data", "data": part.data}
    file = {"bytes": part.raw} if part.url is None else {"uri": part.url}
    if part.filename:
        file["name"] = part.filename
    if part.media_type:
        file["mimeType"] = part.media_type
    return {"type": "file", "file": file}
