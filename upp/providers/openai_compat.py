"""Any server that speaks OpenAI's chat completions: OpenAI, Ollama, vLLM, Groq, gateways.

The law: parameters go to the server as they are, and what the server gets wrong becomes a UPPError
without the key in it. Closing the stream closes the request. httpx is used directly, because a
vendor's kit would check parameters and hide fields that other servers add (UPP-1.3 §2.5).
"""

import asyncio
import math
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from weakref import WeakKeyDictionary

import httpx
import msgspec

from upp.errors import ErrorCode, UPPError, code_for_status
from upp.model import LLMCapabilities, LLMRequest, LLMResponse
from upp.providers.openai_answer import Answer, Chunk
from upp.providers.openai_request import request_body
from upp.providers.sse import EventReader, EventTooLongError
from upp.stream import EventDelta, StreamEvent

DEFAULT_BASE_URL = "https://api.openai.com/v1"
TIMEOUT = httpx.Timeout(connect=5.0, read=60.0, write=30.0, pool=5.0)
"""Seconds; `read` is how long the server may be silent, before the first piece and between two."""
LIMITS = httpx.Limits(max_connections=2000, max_keepalive_connections=50)
ERROR_BODY_BYTES = 64 * 1024
MAX_RETRY_AFTER = 3600.0
DRAIN_SECONDS = 1.0
"""How long the end of a finished stream is awaited, so that the connection can be used again."""

_CAPABILITIES = LLMCapabilities(image_input=True, document_input=True, audio_input=True)
_DECODER = msgspec.json.Decoder(Chunk)
_CODES = {
    "context_length_exceeded": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "insufficient_quota": ErrorCode.QUOTA_EXCEEDED,
    "model_not_found": ErrorCode.MODEL_NOT_FOUND,
    "content_filter": ErrorCode.CONTENT_FILTERED,
    "content_policy_violation": ErrorCode.CONTENT_FILTERED,
    "rate_limit_exceeded": ErrorCode.RATE_LIMITED,
    "invalid_api_key": ErrorCode.AUTHENTICATION_FAILED,
}


