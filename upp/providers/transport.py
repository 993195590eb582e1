"""What all providers over HTTP share: a request goes out, server-sent events come in.

A provider says what is posted and what an answer's pieces mean; connections, keys, time
limits, retries and failures are handled here. Closing the stream closes the request. aiohttp is
used directly, because vendors' kits check parameters and hide members that are new (UPP-1.3 §2.5);
so no provider needs a package of its own.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, ClassVar, Protocol, Self

import aiohttp
import msgspec

from upp.config.keys import Key, resolve_key
from upp.config.provider_config import ProviderConfig
from upp.config.retry import NoRetry, retrying
from upp.errors import ErrorCode, UPPError
from upp.json_values import plain
from upp.model import LLMCapabilities, LLMRequest, LLMResponse
from upp.providers.connections import Session, Sessions
from upp.providers.failures import Failures
from upp.providers.sse import EventReader
from upp.stream import EventDelta, StreamEvent

SILENT_SECONDS = 300.0
"""How long a server may be silent, before the first piece and between two: some models reason for
minutes before their first word."""
ERROR_BODY_BYTES = 64 * 1024
DRAIN_SECONDS = 1.0
"""How long the end of a finished stream is awaited, so that the connection can be used again."""


@dataclass(frozen=True, kw_only=True)
class Post:
    """What a provider posts for one inference."""

    url: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]


class Answer(Protocol):
    """What a server has said so far; pure."""

    done: bool
    """Whether nothing more is to be read."""

    @property
    def complete(self) -> bool:
        """Whether the server said that this is all."""

    def add(self, data: bytes) -> list[StreamEvent]:
        """Keep the data of an event and return what it means.

        Raises UPPError for a failure that the server reports, msgspec.DecodeError for nonsense.
        """

    def response(self) -> LLMResponse:
        """Return the whole answer."""


class HttpProvider(ABC):
    """One server and one key; call it with a model's name to get the model.

    Without an address the environment names the server and the key; a server of one's own gets no
    key from the environment. Connections are kept per event loop and shared by all models.
    """

    default_name: ClassVar[str]
    default_base_url: ClassVar[str]
    needs_key: ClassVar[bool] = True
    capabilities: ClassVar[LLMCapabilities]

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: Key | None = None,
        name: str | None = None,
        config: ProviderConfig | None = None,
    ) -> None:
        given = ProviderConfig(base_url=base_url, api_key=api_key)
        self.name = name or self.default_name
        self.config = (config or ProviderConfig()).merged(given)
        self._sessions = Sessions()

    def __call__(self, model_id: str) -> "HttpModel":
        """Return a model of this server."""
        return HttpModel(server=self, model_id=model_id)

    @abstractmethod
    def environment(self) -> tuple[str | None, str | None]:
        """Return the address and the key that the environment names."""

    @property
    def address(self) -> str:
        """The server that is asked where a request names no other."""
        named = self.config.base_url or self.environment()[0] or self.default_base_url
        return named.rstrip("/")

    @abstractmethod
    def post(
        self, model_id: str, request: LLMRequest, config: ProviderConfig, key: str | None
    ) -> Post:
        """Return what is posted; `config.base_url` is set. Raises UPPError INVALID_REQUEST."""

    @abstractmethod
    def answer(self, request: LLMRequest, failures: Failures) -> Answer:
        """Return the empty answer to a request."""

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._sessions.aclose()

    def session(self, config: ProviderConfig) -> Session:
        """Return the running loop's session for a configuration."""
        return self._sessions.session(config.connector)

    async def connection(self, over: ProviderConfig | None) -> tuple[ProviderConfig, str | None]:
        """Return the configuration of a request, with its address, and its key.

        A key goes to the server that it was given for and to no other. Raises UPPError
        AUTHENTICATION_FAILED when there is none and the server needs one.
        """
        config = self.config.merged(over)
        if over is not None and over.base_url is not None and over.api_key is None:
            config = replace(config, api_key=None)
        key = None if config.api_key is None else await self._key(config.api_key)
        if config.base_url is not None:
            return replace(config, base_url=config.base_url.rstrip("/")), key
        _, own_key = self.environment()
        key = key or (await self._key(own_key) if own_key else None)
        if key is None and self.needs_key:
            message = f"The environment has no key for {self.name}."
            raise Failures(provider=self.name).error(message, ErrorCode.AUTHENTICATION_FAILED)
        return replace(config, base_url=self.address), key

    async def _key(self, given: Key) -> str | None:
        failures = Failures(provider=self.name)
        try:
            # Keys come out of files and of other people's messages.
            key = (await resolve_key(given) or "").strip()
        except UPPError:
            raise
        except Exception as error:
            message = f"There was no getting the key for {self.name}: {type(error).__name__}."
            raise failures.error(message, ErrorCode.AUTHENTICATION_FAILED) from error
        if not (key.isascii() and key.isprintable()):
            message = f"The key for {self.name} has characters that no key has."
            raise failures.error(message, ErrorCode.AUTHENTICATION_FAILED)
        return key or None


