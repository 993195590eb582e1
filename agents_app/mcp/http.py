"""MCP over HTTP, with a client that only connects to one checked address.

Connections are those of `agents_app.outbound.backends`. Redirects do not lead elsewhere.
"""

from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass

import httpcore2
import httpx2

from agents_app.mcp.places import Address
from agents_app.outbound.backends import CONNECT_SECONDS, GuardedBackend
from agents_app.outbound.rules import Target

_ERROR_STATUS = 400


@dataclass
class Talk:
    """The state of the requests to a server; `status` is that of the last error response."""

    status: int | None = None
    is_too_large: bool = False
    unreachable: str | None = None


def guarded_client(
    address: Address, *, seconds: float, max_bytes: int, talk: Talk
) -> httpx2.AsyncClient:
    """Return a client for one server; each response may have at most `max_bytes`."""
    return httpx2.AsyncClient(
        transport=_GuardedTransport(address.target, max_bytes, talk),
        headers={**address.headers, "accept-encoding": "identity", "user-agent": "uamp-server"},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=seconds),
        trust_env=False,
    )


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over checked connections and limits the size of responses."""

    def __init__(self, target: Target, max_bytes: int, talk: Talk) -> None:
        self._target = target
        self._max_bytes = max_bytes
        self._talk = talk
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            network_backend=GuardedBackend(target, on_unreachable=self._note_unreachable),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; raises httpx2.TransportError."""
        if not isinstance(request.stream, httpx2.AsyncByteStream):
            raise TypeError("a request of this client is sent in pieces")
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            response = await self._pool.handle_async_request(sent)
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise httpx2.NetworkError(str(error)) from error
        except httpcore2.TimeoutException as error:
            raise httpx2.TimeoutException(str(error)) from error
        if request.method == "POST":
            # Not every server lets a client listen (GET) or end the session (DELETE).
            self._talk.status = response.status if response.status >= _ERROR_STATUS else None
        answer = httpx2.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_CountedStream(response, self._max_bytes, self._talk),
            extensions=response.extensions,
        )
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            # The request asked for no compression: a few bytes may unpack to any size.
            await answer.aclose()
            raise httpx2.DecodingError("the answer is compressed")
        return answer

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()

    def _note_unreachable(self, reason: str) -> None:
        self._talk.unreachable = reason


class _CountedStream(httpx2.AsyncByteStream):
    """The body of a response, up to a size limit."""

    def __init__(self, response: httpcore2.Response, max_bytes: int, talk: Talk) -> None:
        self._response = response
        self._max_bytes = max_bytes
        self._talk = talk

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        received = 0
        stream = self._response.stream
        if not isinstance(stream, AsyncIterable):
            raise TypeError("an answer of this client comes in pieces")
        try:
            async for chunk in stream:
                received += len(chunk)
                if received > self._max_bytes:
                    self._talk.is_too_large = True
                    raise httpx2.StreamError(f"more than {self._max_bytes} bytes")
                yield chunk
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise httpx2.ReadError(str(error)) from error
        except httpcore2.TimeoutException as error:
            raise httpx2.ReadTimeout(str(error)) from error

    async def aclose(self) -> None:
        """Release the connection, or close it."""
        await self._response.aclose()