class OpenAICompatProvider:
    """One server and one key; call it with a model's name to get the model.

    Without arguments OPENAI_BASE_URL and OPENAI_API_KEY are read. Connections are kept per event
    loop and shared by all models of the provider.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: httpx.Timeout = TIMEOUT,
        name: str = "openai_compat",
    ) -> None:
        if base_url is None:
            base_url = os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL
            api_key = api_key or os.environ.get("OPENAI_API_KEY")
        self.name = name
        self.url = f"{base_url.rstrip('/')}/chat/completions"
        self._api_key = api_key
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            WeakKeyDictionary()
        )

    def __call__(self, model_id: str) -> "OpenAICompatModel":
        """Return a model of this server."""
        return OpenAICompatModel(server=self, model_id=model_id)

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def client(self) -> httpx.AsyncClient:
        """Return the running loop's client."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            headers = {"Accept": "text/event-stream", **self._headers}
            if self._api_key:
                headers.setdefault("Authorization", f"Bearer {self._api_key}")
            client = httpx.AsyncClient(headers=headers, timeout=self._timeout, limits=LIMITS)
            self._clients[loop] = client
        return client

    def error(
        self,
        message: str,
        code: ErrorCode,
        *,
        status_code: int | None = None,
        retry_after: float | None = None,
    ) -> UPPError:
        """Return an error of this server, without its key and at most 500 characters long."""
        if self._api_key:
            message = message.replace(self._api_key, "***")
        return UPPError(
            message[:500],
            code=code,
            provider=self.name,
            status_code=status_code,
            retry_after=retry_after,
        )

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Turn what the transport raises into UPPError."""
        try:
            yield
        except httpx.TimeoutException as error:
            raise self.error(
                f"The server was silent too long: {error!r}", ErrorCode.TIMEOUT
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self.error(
                f"The connection failed: {error!r}", ErrorCode.NETWORK_ERROR
            ) from error
        except EventTooLongError as error:
            raise self.error(
                "The server sent an event without an end.", ErrorCode.INVALID_RESPONSE
            ) from error


@dataclass(frozen=True, kw_only=True)
class OpenAICompatModel:
    """A model of such a server."""

    server: OpenAICompatProvider
    model_id: str
    capabilities: LLMCapabilities = _CAPABILITIES

    @property
    def provider(self) -> str:
        """The server's name."""
        return self.server.name

    async def stream(self, request: LLMRequest) -> AsyncGenerator[StreamEvent | LLMResponse, None]:
        """Do one inference.

        Raises UPPError: by the HTTP status (`retry_after` from Retry-After), TIMEOUT, NETWORK_ERROR
        when the connection is refused or cut, INVALID_RESPONSE for what is no completion.
        """
        body = msgspec.json.encode(request_body(self.model_id, request, provider=self.provider))
        answer = Answer()
        yield StreamEvent(type="message_start")
        with self.server.translated_errors():
            async with self.server.client().stream(
                "POST",
                self.server.url,
                content=body,
                headers={"Content-Type": "application/json"},
            ) as response:
                if not response.is_success:
                    raise await self._refused(response)
                chunks = response.aiter_bytes()
                async for data in _events(chunks):
                    if data == b"[DONE]":
                        answer.done = True
                        break
                    for event in answer.add(self._chunk(data)):
                        yield event
                with suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_SECONDS):
                        async for _ in chunks:
                            pass
        if not answer.complete:
            raise self.server.error(
                "The answer was cut off before its end.", ErrorCode.NETWORK_ERROR
            )
        if answer.stop_reason == "content_filter" and answer.empty:
            raise self.server.error("The answer was filtered out.", ErrorCode.CONTENT_FILTERED)
        finished = answer.response(request)
        yield StreamEvent(type="message_stop", delta=EventDelta(usage=finished.usage))
        yield finished

    def _chunk(self, data: bytes) -> Chunk:
        try:
            chunk = _DECODER.decode(data)
        except msgspec.DecodeError as error:
            raise self.server.error(
                f"The server sent no completion chunk: {error}", ErrorCode.INVALID_RESPONSE
            ) from error
        if chunk.error:
            message, code = _error_facts(chunk.error)
            raise self.server.error(message, _CODES.get(code, ErrorCode.PROVIDER_ERROR))
        return chunk

    async def _refused(self, response: httpx.Response) -> UPPError:
        body = b""
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > ERROR_BODY_BYTES:
                break
        try:
            facts = msgspec.json.decode(body)
        except msgspec.DecodeError:
            facts = body.decode(errors="replace")
        if isinstance(facts, dict):
            facts = facts.get("error") or facts
        message, code = _error_facts(facts)
        status = response.status_code
        return self.server.error(
            f"HTTP {status}: {message}",
            _CODES.get(code) or code_for_status(status),
            status_code=status,
            retry_after=_retry_after(response.headers),
        )


async def _events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    reader = EventReader()
    async for chunk in chunks:
        for event in reader.feed(chunk):
            yield event
    # Not every server ends its last event with an empty line.
    for event in reader.feed(b"\n\n"):
        yield event


def _error_facts(facts: Any) -> tuple[str, str]:
    """Return the words and the code of an error body, in the shapes that servers use."""
    if not isinstance(facts, dict):
        return str(facts), ""
    message = facts.get("message") or facts.get("detail") or "no message"
    return str(message), str(facts.get("code") or facts.get("type") or "")


def _retry_after(headers: httpx.Headers) -> float | None:
    """Return the seconds of Retry-After, which is a number or a date, within an hour."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
            now = parsedate_to_datetime(headers["date"])
        except (ValueError, KeyError):
            return None
        seconds = (at - now).total_seconds()
    return min(max(seconds, 0.0), MAX_RETRY_AFTER) if math.isfinite(seconds) else None
