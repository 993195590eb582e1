"""`POST /agents/{name}/a2a`: A2A over JSON-RPC. The method determines the dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from gateway_app.a2a import methods
from gateway_app.a2a.dialects import v03, v1
from gateway_app.a2a.dialects.requests import json_names
from gateway_app.a2a.headers import activate, check_version
from gateway_app.a2a.service import TRANSPORT
from gateway_app.a2a.tasks.errors import TaskErrorReason, TaskRefused, error_of, unpaid
from gateway_app.a2a.tasks.task import Task
from gateway_app.http import data_frame, dialect_view, read_body, with_retry_after
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway_app.a2a.dialects.writing import TaskDialect
    from gateway_app.a2a.methods import Method
    from gateway_app.a2a.tasks.task import TaskUpdate

    Id: TypeAlias = str | int | None

_EVENT_STREAM: Final = "text/event-stream"
# Clients of 0.3 expect even errors of these methods as events, those of 1.0 as JSON.
_EVENT_METHODS: Final = ("message/stream", "tasks/resubscribe")
METHODS: Final[dict[str, tuple[TaskDialect, Method]]] = {
    "SendMessage": (v1.DIALECT, methods.send),
    "SendStreamingMessage": (v1.DIALECT, methods.stream),
    "GetTask": (v1.DIALECT, methods.get),
    "ListTasks": (v1.DIALECT, methods.list_tasks),
    "CancelTask": (v1.DIALECT, methods.cancel),
    "SubscribeToTask": (v1.DIALECT, methods.subscribe),
    "GetExtendedAgentCard": (v1.DIALECT, methods.card),
    "CreateTaskPushNotificationConfig": (v1.DIALECT, methods.set_receiver),
    "GetTaskPushNotificationConfig": (v1.DIALECT, methods.get_receiver),
    "ListTaskPushNotificationConfigs": (v1.DIALECT, methods.list_receivers),
    "DeleteTaskPushNotificationConfig": (v1.DIALECT, methods.delete_receiver),
    "message/send": (v03.DIALECT, methods.send),
    "message/stream": (v03.DIALECT, methods.stream),
    "tasks/get": (v03.DIALECT, methods.get),
    "tasks/cancel": (v03.DIALECT, methods.cancel),
    "tasks/resubscribe": (v03.DIALECT, methods.subscribe),
    "agent/getAuthenticatedExtendedCard": (v03.DIALECT, methods.card),
    "tasks/pushNotificationConfig/set": (v03.DIALECT, methods.set_receiver),
    "tasks/pushNotificationConfig/get": (v03.DIALECT, methods.get_receiver),
    "tasks/pushNotificationConfig/list": (v03.DIALECT, methods.list_receivers),
    "tasks/pushNotificationConfig/delete": (v03.DIALECT, methods.delete_receiver),
}


@dataclass(frozen=True, slots=True)
class _RpcCall:
    """A JSON-RPC request to an agent, with the dialect of its method."""

    request: HttpRequest
    agent: str
    id: Id
    params: Any
    dialect: TaskDialect
    headers: dict[str, str] = field(default_factory=dict)

    def read(self, kind: type[Any]) -> Any:
        """Parse the parameters; raises TaskRefused if they are invalid."""
        try:
            return msgspec.convert(json_names(self.params), kind)
        except msgspec.ValidationError as error:
            raise TaskRefused(TaskErrorReason.INVALID_PARAMS, f"params: {error}.") from None

    def encode(self, value: Task | TaskUpdate | TaskRefused | RemoteProtocolError) -> bytes:
        """Encode an event of the stream that answers the call."""
        if isinstance(value, TaskRefused | RemoteProtocolError):
            return data_frame(_failure(self.id, error_of(value).json_rpc()))
        if isinstance(value, Task):
            return data_frame(_success(self.id, self.dialect.answer(value)))
        return data_frame(_success(self.id, self.dialect.json.update(value)))

    def demand(self, body: Mapping[str, Any]) -> bytes:
        """Return the body of x402's 402, which is also the call's error."""
        failure = _failure(self.id, error_of(unpaid(body)).json_rpc())
        return msgspec.json.encode({**body, **failure})


def _success(call_id: Id, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "result": result}


def _failure(call_id: Id, error: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "error": error}


def _refused(
    call_id: Id, error: TaskRefused | RemoteProtocolError, *, as_event: bool = False
) -> HttpResponse:
    """Return an error; with `as_event`, in a stream unless HTTP has a status for it."""
    task_error = error_of(error)
    failure = _failure(call_id, task_error.json_rpc())
    if as_event and task_error.rpc_status == HTTPStatus.OK:
        return HttpResponse(data_frame(failure), content_type=_EVENT_STREAM)
    return with_retry_after(_json(failure, status=task_error.rpc_status), error)


def _json(value: Any, *, status: int = 200) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(value), status=status, content_type="application/json")


def _refusal(request: HttpRequest, error: RemoteProtocolError) -> HttpResponse:
    """Refuse a call before it is read, but answer with its id if possible."""
    try:
        body = read_body(request, dict[str, Any])
    except RemoteProtocolError:
        return _refused(None, error)
    return _refused(_id_of(body), error)


def _id_of(body: Mapping[str, Any]) -> Id:
    call_id = body.get("id")
    return call_id if isinstance(call_id, str | int) and not isinstance(call_id, bool) else None


@dialect_view(_refusal, "POST", protocol=TRANSPORT)
async def rpc(request: HttpRequest, name: str) -> HttpResponseBase:
    """Answer a JSON-RPC call."""
    call_id: Id = None
    as_event = False
    try:
        body = _read(request)
        accepts_events = request.headers.get("Accept", "").startswith(_EVENT_STREAM)
        as_event = accepts_events and body.get("method") in _EVENT_METHODS
        call_id = _id_of(body)
        call, method = _called(request, name, call_id, body)
        result = await method(call)
    except (TaskRefused, RemoteProtocolError) as error:
        return _refused(call_id, error, as_event=as_event)
    response = result if isinstance(result, HttpResponseBase) else _json(_success(call_id, result))
    for header, value in call.headers.items():
        response[header] = value
    activate(request, response)
    return response


def _read(request: HttpRequest) -> dict[str, Any]:
    if request.content_type not in {"application/json", "application/a2a+json"}:
        raise TaskRefused(
            TaskErrorReason.CONTENT_TYPE_NOT_SUPPORTED, "Send JSON, as application/json."
        )
    try:
        body = read_body(request, object)
    except RemoteProtocolError as error:
        if error.code in {ErrorCode.FRAME_TOO_LARGE, ErrorCode.INVALID_JSON}:
            raise
        raise TaskRefused(TaskErrorReason.PARSE_ERROR, error.message) from None
    if isinstance(body, list):
        raise TaskRefused(
            TaskErrorReason.INVALID_REQUEST, "Send one call; batches are not supported."
        )
    if not isinstance(body, dict):
        raise TaskRefused(TaskErrorReason.INVALID_REQUEST, "A call must be an object.")
    return body


def _called(
    request: HttpRequest, agent: str, call_id: Id, body: dict[str, Any]
) -> tuple[_RpcCall, Method]:
    if body.get("jsonrpc") != "2.0":
        raise TaskRefused(TaskErrorReason.INVALID_REQUEST, 'A call needs `"jsonrpc": "2.0"`.')
    method, sent_id = body.get("method"), body.get("id")
    if not isinstance(method, str) or (sent_id is not None and call_id is None):
        raise TaskRefused(
            TaskErrorReason.INVALID_REQUEST,
            "A call needs a `method`, and an `id` that is a string or a whole number.",
        )
    check_version(request)
    if method not in METHODS:
        raise TaskRefused(TaskErrorReason.METHOD_NOT_FOUND, f"There is no method {method[:80]!r}.")
    dialect, does = METHODS[method]
    check_version(request, dialect.version)
    params = body.get("params")
    call = _RpcCall(request, agent, call_id, {} if params is None else params, dialect)
    return call, does
