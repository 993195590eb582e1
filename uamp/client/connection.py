"""One connection to the server, reopened when it is lost; its sessions continue on the next one."""

import asyncio
import contextlib
import logging
import random
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Literal

import httpx2

import uamp
from uamp.client.errors import (
    ClientError,
    ConnectionLostError,
    NotPermittedError,
    UnauthorizedError,
)
from uamp.client.records import Listed
from uamp.client.rest import Rest
from uamp.client.state.requests import ClientRequest
from uamp.client.state.session import ClientSession
from uamp.client.state.turns import TurnState
from uamp.client.transports.event_streams import EventStreamTransport
from uamp.client.transports.frames import FrameTransport, TransportClosed, UpgradeRefused
from uamp.client.transports.web_socket import WebSocketTransport
from uamp.events import Pong, SessionCreate, SessionCreated, SessionError
from uamp.events.base import Event, UnknownEvent

logger = logging.getLogger(__name__)

TransportName = Literal["auto", "websocket", "sse"]

_FIRST_ATTEMPTS = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
# Handshake refusals that are about the caller, not about the transport.
_OF_CALLER = frozenset({401, 403, 429, 503})
# The answers to a message come directly after it in the log.
_ANSWERS = 100


def new_id() -> str:
    """Return a new event id."""
    return uuid.uuid4().hex


def now_ms() -> int:
    """Return the time in Unix milliseconds."""
    return int(time.time() * 1000)


class SessionHandle:
    """A session on the connection, with the functions of its chat that receive its events."""

    def __init__(
        self,
        state: ClientSession,
        on_event: Callable[[Event], None],
        on_request: Callable[[ClientRequest], Awaitable[None]],
    ) -> None:
        self.state = state
        self.on_event = on_event
        self.on_request = on_request


