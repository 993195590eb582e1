"""`/agents/{name}/acp` over HTTP: ACP's streamable transport, and that of webagents.

`initialize` opens a connection, which `Acp-Connection-Id` names from then on. A POST is accepted
with 202, and its answer arrives on a stream (`streams`): on the session's for a prompt, on the
connection's own for anything else. A POST that names no connection is answered directly
(`one_shot`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from gateway_app.acp import methods, read, write
from gateway_app.acp.one_shot import accepted, one_shot
from gateway_app.acp.posted import answers_of, begin_prompt, cancel
from gateway_app.acp.streams import AcpStream
from gateway_app.backend.streamed_connection import EventStream, PostedEvents
from gateway_app.http import dialect_view
from uamp import ErrorCode, RemoteProtocolError
from uamp.errors.http_status import http_status

if TYPE_CHECKING:
    from gateway_app.acp.read import Rpc

logger = logging.getLogger(__name__)

CONNECTION: Final = "Acp-Connection-Id"
SESSION: Final = "Acp-Session-Id"
EVENT_STREAM: Final = "text/event-stream"
_ANY_TYPES: Final = ("*/*", "text/*")


def _refused(status: int, code: int, message: str, request_id: Any = None) -> HttpResponse:
    """Refuse a request in the HTTP response instead of on a stream."""
    body = write.failure(request_id, {"code": code, "message": message})
    return HttpResponse(msgspec.json.encode(body), status=status, content_type="application/json")


def _refusal(request: HttpRequest, error: RemoteProtocolError) -> HttpResponse:
    del request
    body = write.failure(None, read.RpcError.of(error).body())
    return HttpResponse(
        msgspec.json.encode(body), status=http_status(error.code), content_type="application/json"
    )


@dialect_view(_refusal, "POST", "GET", "DELETE", protocol=methods.TRANSPORT)
async def acp(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Process a message, open a stream, or close a connection."""
    del name
    connection_id = request.headers.get(CONNECTION, "")
    if request.method == "POST":
        return await _post(request, connection_id)
    if not connection_id:
        return _refused(
            400, read.INVALID_REQUEST, f"Send {CONNECTION} with the id of the connection."
        )
    if request.method == "GET":
        return await _stream(request, connection_id)
    posted = await PostedEvents.of(request, methods.TRANSPORT)
    await posted.close_connection(connection_id)
    return accepted()


async def _stream(request: HttpRequest, connection_id: str) -> HttpResponseBase:
    accepts = request.headers.get("Accept", "*/*")
    if not any(media_type in accepts for media_type in (EVENT_STREAM, *_ANY_TYPES)):
        return _refused(406, read.INVALID_REQUEST, f"Accept must allow {EVENT_STREAM}.")
    session_id = request.headers.get(SESSION, "")
    stream = await EventStream.of(request, methods.TRANSPORT, connection_id, session_id)
    return stream.stream(AcpStream(stream, session_id).frames())


async def _post(request: HttpRequest, connection_id: str) -> HttpResponseBase:
    if request.content_type != "application/json":
        return _refused(415, read.INVALID_REQUEST, "Send messages as application/json.")
    if request.body.lstrip().startswith(b"["):
        return _refused(501, read.INVALID_REQUEST, "Send the messages of a batch one by one.")
    try:
        message = read.read_rpc(request.body)
        if not connection_id and message.method == "initialize":
            return await _initialize(request, message)
    except read.RpcError as error:
        return _refused(400, error.code, error.message)
    if not connection_id:
        return await one_shot(request, message)
    posted = await PostedEvents.of(request, methods.TRANSPORT)
    try:
        await posted.check_connection(connection_id)
        await _take(posted, connection_id, message, request.headers.get(SESSION, ""))
    finally:
        await posted.close()
    return accepted()


async def _initialize(request: HttpRequest, message: Rpc) -> HttpResponse:
    """Answer directly, and open a connection for clients that speak ACP itself."""
    posted = await PostedEvents.of(request, methods.TRANSPORT)
    result = methods.initialize(message, posted.agent)
    request_id = None if message.id is msgspec.UNSET else message.id
    answer = HttpResponse(
        msgspec.json.encode(write.success(request_id, result)), content_type="application/json"
    )
    if isinstance(result["protocolVersion"], int):
        answer[CONNECTION] = await posted.open_connection()
    return answer


async def _take(posted: PostedEvents, connection_id: str, message: Rpc, session_id: str) -> None:
    """Process a message that a stream answers; errors that have no reply are logged."""
    if message.method is not None and message.id is not msgspec.UNSET:
        await _take_request(posted, connection_id, message, session_id)
        return
    try:
        if message.method is None:
            if (decision := methods.decision_of(message)) is not None:
                await posted.send(decision)
        elif message.method == "session/cancel":
            await cancel(posted, message)
    except (read.RpcError, RemoteProtocolError) as error:
        logger.info("an answer or a notification was refused: %s", error)


async def _take_request(
    posted: PostedEvents, connection_id: str, message: Rpc, session_id: str
) -> None:
    request_id = msgspec.json.encode(message.id).decode()
    target_session = session_id or str(message.params.get("sessionId", ""))
    is_prompt = message.method == "session/prompt"
    try:
        is_new = await posted.expect_answer(
            connection_id, request_id, target_session if is_prompt else ""
        )
    except RemoteProtocolError as error:
        if error.code != ErrorCode.UNKNOWN_SESSION:
            raise
        # An unknown session has no stream of its own, so the connection's stream answers.
        is_new = await posted.expect_answer(connection_id, request_id, "")
    if not is_new:
        return
    try:
        if is_prompt:
            await begin_prompt(posted, connection_id, message)
            return
        messages = await answers_of(posted, message)
    except (read.RpcError, RemoteProtocolError) as error:
        refused = error if isinstance(error, read.RpcError) else read.RpcError.of(error)
        messages = [write.failure(message.id, refused.body())]
    try:
        await posted.answer(connection_id, messages)
    except RemoteProtocolError as error:
        # A refused POST would be sent again, but its request has been executed.
        refusal = write.failure(message.id, read.RpcError.of(error).body())
        await posted.answer(connection_id, [refusal], is_refusal=True)
