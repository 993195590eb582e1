"""`/agents/{name}/tasks`: the transports' specification's tasks, without JSON-RPC."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from gateway_app.a2a.service import TRANSPORT, TaskService
from gateway_app.a2a.spec import task_format as spec
from gateway_app.a2a.tasks.errors import TaskErrorReason, TaskRefused, error_of
from gateway_app.a2a.tasks.task import Task
from gateway_app.backend.turn_outcomes import PaymentDemanded
from gateway_app.http import data_frame, dialect_view, read_body

if TYPE_CHECKING:
    from gateway_app.a2a.tasks.task import TaskUpdate
    from uamp import RemoteProtocolError

_CONFLICT: Final = 409


def _refusal(request: HttpRequest, error: RemoteProtocolError | TaskRefused) -> HttpResponse:
    del request
    task_error = error_of(error)
    ended = isinstance(error, TaskRefused) and error.reason is TaskErrorReason.TASK_NOT_CANCELABLE
    body = {"error": {"code": task_error.reason, "message": task_error.message}}
    return HttpResponse(
        msgspec.json.encode(body),
        status=_CONFLICT if ended else task_error.http,
        content_type="application/json",
    )


@dialect_view(_refusal, "POST", protocol=TRANSPORT)
async def tasks(request: HttpRequest, name: str) -> HttpResponseBase:
    """Begin a task, and stream it as `task.*` events.

    A task that must be paid for first is not begun: its stream is one `task.failed` with the
    demand.
    """
    # For a message without an id: a repeated request with the same key is the same message.
    key = request.headers.get("Idempotency-Key")
    new_id = f"key-{key}" if key else uuid.uuid4().hex
    sent = spec.parse_message(read_body(request, spec.TaskRequest), new_id=new_id)
    try:
        return await TaskService(request, name).stream(sent, _encode, demand_body=_demand)
    except PaymentDemanded as demanded:
        response = HttpResponse(demanded.response.content, content_type="text/event-stream")
        for header, value in demanded.response.items():
            if header != "Content-Type":
                response[header] = value
        return response
    except TaskRefused as error:
        return _refusal(request, error)


@dialect_view(_refusal, "GET", "DELETE", protocol=TRANSPORT)
async def task(request: HttpRequest, name: str, task_id: str) -> HttpResponseBase:
    """Return a task; DELETE cancels it first."""
    service = TaskService(request, name)
    try:
        current_task = await (
            service.cancel(task_id) if request.method == "DELETE" else service.get(task_id)
        )
    except TaskRefused as error:
        return _refusal(request, error)
    return HttpResponse(
        msgspec.json.encode(spec.task_body(current_task)), content_type="application/json"
    )


def _encode(value: Task | TaskUpdate | TaskRefused | RemoteProtocolError) -> bytes:
    if isinstance(value, Task):
        return _frame(*spec.started(value))
    if isinstance(value, Exception):
        return _frame(*spec.refused(error_of(value)))
    return _frame(*spec.event_of(value))


def _demand(body: Any) -> bytes:
    failed = {"id": f"task_{uuid.uuid4().hex}", **spec.demanded(body)}
    return _frame("task.failed", failed)


def _frame(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\n".encode() + data_frame(data)
