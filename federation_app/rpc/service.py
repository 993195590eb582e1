"""`service uamp.v1.Agent`: envelopes and deltas as gRPC messages (envelope §7).

`Send` takes one envelope. `Stream` carries the records of a WebSocket in both directions, and is
served by the same `EnvelopeSocket`. `Send` reports a refusal as a status.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import grpc
import msgspec
from django.conf import settings

from federation_app.edges.websocket import EnvelopeSocket
from federation_app.envelope.errors import MEANINGS, EnvelopeError
from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.envelope.streams.framing import framed, read_records
from federation_app.exchange.receipts import delivery_members
from federation_app.exchange.receiver import EnvelopeReceiver
from federation_app.rpc import agent_pb2, calls
from federation_app.rpc.agent_pb2_grpc import AgentServicer
from sessions_app.access import rates
from sessions_app.process import registry as processes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sessions_app.transports.socket import Message

logger = logging.getLogger(__name__)

_RECORDS_WAITING: Final = 16
"""How many records may wait for a slow client; beyond that, its deltas wait."""


class EnvelopeService(AgentServicer):
    """The methods of the service."""

    async def Send(self, request: Any, context: Any) -> Any:  # noqa: N802 the name in the proto
        """Receive one envelope."""
        await calls.refuse_unready(context)
        receiver = EnvelopeReceiver(address=calls.client_address(context))
        try:
            receipt = await receiver.take(request.envelope)
        except EnvelopeError as error:
            await calls.refuse(context, error)
            raise
        return agent_pb2.Receipt(
            stream_id=receipt.stream_id,
            delta_window=receipt.window,
            repeated_envelope=receipt.is_repeated,
            receivers=[
                msgspec.json.encode(delivery_members(delivery)) for delivery in receipt.deliveries
            ],
        )

    async def Stream(  # noqa: N802 the name in the proto
        self, request_iterator: AsyncIterator[Any], context: Any
    ) -> AsyncIterator[Any]:
        """Exchange records until the client has sent all of its own and its streams have ended."""
        await calls.refuse_unready(context)
        address = calls.client_address(context)
        limit = settings.UAMP_CONNECTIONS_PER_ADDRESS
        async with calls.streams.enter(context, rates.visitors(address), per_address=limit):
            call = _RecordCall(request_iterator, address)
            reading = processes.current().spawn(call.read(), name="records of gRPC")
            try:
                async for record in call.records():
                    yield agent_pb2.Record(json=record)
            finally:
                reading.cancel()
                await asyncio.wait([reading])
                await call.close()
        if call.status is not None:
            await calls.end(context, call.status, call.status.name)


class _RecordCall:
    """A call of `Stream` as a socket: one task reads it while another sends its records."""

    def __init__(self, requests: AsyncIterator[Any], address: str) -> None:
        self.status: grpc.StatusCode | None = None
        self._requests = aiter(requests)
        self._records: asyncio.Queue[bytes | None] = asyncio.Queue(_RECORDS_WAITING)
        self._socket = EnvelopeSocket(self._send, address=address)

    async def read(self) -> None:
        """Read records until the client sends no more, then wait for the ends of its streams."""
        try:
            await self._socket.read(self._receive)
            await self._socket.finish()
        except Exception:
            logger.exception("a gRPC call was not read")
        # The queue of a slow reader may be full, but without this end mark its call would not end.
        await self._records.put(None)

    async def records(self) -> AsyncIterator[bytes]:
        """Yield the records to send, until the call ends."""
        while (record := await self._records.get()) is not None:
            yield record

    async def close(self) -> None:
        """Leave the streams; their responses keep running."""
        await self._socket.close()

    async def _receive(self) -> Message:
        try:
            record = await anext(self._requests)
        except StopAsyncIteration:
            return {"type": "websocket.disconnect"}
        return {"type": "websocket.receive", "bytes": framed(record.json)}

    async def _send(self, message: Message) -> None:
        if message["type"] == "websocket.close":
            self.status = _status_of(message["code"])
            await self._records.put(None)
            return
        # JSON escapes characters, so the signed answer in a `done` may exceed an envelope.
        for record in read_records(message["bytes"], record=2 * ENVELOPE_BYTES):
            await self._records.put(record)


def _status_of(close: int) -> grpc.StatusCode:
    """Return the gRPC status for a WebSocket close code."""
    for meaning in MEANINGS.values():
        if meaning.close == close:
            return grpc.StatusCode[meaning.grpc]
    return grpc.StatusCode.UNAVAILABLE
