"""`POST /v1/messages` and `GET /v1/stream/{id}` as a client (envelope §7)."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, Final, Self

import httpcore2
import httpx
from h2.exceptions import ProtocolError as Http2Error

from agents_app.outbound.backends import CONNECT_SECONDS, GuardedBackend
from agents_app.remote.protocols.peers import events_of
from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.limits import DOCUMENT_BYTES, load
from federation_app.envelope.members.reading import Intent
from federation_app.peers.connections import negotiating_tls
from federation_app.remote_agents import questions
from federation_app.remote_agents.answers import PeerRefusal, refusal_of
from federation_app.remote_agents.transports.connection import ConnectionLost, PeerConnection
from sessions_app import database

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from agents_app.remote.protocols.peers import PeerQuestion
    from federation_app.remote_agents.questions import SignedQuestion

logger = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/uamp+json"
MAX_CONNECTIONS: Final = 2
"""Over HTTP/1.1, acknowledgements need a connection beside that of the stream."""
ACKNOWLEDGED_SECONDS: Final = 10.0
"""How long an acknowledgement may take; over HTTP/2 the deltas wait in memory meanwhile."""
_ACCEPTED: Final = 202
_OK: Final = 200
_SERVER_ERRORS: Final = 500
_LOST: Final = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    # httpcore2 passes it on from a stream that the peer's GOAWAY does not cover.
    httpcore2.ConnectionNotAvailable,
    Http2Error,
    OSError,
    # As for a status that is not a number.
    ValueError,
)


class HttpPeerConnection(PeerConnection):
    """One request per envelope, and one whose response is the stream.

    They share one connection over HTTP/2, which the server chooses in the handshake of TLS.
    """

    _events: AsyncGenerator[bytes] | None = None

    def __init__(self, question: PeerQuestion, signed: SignedQuestion) -> None:
        super().__init__(question, signed)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=negotiating_tls(),
            max_connections=MAX_CONNECTIONS,
            http2=True,
            network_backend=GuardedBackend(question.target),
        )

    async def __aenter__(self) -> Self:
        """See PeerConnection. The first request connects."""
        return self

    async def __aexit__(self, *raised: object) -> None:
        """See PeerConnection. It ends the stream, which HTTP/2 would otherwise leave open."""
        if self._events is not None:
            with suppress(*_LOST):
                await self._events.aclose()
        with suppress(*_LOST):
            await self._pool.aclose()

    async def begin(self, after: int) -> None:
        """See PeerConnection."""
        if after < 0:
            await self.tell(self.signed_question.raw)
        token = await database.run(
            questions.bearer, self.signed_question, target=self.question.target
        )
        headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        if after >= 0:
            headers["Last-Event-ID"] = str(after)
        path = f"/v1/stream/{self.signed_question.stream_id}"
        with _losing():
            response = await self._request("GET", path, headers)
        if response.status != _OK:
            raise await _refused(response)
        self._events = _events_of(response)

    async def receive(self) -> bytes:
        """See PeerConnection."""
        if self._events is None:
            raise ConnectionLost
        try:
            async for data in self._events:
                return data
        except httpcore2.ReadTimeout as error:
            raise TimeoutError from error
        except _LOST as error:
            raise ConnectionLost from error
        raise ConnectionLost

    async def acknowledge(self, delta_seq: int) -> None:
        """See PeerConnection. If the peer refuses it, later deltas are acknowledged instead."""
        raw = await self.signed(Intent.PROGRESS, ack=delta_seq)
        try:
            await self._post(raw, min(self.question.silent, ACKNOWLEDGED_SECONDS))
        except PeerRefusal as refusal:
            logger.info("%s rejected an acknowledgement: %s", self.signed_question.server, refusal)

    async def miss(self, expected: int) -> None:
        """See PeerConnection. A new request names the last received delta in `Last-Event-ID`."""
        raise ConnectionLost(f"delta {expected} is missing")

    async def tell(self, raw: bytes) -> None:
        """See PeerConnection."""
        await self._post(raw, self.question.silent)

    async def _post(self, raw: bytes, seconds: float) -> None:
        with _losing():
            async with asyncio.timeout(seconds):
                response = await self._request(
                    "POST", "/v1/messages", {"Content-Type": MEDIA_TYPE}, raw
                )
                try:
                    if response.status != _ACCEPTED:
                        raise await _refused(response)
                    # Over HTTP/1.1, the connection is reused only once the response was read.
                    await _start_of(response)
                finally:
                    await response.aclose()

    async def _request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> httpcore2.Response:
        """Send a request and return its response, whose body the caller reads or closes."""
        target, silent = self.question.target, self.question.silent
        url = httpx.URL(f"{str(target.url).rstrip('/')}{path}")
        sent = {
            "Host": url.netloc.decode("ascii"),
            "User-Agent": "uamp-server",
            # A few bytes may unpack to any size.
            "Accept-Encoding": "identity",
            **headers,
            **({} if body is None else {"Content-Length": str(len(body))}),
        }
        connect = min(silent, CONNECT_SECONDS)
        request = httpcore2.Request(
            method=method,
            url=httpcore2.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=target.port, target=url.raw_path
            ),
            headers=list(sent.items()),
            content=body,
            extensions={
                "timeout": {"connect": connect, "read": silent, "write": silent, "pool": silent}
            },
        )
        return await self._pool.handle_async_request(request)


@contextmanager
def _losing() -> Iterator[None]:
    """Raise ConnectionLost for a connection that broke or was not made in time."""
    try:
        yield
    except _LOST as error:
        raise ConnectionLost from error


async def _events_of(response: httpcore2.Response) -> AsyncGenerator[bytes]:
    """Yield the data of the events of a stream; closing it closes the response."""
    async with aclosing(response.aiter_stream()) as chunks, aclosing(events_of(chunks)) as events:
        async for data in events:
            yield data


async def _start_of(response: httpcore2.Response) -> bytes:
    """Return the body of a response, cut off after DOCUMENT_BYTES."""
    body = bytearray()
    async with aclosing(response.aiter_stream()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > DOCUMENT_BYTES:
                break
    return bytes(body[:DOCUMENT_BYTES])


async def _refused(response: httpcore2.Response) -> PeerRefusal | ConnectionLost:
    """Return the refusal in an unsuccessful response: a problem with `code`, or ConnectionLost."""
    try:
        body = load(await _start_of(response))
    except (EnvelopeError, *_LOST):
        body = None
    if not isinstance(body, dict) or "code" not in body:
        if response.status >= _SERVER_ERRORS:
            return ConnectionLost()
        body = {"message": f"HTTP {response.status}"}
    return refusal_of(body)
