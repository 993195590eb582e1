"""`/uamp/1/ws` as a client (envelope §7)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Self

import aiohttp

from agents_app.remote.addresses import session_of
from federation_app.envelope.streams.framing import SUBPROTOCOL, framed, read_records
from federation_app.peers.connections import tls
from federation_app.remote_agents.transports.connection import (
    RECORD_BYTES,
    ConnectionLost,
    RecordConnection,
)
from federation_app.remote_agents.transports.web import HttpPeerConnection

if TYPE_CHECKING:
    from agents_app.remote.protocols.peers import PeerQuestion
    from federation_app.remote_agents.questions import SignedQuestion


class WebSocketPeerConnection(RecordConnection):
    """A WebSocket for one question."""

    _socket: aiohttp.ClientWebSocketResponse

    def __init__(self, question: PeerQuestion, signed: SignedQuestion) -> None:
        super().__init__(question, signed)
        self._records: deque[bytes] = deque()

    async def __aenter__(self) -> Self:
        """See PeerConnection."""
        target = self.question.target
        try:
            self._socket = await session_of(target, tls=tls()).dial(
                f"{str(target.url).rstrip('/')}/uamp/1/ws",
                headers={},
                silent=self.question.silent,
                protocols=(SUBPROTOCOL,),
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ConnectionLost from error
        return self

    async def __aexit__(self, *raised: object) -> None:
        """See PeerConnection."""
        await self._socket.close()

    async def send(self, record: bytes) -> None:
        """See RecordConnection."""
        try:
            await self._socket.send_bytes(framed(record))
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost from error

    async def receive(self) -> bytes:
        """See PeerConnection; raises EnvelopeError for a message with incomplete records."""
        while not self._records:
            message = await self._socket.receive()
            if message.type not in {aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT}:
                raise ConnectionLost
            records = read_records(message.data, limit=2 * RECORD_BYTES, record=RECORD_BYTES)
            self._records.extend(records)
        return self._records.popleft()

    async def tell(self, raw: bytes) -> None:
        """See PeerConnection. The envelope goes over HTTP to the same server."""
        async with HttpPeerConnection(self.question, self.signed_question) as connection:
            await connection.tell(raw)
