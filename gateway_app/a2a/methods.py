"""The A2A methods for every binding and version: reading parameters and building answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from gateway_app.a2a.cards.views import extended_card
from gateway_app.a2a.dialects.requests import TaskParams
from gateway_app.a2a.dialects.v1 import ListParams
from gateway_app.a2a.service import TaskService
from gateway_app.a2a.tasks.errors import TaskErrorReason, TaskRefused
from gateway_app.a2a.tasks.snapshot import message_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from django.http import HttpRequest, StreamingHttpResponse

    from gateway_app.a2a.dialects.writing import TaskDialect
    from gateway_app.a2a.service import DemandBody
    from gateway_app.a2a.tasks.messages import SentMessage
    from gateway_app.a2a.tasks.task import Task, TaskUpdate
    from gateway_app.types.stored_response import ResponseStanding
    from uamp import RemoteProtocolError

    Method: TypeAlias = Callable[["MethodCall"], Awaitable[Any]]

PAYMENT_HEADERS: Final = ("PAYMENT-SIGNATURE", "X-PAYMENT", "X-Payment-Token")
_STANDINGS: Final[dict[str, ResponseStanding | None]] = {
    "TASK_STATE_SUBMITTED": "queued",
    "TASK_STATE_WORKING": "working",
    "TASK_STATE_INPUT_REQUIRED": "asking",
    "TASK_STATE_COMPLETED": "completed",
    "TASK_STATE_CANCELED": "cancelled",
    "TASK_STATE_FAILED": "failed",
    "TASK_STATE_REJECTED": "rejected",
    "TASK_STATE_UNSPECIFIED": None,
    "": None,
}


class MethodCall(Protocol):
    """A method call, as parsed by its binding."""

    @property
    def request(self) -> HttpRequest:
        """The HTTP request."""

    @property
    def agent(self) -> str:
        """The name of the agent."""

    @property
    def dialect(self) -> TaskDialect:
        """The dialect of the client's version."""

    @property
    def headers(self) -> dict[str, str]:
        """The response headers, to which a method may add."""

    def read(self, kind: type[Any]) -> Any:
        """Parse the parameters; raises TaskRefused or RemoteProtocolError if they are invalid."""

    def demand(self, body: Mapping[str, Any]) -> bytes:
        """Return the body of the 402 that refuses a payment in the headers."""

    def encode(self, value: Task | TaskUpdate | TaskRefused | RemoteProtocolError) -> bytes:
        """Encode an event of the stream that answers the call."""


def _demand(call: MethodCall) -> DemandBody | None:
    """Return the writer of the 402 for a client that pays with x402's headers.

    Other clients pay in their task.
    """
    pays = any(name in call.request.headers for name in PAYMENT_HEADERS)
    return call.demand if pays else None


def _service(call: MethodCall) -> TaskService:
    return TaskService(call.request, call.agent, webhook_format=call.dialect.webhook_format)


def sent_message(call: MethodCall) -> SentMessage:
    """Return the message of a call, with its client's options for the answer."""
    return call.dialect.parse_message(call.read(call.dialect.send_params))


async def send(call: MethodCall) -> dict[str, Any]:
    """Begin or continue a task, and return it, or its answer if the client asks for a message."""
    sent = sent_message(call)
    task, headers = await _service(call).send(sent, _demand(call))
    call.headers.update(headers)
    if sent.wants_message and (message := message_of(task)) is not None:
        return call.dialect.reply(message, task.context_id)
    return call.dialect.answer(task)


async def stream(call: MethodCall) -> StreamingHttpResponse:
    """Begin or continue a task, and stream it."""
    sent = sent_message(call)
    return await _service(call).stream(sent, call.encode, demand_body=_demand(call))


async def subscribe(call: MethodCall) -> StreamingHttpResponse:
    """Stream an unfinished task."""
    follows = call.dialect.version == "1.0"
    return await _service(call).subscribe(call.read(TaskParams).id, call.encode, follows=follows)


async def get(call: MethodCall) -> dict[str, Any]:
    """Return a task in its current state."""
    params = call.read(TaskParams)
    task = await _service(call).get(params.id, history_length=params.history_length)
    return call.dialect.json.task(task)


async def cancel(call: MethodCall) -> dict[str, Any]:
    """Cancel a task, and return it."""
    return call.dialect.json.task(await _service(call).cancel(call.read(TaskParams).id))


async def list_tasks(call: MethodCall) -> dict[str, Any]:
    """Return a page of tasks; raises TaskRefused for an unknown state or an invalid time."""
    params: ListParams = call.read(ListParams)
    if params.status not in _STANDINGS:
        raise TaskRefused(TaskErrorReason.INVALID_PARAMS, "`status` is not a known task state.")
    tasks, page = await _service(call).page(
        history_length=params.history_length,
        with_artifacts=params.include_artifacts,
        thread=params.context_id,
        standing=_STANDINGS[params.status],
        changed_after=_time(params.status_timestamp_after),
        limit=params.page_size,
        cursor=params.page_token,
    )
    return {
        "tasks": [call.dialect.json.task(task) for task in tasks],
        "nextPageToken": page.next_cursor,
        "pageSize": params.page_size,
        "totalSize": page.total,
    }


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise TaskRefused(
            TaskErrorReason.INVALID_PARAMS, "`statusTimestampAfter` must be an ISO 8601 time."
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


async def card(call: MethodCall) -> dict[str, Any]:
    """Return the extended card, for callers with a key."""
    v1_only = call.dialect.version == "1.0"
    return await extended_card(call.request, call.agent, v1_only=v1_only)


# --- Push notifications ---


async def set_receiver(call: MethodCall) -> dict[str, Any]:
    """Set a receiver of a task's states, replacing any with the same id."""
    words = call.dialect.push
    params = call.read(words.set_params)
    receiver = await _service(call).set_receiver(params.task_id, words.receiver_of(params))
    return words.config(params.task_id, receiver)


async def get_receiver(call: MethodCall) -> dict[str, Any]:
    """Return a receiver of a task, without its credentials."""
    words = call.dialect.push
    task_id, name = words.key_of(call.read(words.key_params))
    return words.config(task_id, await _service(call).get_receiver(task_id, name))


async def list_receivers(call: MethodCall) -> Any:
    """Return all receivers of a task."""
    words = call.dialect.push
    task_id = words.task_of(call.read(words.list_params))
    receivers = await _service(call).list_receivers(task_id)
    return words.config_list([words.config(task_id, receiver) for receiver in receivers])


async def delete_receiver(call: MethodCall) -> Any:
    """Delete a receiver of a task, if it exists."""
    words = call.dialect.push
    task_id, name = words.key_of(call.read(words.key_params))
    await _service(call).delete_receiver(task_id, name)
    return words.deleted