class ServerConnection:
    """Sends and receives for all sessions of a client; its tasks run in one event loop.

    It opens with the first session and stays open while there are any. The first time it makes at
    most three attempts; a connection that was open is reopened for up to ``reconnect_seconds``,
    after which everything in progress fails with ConnectionLostError.
    """

    def __init__(
        self,
        rest: Rest,
        *,
        headers: dict[str, str],
        transport: TransportName,
        connect_seconds: float,
        reconnect_seconds: float,
    ) -> None:
        self._rest = rest
        self._headers = headers
        self._choice = transport
        self._connect_seconds = connect_seconds
        self._reconnect_seconds = reconnect_seconds
        self._handles: list[SessionHandle] = []
        self._creating: deque[ClientSession] = deque()
        self._protocol = uamp.Connection("client")
        self._transport: FrameTransport | None = None
        self._had_socket = False
        self._running: asyncio.Task[None] | None = None
        self._work: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._has_output = asyncio.Event()

    @property
    def transport_name(self) -> str:
        """The transport of the current connection: websocket or sse; empty if there is none."""
        match self._transport:
            case WebSocketTransport():
                return "websocket"
            case EventStreamTransport():
                return "sse"
            case _:
                return ""

    # --- Sessions ---

    def add(self, handle: SessionHandle) -> None:
        """Open a session, and a connection if there is none."""
        self._handles.append(handle)
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        elif self._transport is not None:
            handle.state.begin()
        self.changed()

    def remove(self, handle: SessionHandle) -> None:
        """Forget a session."""
        if handle in self._handles:
            self._handles.remove(handle)

    def changed(self) -> None:
        """Send the sessions' pending events and wake the tasks that wait for a change."""
        self._has_output.set()
        before, self._changed = self._changed, asyncio.Event()
        before.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for the next change; return False if none comes in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """End the sessions and the connection."""
        transport = self._transport
        if transport is not None:
            for handle in self._handles:
                handle.state.end()
            with contextlib.suppress(TransportClosed, TimeoutError):
                async with asyncio.timeout(2):
                    await self._send_output(transport)
        self._handles.clear()
        tasks = [*self._work, *([self._running] if self._running else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if transport is not None:
            await transport.close()
            self._transport = None

    def cut(self) -> None:
        """Drop the connection on purpose; it is reopened at once."""
        if self._transport is not None:
            self._start(self._transport.close())

    # --- Opening and reading ---

    async def _run(self) -> None:
        lost_at: float | None = None
        attempt = 0
        while self._handles:
            try:
                transport = await self._open()
            except ClientError as error:
                self._fail(error)
                return
            except (OSError, TimeoutError, httpx2.TransportError) as error:
                attempt += 1
                if self._is_hopeless(attempt, lost_at):
                    self._fail(_unreachable(self._rest.http, error))
                    return
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1))
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 no secret
                continue
            end = await self._serve(transport)
            if end.error is not None:
                self._fail(end.error)
                return
            attempt, lost_at = 1, time.monotonic()
            logger.info("the connection was lost (%s); reconnecting", end)

    def _is_hopeless(self, attempt: int, lost_at: float | None) -> bool:
        if lost_at is None:
            return attempt >= _FIRST_ATTEMPTS
        return time.monotonic() - lost_at > self._reconnect_seconds

    async def _open(self) -> FrameTransport:
        """Open a transport. Raises ClientError if another attempt would be pointless."""
        if self._choice == "sse":
            return EventStreamTransport(self._rest.http)
        address = str(self._rest.http.base_url.join("/uamp"))
        try:
            socket = await WebSocketTransport.open(
                address, self._headers, seconds=self._connect_seconds
            )
        except UpgradeRefused as refused:
            if refused.status in {401, 403}:
                error = await self._why_refused(refused)
                if self._had_socket and isinstance(error, NotPermittedError):
                    # The server may still count the lost connection, or is about to stop.
                    raise ConnectionError(str(refused)) from None
                raise error from None
            if refused.status in _OF_CALLER or self._choice == "websocket" or self._had_socket:
                raise ConnectionError(str(refused)) from None
            logger.info("no WebSocket (%s): continuing over HTTP", refused)
            self._choice = "sse"
            return EventStreamTransport(self._rest.http)
        self._had_socket = True
        return socket

    async def _why_refused(self, refused: UpgradeRefused) -> ClientError:
        """Ask REST for the reason with the same key, since the handshake has no body."""
        try:
            await self._rest.request("GET", "/api/v1/me")
        except UnauthorizedError as error:
            return error
        except ClientError:
            logger.debug("REST gives no reason", exc_info=True)
        return NotPermittedError(
            f"The server refused the connection: {refused}.",
            code="forbidden",
            what_to_do="Close other connections that use the key, or ask the operator.",
        )

    async def _serve(self, transport: FrameTransport) -> TransportClosed:
        """Read and send over an open transport until it ends; return how it ended."""
        self._transport = transport
        self._protocol = uamp.Connection("client")
        self._creating.clear()
        for handle in self._handles:
            handle.state.begin()
        writer = asyncio.create_task(self._write(transport))
        self.changed()
        try:
            while True:
                self._take(await transport.receive())
        except TransportClosed as closed:
            return closed
        finally:
            writer.cancel()
            self._transport = None
            with contextlib.suppress(TransportClosed):
                await transport.close()
            for handle in self._handles:
                handle.state.connection_lost()
            self.changed()

    async def _write(self, transport: FrameTransport) -> None:
        try:
            while True:
                await self._has_output.wait()
                self._has_output.clear()
                await self._send_output(transport)
        except TransportClosed:
            logger.debug("a frame was not sent: the connection is lost")

    async def _send_output(self, transport: FrameTransport) -> None:
        for handle in list(self._handles):
            state = handle.state
            for event in state.events_to_send():
                if isinstance(event, SessionCreate):
                    self._creating.append(state)
                of_session = None if isinstance(event, SessionCreate) else state.session_id
                frame = self._protocol.send(
                    event,
                    event_id=new_id(),
                    timestamp=now_ms(),
                    session_id=of_session,
                )
                await transport.send(frame, of_session)

    # --- Receiving events ---

    def _take(self, frame: str) -> None:
        try:
            events = self._protocol.receive(frame, now=time.monotonic())
        except uamp.RemoteProtocolError as error:
            logger.warning("ignored an invalid frame of the server: %s", error)
            return
        for event in events:
            if isinstance(event, UnknownEvent):
                logger.debug("ignored an event of unknown type: %s", event.type_name)
            elif isinstance(event, Pong) and not self._is_ordered:
                self._start(self._pong_with_log(event))
            else:
                self._give(event)
        self.changed()

    @property
    def _is_ordered(self) -> bool:
        return self._transport is None or self._transport.is_ordered

    def _give(self, event: Event) -> None:
        handle = self._handle_for(event)
        if handle is None:
            if isinstance(event, SessionError):
                logger.warning("%s: %s", event.error.code, event.error.message)
            return
        is_new = handle.state.receive(event)
        if is_new:
            handle.on_event(event)
        for request in handle.state.take_requests():
            self._start(handle.on_request(request))
        for turn in handle.state.waiting_turns:
            if turn.retry_after is not None and not turn.is_retry_planned:
                turn.is_retry_planned = True
                self._start(self._retry(handle, turn, turn.retry_after))
        if handle.state.refusal is not None and not handle.state.error:
            refusal, handle.state.refusal = handle.state.refusal, None
            self._start(self._create_again(handle, refusal))

    def _handle_for(self, event: Event) -> SessionHandle | None:
        if isinstance(event, SessionCreated):
            state = self._creating.popleft() if self._creating else None
            return next(
                (candidate for candidate in self._handles if candidate.state is state), None
            )
        cause = _cause_of(event)
        for handle in self._handles:
            if cause is not None and handle.state.sent(cause):
                if cause == handle.state.create_id and handle.state in self._creating:
                    self._creating.remove(handle.state)
                return handle
        if event.session_id is not None:
            for handle in self._handles:
                if handle.state.session_id == event.session_id:
                    return handle
        return None

    async def _pong_with_log(self, pong: Pong) -> None:
        """Handle a pong that may have overtaken events over HTTP: read what began from the log."""
        handle = self._handle_for(pong)
        turn = handle.state.turn_of_pong(pong) if handle else None
        if handle is None or turn is None or turn.message is None:
            return
        at = turn.message_seq
        query = {"after": at, "before": at + _ANSWERS, "types": "response.created"}
        path = f"/api/v1/chats/{handle.state.chat}/events"
        page = await self._rest.read(path, Listed, **query)
        message_ids = [row["payload"].get("message_id") for row in page.data]
        handle.state.settle(turn, message_ids.count(turn.message.id))
        self.changed()

    async def _retry(self, handle: SessionHandle, turn: TurnState, seconds: float) -> None:
        await asyncio.sleep(seconds)
        turn.is_retry_planned = False
        handle.state.retry(turn)
        self.changed()

    async def _create_again(self, handle: SessionHandle, refusal: ClientError) -> None:
        await asyncio.sleep(refusal.retry_after or 5.0)
        if handle in self._handles and self._transport is not None and not handle.state.is_open:
            handle.state.begin()
            self.changed()

    def _start(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            try:
                await work
            except ClientError:
                logger.warning("a request failed", exc_info=True)

        task = asyncio.create_task(run())
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    def _fail(self, error: ClientError) -> None:
        for handle in self._handles:
            handle.state.fail(error)
        self._handles.clear()
        self.changed()


def _cause_of(event: Event) -> str | None:
    """Return the id of the client's event that an event responds to."""
    if isinstance(event, Pong):
        return event.reply_to
    if isinstance(event, SessionError | uamp.ResponseError):
        cause = (event.error.details or {}).get("event_id")
        return cause if isinstance(cause, str) else None
    return None


def _unreachable(http: httpx2.AsyncClient, error: BaseException) -> ConnectionLostError:
    reason = str(error) or type(error).__name__
    return ConnectionLostError(f"The server at {http.base_url} could not be reached: {reason}")
