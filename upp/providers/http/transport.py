"""The base of providers over HTTP: a request goes out, server-sent events come in.

A provider defines the request and interprets the pieces of the answer; connections, keys, time
limits, retries and failures are handled here. Closing the stream closes the request. aiohttp is
used directly, because vendors' SDKs validate parameters and hide new members (UPP-1.3 §2.5); hence
no provider needs a package of its own.
"""

import asyncio
import json
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, ClassVar, Protocol

import aiohttp
import msgspec

from upp.config.provider_config import ProviderConfig
from upp.config.retry import NoRetry, retrying
from upp.errors import ErrorCode, UPPError
from upp.json_values import plain
from upp.model import EmittingModel, LLMCapabilities, LLMRequest, LLMResponse
from upp.providers.http.connections import read_body
from upp.providers.http.failures import Failures, request_id_of
from upp.providers.http.server import VendorServer, with_bounded_usage
from upp.providers.http.sse import EventReader, TextReader
from upp.providers.parameters import option_names, overridden
from upp.stream import Emit, EventDelta, StreamEvent

SILENT_SECONDS = 300.0
"""How long a server may be silent, both before the first piece and between two: some models reason
for minutes before their first word."""
ERROR_BODY_BYTES = 64 * 1024
TURN_BYTES = 256 * 1024
"""After this many bytes of an answer, other tasks run: buffered data never waits for the network.
"""
EVENT_BYTES = 1024
"""Counted per event in addition to its bytes: decoding many small events takes long."""
DRAIN_SECONDS = 1.0
"""How long to wait for the end of a finished stream, so that its connection can be reused."""


@dataclass(frozen=True, kw_only=True)
class Post:
    """The HTTP request for one inference."""

    url: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A response without an answer; its body is cut after some ERROR_BODY_BYTES."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Answer(Protocol):
    """The content of an answer so far. Pure."""

    @property
    def done(self) -> bool:
        """Whether reading can stop."""

    @property
    def complete(self) -> bool:
        """Whether the server has reported the end of the answer."""

    def add(self, data: bytes) -> list[StreamEvent]:
        """Process the data of an event and return its stream events.

        Raises UPPError for an error reported by the server, msgspec.DecodeError for invalid data.
        """

    def response(self) -> LLMResponse:
        """Return the complete answer."""


class HttpProvider(VendorServer):
    """A server that answers an HTTP request with a stream; call it with a model's name."""

    answer_bytes: int | None = None
    """The most bytes of one answer, whatever they contain; None for no limit."""
    takes_json: ClassVar[bool] = False
    """Whether an answer may arrive as one JSON text, which is passed to its Answer as an event."""

    def __call__(self, model_id: str) -> "HttpModel":
        """Return a model of this server."""
        return HttpModel(server=self, model_id=model_id)

    @abstractmethod
    def post(
        self, model_id: str, request: LLMRequest, config: ProviderConfig, key: str | None
    ) -> Post:
        """Build the request; `config.base_url` is set. Raises UPPError INVALID_REQUEST."""

    @abstractmethod
    def answer(self, request: LLMRequest, failures: Failures) -> Answer:
        """Return an empty answer to a request."""

    async def after_refusal(self, post: Post, refusal: Refusal, failures: Failures) -> Post | None:
        """Return the request to send next, such as a paid one, or None to fail; raises UPPError."""
        del post, refusal, failures
        return None


