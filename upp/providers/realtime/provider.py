"""A vendor's Realtime API as a model, with one WebSocket per inference.

The socket uses the provider's connections, with their limits and rules. Ending the inference closes
the socket, which cancels the answer at the vendor.
"""

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import quote

import aiohttp
import msgspec

from upp.config.retry import NoRetry, retrying
from upp.errors import ErrorCode, UPPError
from upp.json_values import plain
from upp.model import EmittingModel, LLMCapabilities, LLMRequest, LLMResponse
from upp.providers.http.connections import CLOSE_SECONDS
from upp.providers.http.failures import Failures
from upp.providers.http.server import VendorServer, with_bounded_usage
from upp.providers.http.transport import SILENT_SECONDS
from upp.providers.realtime.answer import RealtimeAnswer
from upp.providers.realtime.request import SPEECH, Sent, events_of, transcripts_of
from upp.stream import Emit, EventDelta, StreamEvent

TRANSCRIPT_SECONDS = 5.0
"""How long to wait for transcripts of the input after an answer."""


class OpenAIRealtimeProvider(VendorServer):
    """OpenAI's Realtime API, or a compatible server; call it with a model's name.

    Uses OPENAI_BASE_URL and OPENAI_API_KEY if no address is given.
    """

    default_name = "openai_realtime"
    default_base_url = "https://api.openai.com/v1"
    needs_key = False
    capabilities = LLMCapabilities(
        structured_output=False, image_input=True, document_input=True, audio_input=True
    )

    def __call__(self, model_id: str) -> "RealtimeModel":
        """Return a model of this server."""
        return RealtimeModel(server=self, model_id=model_id)

    def environment(self) -> tuple[str | None, str | None]:
        """Return the address and the key set in the environment."""
        return os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY")


@dataclass(frozen=True, kw_only=True)
class RealtimeModel(EmittingModel):
    """A model on such a server."""

    server: OpenAIRealtimeProvider
    model_id: str

    @property
    def provider(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def capabilities(self) -> LLMCapabilities:
        """The capabilities of the API."""
        return self.server.capabilities

    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """Run one inference: await `emit` with each event and return the response.

        Raises UPPError like an HTTP model, and errors of `emit`. Until the first event, attempts
        are repeated as the retry strategy decides. The socket is closed in every case.
        """
        inference = _RealtimeInference(self, request, emit)
        strategy = self.server.config.merged(request.config).retry or NoRetry()
        response, errors = await retrying(inference.attempt, strategy, inference.has_begun)
        return replace(response, earlier=errors) if errors else response


class _RealtimeInference:
    """One inference with all of its attempts; run by one task."""

    def __init__(self, model: RealtimeModel, request: LLMRequest, emit: Emit) -> None:
        self._model = model
        self._request = request
        self._emit = emit
        self._began = False

    def has_begun(self) -> bool:
        """Return whether an event has been emitted."""
        return self._began

    async def attempt(self) -> LLMResponse:
        """Open a socket, send the request and read its answer."""
        server, request = self._model.server, self._request
        config, key = await server.connection(request.config)
        url = f"{config.base_url}/realtime?model={quote(self._model.model_id, safe='')}"
        failures = Failures(provider=server.name, key=key, url=url)
        silent = SILENT_SECONDS if config.timeout is None else config.timeout
        headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **config.headers}
        answer = RealtimeAnswer(
            request,
            failures,
            transcripts=transcripts_of(request),
            speaks=SPEECH in request.params,
        )
        with failures.translated():
            try:
                socket = await server.session(config).dial(url, headers=headers, silent=silent)
            except aiohttp.WSServerHandshakeError as error:
                has_output = b"the WebSocket was refused"
                raise failures.refused(error.status, error.headers or {}, has_output) from error
        talk = _VendorSocket(socket, answer, failures, silent=silent)
        try:
            await talk.send(events_of(request, provider=server.name))
            while (events := await talk.events()) is not None:
                if not self._began:
                    self._began = True
                    await self._emit(StreamEvent(type="message_start"))
                for event in events:
                    await self._emit(event)
        finally:
            await talk.close()
        finished = with_bounded_usage(
            answer.response(), config, sent=talk.sent, received=talk.received
        )
        if finished.stop_reason == "content_filter" and not finished.message.text:
            raise failures.error("The answer was filtered out.", ErrorCode.CONTENT_FILTERED)
        await self._emit(StreamEvent(type="message_stop", delta=EventDelta(usage=finished.usage)))
        return finished


class _VendorSocket:
    """The socket of one attempt; `sent` and `received` count its characters."""

    def __init__(
        self,
        socket: aiohttp.ClientWebSocketResponse,
        answer: RealtimeAnswer,
        failures: Failures,
        *,
        silent: float,
    ) -> None:
        self._socket = socket
        self._answer = answer
        self._failures = failures
        self._silent = silent
        self._deadline: float | None = None
        self.sent = self.received = 0

    async def send(self, events: Iterable[Sent]) -> None:
        """Send events; raises UPPError if an event is invalid or the server is unreachable."""
        for event in events:
            with self._failures.translated():
                text = plain.encode(event).decode()
                self.sent += len(text)
                async with asyncio.timeout(self._silent):
                    await self._socket.send_str(text)
            # Audio can be megabytes, which a fast network accepts without a pause.
            await asyncio.sleep(0)

    async def events(self) -> list[StreamEvent] | None:
        """Return the events for the server's next event; None after the last. Raises UPPError."""
        if self._answer.is_answered:
            return await self._transcript()
        with self._failures.translated():
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                self.received += len(message.data)
                return self._answer.add(message.data)
        raise self._ended(message)

    async def _transcript(self) -> list[StreamEvent] | None:
        """Return an event of a transcript that is still expected, or None."""
        loop = asyncio.get_running_loop()
        self._deadline = self._deadline or loop.time() + TRANSCRIPT_SECONDS
        if self._answer.transcripts <= 0:
            return None
        # The answer is complete, with or without them.
        with suppress(TimeoutError, aiohttp.ClientError, UPPError, msgspec.DecodeError):
            async with asyncio.timeout_at(self._deadline):
                message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                return self._answer.add(message.data)
        return None

    async def close(self) -> None:
        """Close the socket; do not wait long for a server that does not respond."""
        # aiohttp's own time limit restarts with each message.
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._socket.close()

    def _ended(self, message: aiohttp.WSMessage) -> UPPError:
        code = self._socket.close_code
        if message.type is aiohttp.WSMsgType.BINARY:
            text = "The server sent a message that is not an event."
            return self._failures.error(text, ErrorCode.INVALID_RESPONSE)
        if code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
            text = "The server sent an event without an end."
            return self._failures.error(text, ErrorCode.INVALID_RESPONSE)
        extra = f": {message.extra}" if message.extra else ""
        text = f"The server closed the socket before the end of its answer ({code}{extra})."
        return self._failures.error(text, ErrorCode.NETWORK_ERROR)
