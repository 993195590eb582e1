"""MCP over HTTP, with a client that only connects to one checked address.

As in `agents_app.outbound.guard`, the name is looked up for each connection, and connections are
made only to addresses that the rules allow. Redirects do not lead elsewhere.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Sequence
from dataclasses import dataclass

import httpcore2
import httpx2

from agents_app.mcp.places import Address
from agents_app.outbound.look_ups import look_up_async
from agents_app.outbound.rules import Target, Unreachable, check_addresses

_CONNECT_SECONDS = 10.0
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
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=seconds),
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
            network_backend=_GuardedBackend(target, talk),
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


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses of one target once they have been checked."""

    def __init__(self, target: Target, talk: Talk) -> None:
        self._target = target
        self._talk = talk
        self._sockets = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 the signature of httpcore2
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that accepts."""
        seconds = _CONNECT_SECONDS if timeout is None else timeout
        try:
            addresses = await self._addresses(host, port, seconds)
        except Unreachable as error:
            self._talk.unreachable = error.reason
            raise httpcore2.ConnectError(error.reason) from error
        refused: Exception | None = None
        for address in addresses:
            try:
                return await self._sockets.connect_tcp(
                    address, port, seconds / len(addresses), local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                refused = error
        self._talk.unreachable = f"no address of {host} accepted a connection"
        raise httpcore2.ConnectError("no address accepted a connection") from refused

    async def _addresses(self, host: str, port: int, seconds: float) -> Sequence[str]:
        if (host.rstrip("."), port) != (self._target.host, self._target.port):
            raise Unreachable(f"{host}:{port} is not {self._target.place}")
        addresses = await look_up_async(host, port, seconds)
        return check_addresses(self._target, addresses)