@dataclass(frozen=True, kw_only=True)
class HttpModel(EmittingModel):
    """A model on such a server."""

    server: HttpProvider
    model_id: str

    @property
    def provider(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def capabilities(self) -> LLMCapabilities:
        """The capabilities of the API."""
        return self.server.capabilities

    def options(self, params: Mapping[str, Any]) -> frozenset[str]:
        """See AdjustableModel."""
        return option_names(self.server.default_name, params)

    def adjusted(self, params: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """See AdjustableModel."""
        return overridden(self.server.default_name, params, options)

    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """Run one inference: await `emit` with each event and return the response.

        Raises UPPError: by the server's error code and HTTP status (`retry_after` in seconds),
        TIMEOUT, NETWORK_ERROR if the connection is refused or lost, INVALID_RESPONSE for an invalid
        answer. Until the first event, attempts are repeated as the retry strategy decides. Raises
        errors of `emit`. The request is closed in every case.
        """
        inference = _Inference(self, request, emit)
        strategy = self.server.config.merged(request.config).retry or NoRetry()
        response, errors = await retrying(inference.attempt, strategy, inference.has_begun)
        return replace(response, earlier=errors) if errors else response


class _Inference:
    """One inference with all of its attempts; run by one task."""

    def __init__(self, model: HttpModel, request: LLMRequest, emit: Emit) -> None:
        self._model = model
        self._request = request
        self._emit = emit
        self._began = False

    def has_begun(self) -> bool:
        """Return whether an event has been emitted."""
        return self._began

    async def attempt(self) -> LLMResponse:
        """Send one request and read its answer."""
        server, request = self._model.server, self._request
        config, key = await server.connection(request.config)
        post = server.post(self._model.model_id, request, config, key)
        failures = Failures(provider=server.name, key=key, url=post.url)
        answer = server.answer(request, failures)
        response, sent = await self._respond(post, config, failures)
        try:
            is_json = server.takes_json and response.content_type == "application/json"
            reader = TextReader() if is_json else EventReader()
            reading = _Reading(
                response.content, answer, failures, reader, limit=server.answer_bytes
            )
            # Errors of `emit` are not failures of the server.
            while (events := await reading.events()) is not None:
                if not self._began:
                    self._began = True
                    await self._emit(StreamEvent(type="message_start"))
                for event in events:
                    await self._emit(event)
            await reading.drain()
            if not self._began:
                raise failures.no_stream(reading.head)
            finished = with_bounded_usage(
                _finished(answer, failures), config, sent=sent, received=reading.received
            )
        except UPPError as error:
            error.request_id = error.request_id or request_id_of(response.headers)
            raise
        finally:
            # A response read to its end has already returned its connection.
            response.close()
        await self._emit(StreamEvent(type="message_stop", delta=EventDelta(usage=finished.usage)))
        request_id = request_id_of(response.headers)
        return replace(finished, request_id=request_id) if request_id else finished

    async def _respond(
        self, post: Post, config: ProviderConfig, failures: Failures
    ) -> tuple[aiohttp.ClientResponse, int]:
        """Send a request until it is not refused; return the response and the bytes sent."""
        server, next_post = self._model.server, post
        while True:
            body = _content(next_post, failures)
            with failures.translated():
                response = await server.session(config).post(
                    next_post.url,
                    headers=_headers(next_post, config),
                    body=body,
                    silent=SILENT_SECONDS if config.timeout is None else config.timeout,
                )
            if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
                return response, len(body)
            try:
                with failures.translated():
                    data = await read_body(response, ERROR_BODY_BYTES)
            finally:
                response.close()
            refusal = Refusal(status=response.status, headers=response.headers, body=data)
            again = await server.after_refusal(next_post, refusal, failures)
            if again is None:
                raise failures.refused(refusal.status, refusal.headers, refusal.body)
            next_post = again


def _finished(answer: Answer, failures: Failures) -> LLMResponse:
    if not answer.complete:
        message = "The answer was cut off before its end."
        raise failures.error(message, ErrorCode.NETWORK_ERROR)
    finished = answer.response()
    has_output = finished.message.text or finished.message.tool_calls
    if finished.stop_reason == "content_filter" and not has_output:
        raise failures.error("The answer was filtered out.", ErrorCode.CONTENT_FILTERED)
    return finished


def _content(post: Post, failures: Failures) -> bytes:
    try:
        return plain.encode(post.body)
    except TypeError as error:
        message = f"The request is not JSON: {error}"
        raise failures.error(message, ErrorCode.INVALID_REQUEST) from error


def _headers(post: Post, config: ProviderConfig) -> dict[str, str]:
    """Merge the headers of a request, ignoring case; later ones win."""
    defaults = {"Accept": "text/event-stream", "Content-Type": "application/json"}
    by_name = {
        name.lower(): (name, value)
        for headers in (defaults, post.headers, config.headers)
        for name, value in headers.items()
    }
    return dict(by_name.values())


class _Reading:
    """A response as its bytes arrive; `head` keeps the first of them, `received` counts them."""

    def __init__(
        self,
        content: aiohttp.StreamReader,
        answer: Answer,
        failures: Failures,
        reader: EventReader | TextReader,
        *,
        limit: int | None = None,
    ) -> None:
        self.head = b""
        self.received = 0
        self._limit = limit
        self._content = content
        self._answer = answer
        self._failures = failures
        self._reader = reader
        # Data of the server's events that has been read but not processed.
        self._waiting: deque[bytes] = deque()
        self._ended = False
        # The bytes read since other tasks had a turn.
        self._in_turn = 0

    async def events(self) -> list[StreamEvent] | None:
        """Return the events for the server's next event; None after the last. Raises UPPError."""
        try:
            while not self._waiting:
                if self._ended:
                    return None
                chunk = await self._chunk()
                if not chunk:
                    self._ended = True
                    return self._rest()
                self._waiting.extend(self._reader.feed(chunk))
            await self._count(EVENT_BYTES)
            events = _add(self._answer, self._waiting.popleft())
        except Exception as error:
            self._failures.raise_for(error)
            raise
        if self._answer.done:
            self._ended = True
            self._waiting.clear()
        return events

    async def drain(self) -> None:
        """Read past the end of the answer; a disconnect no longer matters."""
        if self._content.at_eof():
            return
        with suppress(TimeoutError, aiohttp.ClientError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while await self._piece():
                    pass

    async def _chunk(self) -> bytes:
        try:
            chunk = await self._piece()
        except aiohttp.ClientError:
            # Some servers drop the connection after the last event.
            if not self._answer.complete:
                raise
            return b""
        self.head = self.head or chunk[:ERROR_BODY_BYTES]
        return chunk

    async def _piece(self) -> bytes:
        piece = await self._content.readany()
        self.received += len(piece)
        if self._limit is not None and self.received > self._limit:
            message = f"The answer has more than {self._limit} bytes."
            raise self._failures.error(message, ErrorCode.INVALID_RESPONSE)
        await self._count(len(piece))
        return piece

    async def _count(self, size: int) -> None:
        self._in_turn += size
        if self._in_turn >= TURN_BYTES:
            self._in_turn = 0
            await asyncio.sleep(0)

    def _rest(self) -> list[StreamEvent] | None:
        # Not every server ends its last event with an empty line; an incomplete event is ignored.
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            groups = [_add(self._answer, data) for data in self._reader.end()]
            return [event for events in groups for event in events] if groups else None
        return None


def _add(answer: Answer, data: bytes) -> list[StreamEvent]:
    try:
        return answer.add(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        mended = _without_surrogates(data)
        if mended is None:
            raise
        return answer.add(mended)


def _without_surrogates(data: bytes) -> bytes | None:
    """Replace lone surrogates in JSON with a mark: some servers split pairs between events."""
    try:
        value = json.loads(data.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
