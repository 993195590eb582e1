"""The Responses API on a WebSocket: `response.create` in, the events of the stream out.

A socket has one response at a time. It may continue a response of another socket or of HTTP, with
`previous_response_id`.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from gateway_app.backend.demands import charged_failure, refusal_of
from gateway_app.backend.responses import ResponseReader
from gateway_app.backend.socket import ForeignDialect, SocketApplication
from gateway_app.http import body_of
from gateway_app.openai.errors import error_body, refused
from gateway_app.openai_responses.output import request_echo
from gateway_app.openai_responses.read import EXTENSION, ResponsesRequest, check
from gateway_app.openai_responses.service import TRANSPORT, ResponsesService
from gateway_app.openai_responses.tools import ClientTools
from gateway_app.openai_responses.write import ResponseWriter
from gateway_app.types.appended_text import TextReplacedError
from gateway_app.types.lost_sessions import lost_session
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.errors.http_status import http_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gateway_app.openai_responses.output import JsonObject
    from gateway_app.types.client_turn import ClientTurn
    from uamp.events import Event

logger = logging.getLogger(__name__)

CREATE: Final = "response.create"
_encoder: Final = msgspec.json.Encoder()


class _ClientEvent(msgspec.Struct):
    """The type of a client event."""

    type: str


@dataclass(kw_only=True)
class _Running:
    """The response that a socket is answering; its writer exists from its first event on.

    `response_id` is '' until the response has begun. `failure` is set while what was charged of it
    is read; no more of its events are sent.
    """

    session_id: str
    echoed_request: JsonObject
    tools: ClientTools
    response_id: str = ""
    writer: ResponseWriter | None = None
    failure: Event | RemoteProtocolError | None = None


class ResponsesDialect(ForeignDialect):
    """The connection of one client, with one response at a time."""

    transport: ClassVar[str] = TRANSPORT

    def prepare(self) -> None:
        """Start without a response, and require turns to be paid for before they begin."""
        self.check_host()
        self.demand_payments()
        # Not every turn belongs to it.
        self._chat, self.connection.defaults.chat = self.connection.defaults.chat, None
        self._running: _Running | None = None

    async def receive(self, frame: str | bytes) -> None:
        """Begin the response that an event asks for, or send why it is refused."""
        try:
            await self._begin(frame)
        except RemoteProtocolError as error:
            self._refuse(error)

    def _refuse(self, error: RemoteProtocolError) -> None:
        self.send_json(_failure(error))

    async def _begin(self, frame: str | bytes) -> None:
        raw = frame.encode("utf-8", "surrogatepass") if isinstance(frame, str) else frame
        head = body_of(raw, _ClientEvent)
        if head.type != CREATE:
            raise refused("type", f"There is no event {head.type!r} here. Send {CREATE}.")
        if self._running is not None:
            raise RemoteProtocolError(
                ErrorCode.BUSY, "A response is running on this connection. Wait for its end."
            )
        body = body_of(raw, ResponsesRequest)
        check(body)
        if body.background:
            raise refused("background", "A socket streams its responses. Leave it out.")
        agent = self.agent or ""
        reader = ResponseReader(
            f"{self.handshake.base_url}/v1/responses",
            self.connection.principal,
            transport=TRANSPORT,
            agent=agent,
            extension=EXTENSION,
        )
        service = ResponsesService(reader, agent)
        turn = await service.turn(body, body.chat, default_chat=self._chat)
        await self._start(turn)

    async def _start(self, turn: ClientTurn) -> None:
        turn.check_content()
        self.connection.defaults.ephemeral = not turn.is_kept
        session_id = await self.open_session(turn.session)
        extension = turn.session.session.extensions[EXTENSION]
        echo, tools = request_echo(turn.response, extension), ClientTools(extension.get("tools"))
        running = _Running(session_id=session_id, echoed_request=echo, tools=tools)
        self._running = running
        try:
            for event in turn.inputs:
                await self.send(msgspec.structs.replace(event, session_id=session_id))
            create = msgspec.structs.replace(turn.response, session_id=session_id)
            running.response_id = await self.begin(create)
        except RemoteProtocolError:
            self._running = None
            self.leave_session(session_id)
            raise

    # --- Server to client ---

    def frames(self, event: Event) -> Iterator[str]:
        """Yield the stream events of a server event."""
        for stream_event in self._stream_events(event):
            yield _encoder.encode(stream_event).decode()

    def _stream_events(self, event: Event) -> Iterable[JsonObject]:
        running = self._running
        if running is None or event.session_id != running.session_id:
            return
        if (lost := lost_session(event)) is not None:
            self._running = None
            yield from _after_loss(running, lost)
            return
        response_id = getattr(event, "response_id", None)
        if not response_id or running.failure is not None:
            return
        is_own = response_id == running.response_id
        if running.writer is None:
            if not is_own:
                return
            running.writer = ResponseWriter(
                response_id=response_id,
                created_at=int(time.time()),
                link=self.link_of(running.session_id),
                echoed_request=running.echoed_request,
                tools=running.tools,
            )
            yield from running.writer.begin()
        if not is_own and not self.is_private(running.session_id):
            return
        # In a private chat, the demands of other responses are those of delegated work.
        error = refusal_of(event, running.writer.response_id)
        is_failure = is_own and isinstance(event, ev.ResponseError)
        try:
            yield from running.writer.feed(event) if is_own and not is_failure else ()
        except TextReplacedError:
            error = RemoteProtocolError(ErrorCode.INTERRUPTED, "The answer was rewritten.")
        if error is not None or is_failure:
            running.failure = event if error is None else error
            ending = self._end(running, running.writer, running.failure)
            self.spawn(ending, name="end a failed response")
        elif running.writer.has_ended:
            self._leave(running)

    async def _end(
        self, running: _Running, writer: ResponseWriter, end: Event | RemoteProtocolError
    ) -> None:
        """Send the failure of a response, or the error that refuses it, with what was charged."""
        try:
            if isinstance(end, RemoteProtocolError):
                cancels = self.is_private(running.session_id)
                end = await self.give_up(
                    running.session_id, writer.response_id, end, cancels=cancels
                )
            else:
                end = await charged_failure(end, writer.response_id)
        except Exception:
            # Without a database, the client still receives the end of its response.
            logger.exception("the charges of %s could not be read", writer.response_id)
        if self._running is not running:
            # Its session was lost, and its client has an error for that.
            return
        self._leave(running)
        for event in _last_events(writer, end):
            self.send_json(event)

    def _leave(self, running: _Running) -> None:
        self._running = None
        self.leave_session(running.session_id)


def _after_loss(running: _Running, lost: RemoteProtocolError) -> Iterable[JsonObject]:
    """Return the events after the loss of a session.

    The end of a response that failed says why, and would now come too late.
    """
    if running.writer is None or running.failure is None:
        return [_failure(lost)]
    return _last_events(running.writer, running.failure)


def _last_events(writer: ResponseWriter, end: Event | RemoteProtocolError) -> Iterable[JsonObject]:
    return writer.fail(end) if isinstance(end, RemoteProtocolError) else writer.feed(end)


def _failure(error: RemoteProtocolError) -> dict[str, Any]:
    """Return the event for a request that is refused."""
    failure = msgspec.to_builtins(error_body(error))["error"]
    return {"type": "error", "status": http_status(ErrorCode(error.code)), "error": failure}


application: Final = SocketApplication(ResponsesDialect)
