"""The base of remote agents on a WebSocket: the connection, its limits and its end."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

import aiohttp
from django.conf import settings

from agents_app.remote import hops
from agents_app.remote.addresses import session_of
from agents_app.remote.protocols.server import Called, SideEvents
from upp import ErrorCode, LLMCapabilities, LLMRequest, LLMResponse, StreamEvent
from upp.model import EmittingModel
from upp.providers.http.failures import Failures
from upp.stream import Emit, EventDelta

GOODBYE_SECONDS = 2.0


class SocketLost(Exception):
    """The connection was lost; an answer may be resumed on a new one."""


@dataclass
class SocketTraffic:
    """The bytes sent and received, and the frames received, for one answer on all connections."""

    sent: int = 0
    received: int = 0
    frames: int = 0


@dataclass
class SocketFrames:
    """One connection that sends, receives and counts text frames."""

    socket: aiohttp.ClientWebSocketResponse
    failures: Failures
    traffic: SocketTraffic
    last_words: Callable[[], list[str]] = list
    """Returns the frames to send before the connection is closed."""

    async def send(self, text: str) -> None:
        """Send a frame; raises SocketLost."""
        self.traffic.sent += len(text.encode())
        try:
            await self.socket.send_str(text)
        except (aiohttp.ClientError, OSError) as error:
            raise SocketLost from error

    async def receive(self) -> str:
        """Return the next frame; raises SocketLost, and UPPError for binary or too much data."""
        message = await self.socket.receive()
        if message.type is aiohttp.WSMsgType.TEXT:
            text: str = message.data
            self.traffic.received += len(text.encode())
            self.traffic.frames += 1
            if self.traffic.received > settings.UAMP_REMOTE_ANSWER_BYTES:
                raise self._too_much(f"{settings.UAMP_REMOTE_ANSWER_BYTES} bytes")
            if self.traffic.frames > settings.UAMP_REMOTE_EVENTS:
                raise self._too_much(f"{settings.UAMP_REMOTE_EVENTS} events")
            return text
        if message.type is aiohttp.WSMsgType.ERROR and isinstance(message.data, Exception):
            if isinstance(message.data, aiohttp.WebSocketError):
                raise self._too_much("a frame may have")
            raise SocketLost from message.data
        if message.type is aiohttp.WSMsgType.BINARY:
            message_text = "The agent sent a binary frame."
            raise self.failures.error(message_text, ErrorCode.INVALID_RESPONSE)
        raise SocketLost

    def _too_much(self, what: str) -> Exception:
        return self.failures.error(f"The answer has more than {what}.", ErrorCode.INVALID_RESPONSE)


class SocketModel(EmittingModel):
    """A remote agent that is called on a new WebSocket for each inference."""

    capabilities = LLMCapabilities(image_input=True, document_input=True)

    def __init__(self, called: Called, side_events: SideEvents) -> None:
        self.called = called
        self.side_events = side_events
        self.failures = Failures(provider=called.protocol, key=called.key, url=self.address)

    @property
    def model_id(self) -> str:
        """See Model."""
        return self.called.name

    @property
    def provider(self) -> str:
        """See Model."""
        return self.called.protocol

    @property
    @abstractmethod
    def address(self) -> str:
        """The http or https URL of the socket."""

    @abstractmethod
    async def ask(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """Run one inference; see Model."""

    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """See EmittingModel."""
        await emit(StreamEvent(type="message_start"))
        try:
            response = await self.ask(request, emit)
        except SocketLost as error:
            message = "The connection broke before the end of the answer."
            raise self.failures.error(message, ErrorCode.NETWORK_ERROR) from error
        await emit(StreamEvent(type="message_stop", delta=EventDelta(usage=response.usage)))
        return response

    @asynccontextmanager
    async def connected(self, traffic: SocketTraffic) -> AsyncIterator[SocketFrames]:
        """Yield a connection that counts into `traffic`.

        Raises UPPError if the agent cannot be reached or is silent.
        """
        key = self.called.key
        headers = {hops.HEADER: str(self.called.hops)}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        session = session_of(self.called.target)
        try:
            socket = await session.dial(self.address, headers=headers, silent=self.called.silent)
        except aiohttp.WSServerHandshakeError as error:
            raise self.failures.refused(error.status, error.headers or {}, b"") from error
        except Exception as error:
            self.failures.raise_for(error)
            raise
        frames = SocketFrames(socket, self.failures, traffic)
        try:
            with self.failures.translated():
                yield frames
        finally:
            # The other side may be silent, so its close frame is not awaited.
            closing = asyncio.ensure_future(_closed(socket, frames.last_words()))
            _CLOSING.add(closing)
            closing.add_done_callback(_CLOSING.discard)

    def believed(self, response: LLMResponse, traffic: SocketTraffic) -> LLMResponse:
        """Return a response with its token counts capped."""
        written = traffic.received + self.called.reasoning
        return replace(response, usage=response.usage.within(read=traffic.sent, written=written))


_CLOSING: set[asyncio.Future[None]] = set()


async def _closed(socket: aiohttp.ClientWebSocketResponse, last: list[str]) -> None:
    with suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with asyncio.timeout(GOODBYE_SECONDS):
            for text in last:
                await socket.send_str(text)
            await socket.close()
