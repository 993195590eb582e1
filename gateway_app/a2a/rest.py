"""`/agents/{name}/a2a/rest/…`: A2A over HTTP and JSON, with version 0.3 below `v1/`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from gateway_app.a2a import methods
from gateway_app.a2a.dialects import v03_rest, v1
from gateway_app.a2a.dialects.requests import TaskParams, json_names
from gateway_app.a2a.headers import activate, check_version
from gateway_app.a2a.service import TRANSPORT
from gateway_app.a2a.tasks.errors import TaskErrorReason, TaskRefused, error_of, unpaid
from gateway_app.a2a.tasks.task import Task
from gateway_app.http import data_frame, dialect_view, read_body

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway_app.a2a.dialects.writing import TaskDialect
    from gateway_app.a2a.methods import Method
    from gateway_app.a2a.tasks.task import TaskUpdate
    from uamp import RemoteProtocolError

    Route: TypeAlias = tuple[str, re.Pattern[str], Method]

MEDIA_TYPES: Final = frozenset({"application/json", "application/a2a+json"})
_OLD: Final = "v1/"
_HTTP_METHODS: Final = ("GET", "POST", "DELETE", "PUT")


@dataclass(frozen=True, slots=True)
class _RestCall:
    """A request to an agent, with its path parameters and its dialect."""

    request: HttpRequest
    agent: str
    path: Mapping[str, str]
    dialect: TaskDialect
    headers: dict[str, str] = field(default_factory=dict)

    def read(self, kind: type[Any]) -> Any:
        """Parse the parameters in the path and in the query or body.

        Raises TaskRefused and RemoteProtocolError if they are invalid.
        """
        has_body = self.request.method == "POST" and kind is not TaskParams
        params = self._body() if has_body else self.request.GET.dict()
        try:
            return msgspec.convert({**json_names(params), **self.path}, kind, strict=has_body)
        except msgspec.ValidationError as error:
            raise TaskRefused(TaskErrorReason.INVALID_PARAMS, f"{error}.") from None

    def _body(self) -> dict[str, Any]:
        if self.request.content_type not in MEDIA_TYPES:
            raise TaskRefused(
                TaskErrorReason.CONTENT_TYPE_NOT_SUPPORTED, "Send JSON, as application/a2a+json."
            )
        return read_body(self.request, dict[str, Any])

    def encode(self, value: Task | TaskUpdate | TaskRefused | RemoteProtocolError) -> bytes:
        """Encode an event of a stream."""
        if isinstance(value, Task):
            return data_frame(self.dialect.answer(value))
        if isinstance(value, Exception):
            return data_frame(error_of(value).status())
        return data_frame(self.dialect.json.update(value))

    def demand(self, body: Mapping[str, Any]) -> bytes:
        """Return the body of x402's 402, which is also a google.rpc.Status."""
        return msgspec.json.encode({**body, **error_of(unpaid(body)).status()})


_TASK: Final = r"tasks/(?P<id>[^/:]{1,256})"
_RECEIVERS: Final = r"tasks/(?P<taskId>[^/:]{1,256})/pushNotificationConfigs"
_RECEIVER: Final = rf"{_RECEIVERS}/(?P<id>[^/]{{1,256}})"
_ROUTES: Final[tuple[Route, ...]] = (
    ("POST", re.compile("message:send"), methods.send),
    ("POST", re.compile("message:stream"), methods.stream),
    ("GET", re.compile("tasks"), methods.list_tasks),
    ("GET", re.compile(_TASK), methods.get),
    ("POST", re.compile(f"{_TASK}:cancel"), methods.cancel),
    ("GET", re.compile(f"{_TASK}:subscribe"), methods.subscribe),
    ("POST", re.compile(f"{_TASK}:subscribe"), methods.subscribe),
    ("GET", re.compile("extendedAgentCard|card"), methods.card),
    ("POST", re.compile(_RECEIVERS), methods.set_receiver),
    ("GET", re.compile(_RECEIVERS), methods.list_receivers),
    ("GET", re.compile(_RECEIVER), methods.get_receiver),
    ("DELETE", re.compile(_RECEIVER), methods.delete_receiver),
)


def _refusal(request: HttpRequest, error: RemoteProtocolError | TaskRefused) -> HttpResponse:
    task_error = error_of(error)
    return _json(request, task_error.status(), status=task_error.http)


def _json(request: HttpRequest, value: Any, *, status: int = 200) -> HttpResponse:
    """Return JSON in the media type of the request, or in one that the client accepts."""
    requested_type = request.content_type or request.headers.get("Accept", "")
    media_type = (
        "application/a2a+json" if "application/a2a+json" in requested_type else "application/json"
    )
    return HttpResponse(msgspec.json.encode(value), status=status, content_type=media_type)


@dialect_view(_refusal, *_HTTP_METHODS, protocol=TRANSPORT)
async def rest(request: HttpRequest, name: str, path: str) -> HttpResponseBase:
    """Answer a request of A2A's HTTP binding."""
    try:
        dialect = v03_rest.DIALECT if path.startswith(_OLD) else v1.DIALECT
        check_version(request, dialect.version)
        in_path, method = _route(request, path.removeprefix(_OLD).rstrip("/"), dialect)
        call = _RestCall(request, name, in_path, dialect)
        result = await method(call)
    except TaskRefused as error:
        return _refusal(request, error)
    response = result if isinstance(result, HttpResponseBase) else _json(request, result)
    for header, value in call.headers.items():
        response[header] = value
    activate(request, response)
    return response


def _route(
    request: HttpRequest, path: str, dialect: TaskDialect
) -> tuple[Mapping[str, str], Method]:
    for http_method, pattern, method in _ROUTES:
        match = pattern.fullmatch(path)
        if match is None or http_method != request.method:
            continue
        if method is methods.list_tasks and dialect.version == "0.3":
            raise TaskRefused(TaskErrorReason.METHOD_NOT_FOUND, "A2A 0.3 lists no tasks.")
        return match.groupdict(), method
    raise TaskRefused(TaskErrorReason.METHOD_NOT_FOUND, "A2A has no such path and method.")