@dataclass(frozen=True, kw_only=True)
class HttpModel:
    """A model behind such a server."""

    server: HttpProvider
    model_id: str

    @property
    def provider(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def capabilities(self) -> LLMCapabilities:
        """What the API can do."""
        return self.server.capabilities

    async def stream(self, request: LLMRequest) -> AsyncGenerator[StreamEvent | LLMResponse, None]:
        """Do one inference.

        Raises UPPError: by the server's words and HTTP status (`retry_after` in seconds), TIMEOUT,
        NETWORK_ERROR when the connection is refused or cut, INVALID_RESPONSE for what is no answer.
        What the retry strategy wants is tried again, until the first event.
        """
        strategy = self.server.config.merged(request.config).retry or NoRetry()
        items = retrying(lambda: self._attempt(request), strategy)
        try:
            async for item in items:
                yield item
        finally:
            await items.aclose()

    async def _attempt(
        self, request: LLMRequest
    ) -> AsyncGenerator[StreamEvent | LLMResponse, None]:
        server = self.server
        config, key = await server.connection(request.config)
        post = server.post(self.model_id, request, config, key)
        failures = Failures(provider=server.name, key=key, url=post.url)
        answer = server.answer(request, failures)
        began = False
        with failures.translated():
            response = await server.session(config).post(
                post.url,
                headers=_headers(post, config),
                body=_content(post, failures),
                silent=SILENT_SECONDS if config.timeout is None else config.timeout,
            )
            try:
                if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
                    body = await _error_body(response)
                    raise failures.refused(response.status, response.headers, body)
                chunks = _Chunks(response)
                async with aclosing(_understood(answer, chunks)) as understood:
                    async for events in understood:
                        if not began:
                            began = True
                            yield StreamEvent(type="message_start")
                        for event in events:
                            yield event
                await chunks.drain()
            finally:
                # A response that was read to its end has returned its connection already.
                response.close()
        if not began:
            raise failures.no_stream(chunks.head)
        if not answer.complete:
            message = "The answer was cut off before its end."
            raise failures.error(message, ErrorCode.NETWORK_ERROR)
        finished = answer.response()
        said = finished.message.text or finished.message.tool_calls
        if finished.stop_reason == "content_filter" and not said:
            raise failures.error("The answer was filtered out.", ErrorCode.CONTENT_FILTERED)
        yield StreamEvent(type="message_stop", delta=EventDelta(usage=finished.usage))
        yield finished


def _content(post: Post, failures: Failures) -> bytes:
    try:
        return plain.encode(post.body)
    except TypeError as error:
        message = f"The request is no JSON: {error}"
        raise failures.error(message, ErrorCode.INVALID_REQUEST) from error


def _headers(post: Post, config: ProviderConfig) -> dict[str, str]:
    """Return the headers of a request; of two with one name the later counts."""
    own = {"Accept": "text/event-stream", "Content-Type": "application/json"}
    named = {
        name.lower(): (name, value)
        for given in (own, post.headers, config.headers)
        for name, value in given.items()
    }
    return dict(named.values())


async def _error_body(response: aiohttp.ClientResponse) -> bytes:
    body = b""
    while len(body) <= ERROR_BODY_BYTES and (piece := await response.content.readany()):
        body += piece
    return body


class _Chunks:
    """The bytes of a response as they come; `head` keeps the first of them."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.head = b""
        self._content = response.content

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._content.readany()
        if not chunk:
            raise StopAsyncIteration
        self.head = self.head or chunk[:ERROR_BODY_BYTES]
        return chunk

    async def drain(self) -> None:
        """Read what comes after the answer; however the server disconnects, the answer is there."""
        with suppress(TimeoutError, aiohttp.ClientError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while await self._content.readany():
                    pass


async def _understood(answer: Answer, chunks: _Chunks) -> AsyncGenerator[list[StreamEvent], None]:
    """Yield what each of the server's events means."""
    reader = EventReader()
    try:
        async for chunk in chunks:
            for data in reader.feed(chunk):
                yield _added(answer, data)
                if answer.done:
                    return
    except aiohttp.ClientError:
        # Some servers tear the connection down after the last word.
        if not answer.complete:
            raise
    # Not every server ends its last event with an empty line, and half an event is none.
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        for events in [_added(answer, data) for data in reader.feed(b"\n\n")]:
            yield events


def _added(answer: Answer, data: bytes) -> list[StreamEvent]:
    try:
        return answer.add(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        mended = _mended(data)
        if mended is None:
            raise
        return answer.add(mended)


def _mended(data: bytes) -> bytes | None:
    """Return JSON with a mark for each half of a character: some servers cut between the halves."""
    try:
        value = json.loads(data.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
