"""`service uamp.v1.Agent`: envelopes and deltas as gRPC messages (envelope §7).

`Send` takes one envelope. `Stream` carries the records of a WebSocket in both directions, and is
served by the same `EnvelopeSocket`. `Send` reports a refusal as a status, with the error as JSON in
the trailing metadata `uamp-error-bin`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import grpc
import msgspec
from django.conf import settings

from federation_app.edges.websocket import EnvelopeSocket
from federation_app.envelope.errors import MEANINGS, EnvelopeCode, EnvelopeError
from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.envelope.streams.framing import framed, read_records
from federation_app.exchange.receipts import delivery_members
from federation_app.exchange.receiver import EnvelopeReceiver
from federation_app.rpc import agent_pb2
from federation_app.rpc.agent_pb2_grpc import AgentServicer
from sessions_app.access import rates
from sessions_app.process import registry as processes
from sessions_app.proxies import forwarded_address, is_trusted_proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sessions_app.transports.socket import Message

logger = logging.getLogger(__name__)

ERROR_KEY: Final = "uamp-error-bin"
FORWARDED_KEY: Final = "x-forwarded-for"
_RECORDS_WAITING: Final = 16
"""How many records may wait for a slow client; beyond that, its deltas wait."""

_calls: Final[Counter[str]] = Counter()


class EnvelopeService(AgentServicer):
    """The methods of the service."""

    async def Send(self, request: Any, context: Any) -> Any:  # noqa: N802 the name in the proto
        """Receive one envelope."""
        await _refuse_unready(context)
        try:
            receipt = await EnvelopeReceiver(address=_address(context)).take(request.envelope)
        except EnvelopeError as error:
            await _abort(context, error)
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
        await _refuse_unready(context)
        address = _address(context)
        visitors = rates.visitors(address)
        if _calls[visitors] >= settings.UAMP_CONNECTIONS_PER_ADDRESS:
            await _abort(
                context,
                EnvelopeError(EnvelopeCode.BUSY, "Your address has too many streams open."),
            )
        _calls[visitors] += 1
        call = _RecordCall(request_iterator, address)
        reading = processes.current().spawn(call.read(), name="records of gRPC")
        try:
            async for record in call.records():
                yield agent_pb2.Record(json=record)
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            await call.close()
            _calls[visitors] -= 1
            if not _calls[visitors]:
                del _calls[visitors]
        if call.status is not None:
            await context.abort(call.status, call.status.name)


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


async def _refuse_unready(context: Any) -> None:
    """Refuse a call while the process shuts down, or if the server accepts no envelopes."""
    if processes.current().draining:
        await _abort(context, EnvelopeError(EnvelopeCode.BUSY, "The server is shutting down."))
    if not settings.UAMP_FEDERATION_HOST:
        await _abort(
            context, EnvelopeError(EnvelopeCode.NOT_FOUND, "This server does not accept envelopes.")
        )


async def _abort(context: Any, error: EnvelopeError) -> None:
    """End a call with the status of an error."""
    metadata = ((ERROR_KEY, msgspec.json.encode(error.payload())),)
    await context.abort(grpc.StatusCode[error.meaning.grpc], error.message, metadata)


def _address(context: Any) -> str:
    """Return a client's IP address; that of a trusted proxy's client is in its metadata."""
    peer = _peer(context.peer())
    if not is_trusted_proxy(peer):
        return peer
    metadata = context.invocation_metadata() or ()
    return forwarded_address(value for key, value in metadata if key == FORWARDED_KEY) or peer


def _peer(text: str) -> str:
    """Return the IP address in `ipv4:127.0.0.1:5000` or `ipv6:%5B::1%5D:5000`."""
    kind, _, rest = unquote(text).partition(":")
    host, _, _port = rest.rpartition(":")
    return host.strip("[]") if kind in {"ipv4", "ipv6"} else ""
