"""`POST /v1/messages` and `GET /v1/stream/{id}` as a client (envelope §7)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Self

import aiohttp

from agents_app.remote.addresses import session_of
from agents_app.remote.protocols.peers import events_of
from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.limits import DOCUMENT_BYTES, load
from federation_app.envelope.members.reading import Intent
from federation_app.peers.connections import tls
from federation_app.remote_agents import questions
from federation_app.remote_agents.answers import PeerRefusal, refusal_of
from federation_app.remote_agents.transports.connection import ConnectionLost, PeerConnection
from sessions_app import database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

logger = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/uamp+json"
_ACCEPTED: Final = 202
_OK: Final = 200
_SERVER_ERRORS: Final = 500


class HttpPeerConnection(PeerConnection):
    """One request per envelope, and one whose response is the stream."""

    _response: aiohttp.ClientResponse | None = None
    _events: AsyncIterator[bytes] | None = None

    async def __aenter__(self) -> Self:
        """See PeerConnection. Each request connects on demand."""
        return self

    async def __aexit__(self, *raised: object) -> None:
        """See PeerConnection."""
        if self._response is not None:
            self._response.close()

    async def begin(self, after: int) -> None:
        """See PeerConnection."""
        if after < 0:
            await self.tell(self.signed_question.raw)
        token = await database.run(questions.bearer, self.signed_question)
        headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        if after >= 0:
            headers["Last-Event-ID"] = str(after)
        try:
            self._response = await self._session.get(
                f"{self._base}/v1/stream/{self.signed_question.stream_id}",
                headers=headers,
                silent=self.question.silent,
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ConnectionLost from error
        if self._response.status != _OK:
            raise await _refused(self._response)
        self._events = events_of(self._response)

    async def receive(self) -> bytes:
        """See PeerConnection."""
        if self._events is None:
            raise ConnectionLost
        try:
            async for data in self._events:
                return data
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost from error
        raise ConnectionLost

    async def acknowledge(self, delta_seq: int) -> None:
        """See PeerConnection. If the peer refuses it, later deltas are acknowledged instead."""
        try:
            await self.tell(await self.signed(Intent.PROGRESS, ack=delta_seq))
        except PeerRefusal as refusal:
            logger.info("%s rejected an acknowledgement: %s", self.signed_question.server, refusal)

    async def miss(self, expected: int) -> None:
        """See PeerConnection. A new request names the last received delta in `Last-Event-ID`."""
        raise ConnectionLost(f"delta {expected} is missing")

    async def tell(self, raw: bytes) -> None:
        """See PeerConnection."""
        headers = {"Content-Type": MEDIA_TYPE, "Accept-Encoding": "identity"}
        try:
            response = await self._session.post(
                f"{self._base}/v1/messages", headers=headers, body=raw, silent=self.question.silent
            )
            try:
                if response.status != _ACCEPTED:
                    raise await _refused(response)
                # The connection is reused only once the response has been read.
                await response.content.read(DOCUMENT_BYTES)
            finally:
                response.release()
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost from error

    @property
    def _base(self) -> str:
        return str(self.question.target.url).rstrip("/")

    @property
    def _session(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 a session of upp
        return session_of(self.question.target, tls=tls())


async def _refused(response: aiohttp.ClientResponse) -> PeerRefusal | ConnectionLost:
    """Return the refusal in an unsuccessful response: a problem with `code`, or ConnectionLost."""
    try:
        body = load(await response.content.read(DOCUMENT_BYTES))
    except (EnvelopeError, aiohttp.ClientError, OSError):
        body = None
    if not isinstance(body, dict) or "code" not in body:
        if response.status >= _SERVER_ERRORS:
            return ConnectionLost()
        body = {"message": f"HTTP {response.status}"}
    return refusal_of(body)
