"""`/uamp/1/ws`: envelopes and deltas as records of a WebSocket (envelope §7).

A peer sends envelopes, and deltas that acknowledge (`progress` with `ack`) or report a missing one
(`error` with `expected`). The server sends the deltas of each stream requested here, and a signed
`error` envelope for each refusal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.utils import timezone

from federation_app import own_names
from federation_app.edges.relayed_records import RelayedRecords
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.envelope.limits import ENVELOPE_BYTES, load
from federation_app.envelope.members.reading import Intent, claims_of
from federation_app.envelope.members.writing import new_envelope
from federation_app.envelope.streams.deltas import DeltaType, delta_of, is_delta
from federation_app.envelope.streams.framing import SUBPROTOCOL, framed, read_records
from federation_app.exchange import rate_limits
from federation_app.exchange.receiver import EnvelopeReceiver
from federation_app.exchange.relay import RELAYED_BY, read_relays
from federation_app.exchange.requests import missing_of
from sessions_app import database
from sessions_app.access import rates
from sessions_app.access.auth import Handshake
from sessions_app.access.pacing import Pace
from sessions_app.process import registry as processes

if TYPE_CHECKING:
    from federation_app.exchange.receipts import EnvelopeReceipt
    from federation_app.exchange.windowed import WindowedStream
    from sessions_app.transports.socket import Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

ERROR_TYPE: Final = "application/vnd.uamp.error+json"
CLOSE_RESTART: Final = 1012
CLOSE_DEFECT: Final = 1011
CLOSE_AWAY: Final = 1013
CLOSE_TOO_MANY: Final = 4429
CLOSE_NOT_FOUND: Final = 4404
SILENT_SECONDS: Final = 30.0
"""A socket that has not sent a valid envelope by then is closed with 4401."""
MAX_REFUSALS: Final = 5
"""Refusals on one socket before its first valid envelope; the next one closes it."""
_DELTA_BYTES: Final = 8 * 1024
MESSAGE_BYTES: Final = 2 * ENVELOPE_BYTES
STREAMS_KEPT: Final = 256
"""Streams of one socket whose deltas can be repeated; above this, ended ones are forgotten."""
PAYMENTS_AT_ONCE: Final = 4
"""Payments of one socket that are settled at the same time."""
_sockets: Final[Counter[str]] = Counter()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one socket until it closes (ASGI)."""
    await receive()  # websocket.connect
    handshake = Handshake.of(scope)
    address = handshake.address
    relays: tuple[str, ...] = ()
    refusal = _refusal(address)
    if refusal is None:
        try:
            relays = read_relays(handshake.headers.get(RELAYED_BY.lower(), ""))
        except EnvelopeError as error:
            refusal = error.meaning.close
    if refusal is not None:
        await send({"type": "websocket.close", "code": refusal})
        return
    visitors = rates.visitors(address)
    _sockets[visitors] += 1
    socket = EnvelopeSocket(send, address=address, relays=relays)
    offered = scope.get("subprotocols", ())
    try:
        await send(
            {
                "type": "websocket.accept",
                "subprotocol": SUBPROTOCOL if SUBPROTOCOL in offered else None,
            }
        )
        await socket.read(receive)
    finally:
        _sockets[visitors] -= 1
        if not _sockets[visitors]:
            del _sockets[visitors]
        await socket.close()


def _refusal(address: str) -> int | None:
    if processes.current().draining:
        return CLOSE_RESTART
    if not settings.UAMP_FEDERATION_HOST:
        return CLOSE_NOT_FOUND
    if _sockets[rates.visitors(address)] >= settings.UAMP_CONNECTIONS_PER_ADDRESS:
        return CLOSE_TOO_MANY
    return None


class EnvelopeSocket:
    """An accepted socket, which one task reads while a task for each stream sends."""

    def __init__(self, send: Send, *, address: str, relays: tuple[str, ...] = ()) -> None:
        self._send = send
        self._relayed = RelayedRecords(
            relays=relays, write=self._write, end=partial(self._end, CLOSE_AWAY)
        )
        self._receiver = EnvelopeReceiver(
            address=address, relays=relays, pass_on=self._relayed.pass_on
        )
        self._process = processes.current()
        self._sending = asyncio.Lock()
        # By stream: the request made here, its deltas until they end, and the task that sends them.
        self._streams: dict[
            str, tuple[EnvelopeReceipt, WindowedStream | None, asyncio.Task[None]]
        ] = {}
        self._payments: set[asyncio.Task[None]] = set()
        self._is_known = False
        self._refused = 0
        self._closed = False
        self._pace = Pace(
            per_minute=settings.UAMP_EVENTS_PER_MINUTE,
            burst=settings.UAMP_EVENTS_BURST,
            left=settings.UAMP_EVENTS_BURST,
            at=time.monotonic(),
        )

    async def read(self, receive: Receive) -> None:
        """Read messages until the socket closes, pausing for a peer that sends too fast."""
        while not self._closed:
            timeout = None if self._is_known else SILENT_SECONDS
            try:
                message = await asyncio.wait_for(receive(), timeout)
            except TimeoutError:
                await self._end(4401)
                return
            if message["type"] != "websocket.receive":
                return
            await self._message(message)

    async def finish(self) -> None:
        """Wait until the streams have ended, for transports whose clients may keep reading."""
        if self._payments:
            await asyncio.wait(self._payments)
        tasks = [task for _, _, task in self._streams.values()]
        if tasks:
            await asyncio.wait(tasks)
        await self._relayed.finish()

    async def close(self) -> None:
        """Leave the streams; their responses keep running."""
        self._closed = True
        for _, opened, task in list(self._streams.values()):
            task.cancel()
            await asyncio.wait([task])
            if opened is not None:
                await opened.close()
        self._streams.clear()
        await self._relayed.close()

    async def _message(self, message: Message) -> None:
        text = message.get("text")
        content: str | bytes = message["bytes"] if text is None else text
        try:
            records = read_records(content, limit=MESSAGE_BYTES)
        except EnvelopeError as error:
            # The start of the next record is no longer known.
            await self._refuse(error, b"")
            await self._end(error.meaning.close)
            return
        if pause := self._pace.wait(time.monotonic(), max(1, len(records))):
            await asyncio.sleep(pause)
        for record in records:
            if self._closed:
                return
            if self._is_known and _is_payment(record):
                await self._take_beside(record)
            else:
                await self._take(record)

    async def _take(self, record: bytes) -> None:
        try:
            await self._record(record)
        except EnvelopeError as error:
            await self._refuse(error, record)

    async def _take_beside(self, record: bytes) -> None:
        """Take a payment, which may take long to settle, while further records are read.

        If PAYMENTS_AT_ONCE are under way, the next one waits, as do the records after it.
        """
        if len(self._payments) >= PAYMENTS_AT_ONCE:
            await asyncio.wait(self._payments, return_when=asyncio.FIRST_COMPLETED)
        paying = self._process.spawn(self._pay(record), name="payment of a peer")
        self._payments.add(paying)
        paying.add_done_callback(self._payments.discard)

    async def _pay(self, record: bytes) -> None:
        try:
            await self._take(record)
        except Exception:
            logger.exception("a payment of a peer could not be taken")
            await self._end(CLOSE_DEFECT)

    async def _record(self, record: bytes) -> None:
        if len(record) <= _DELTA_BYTES and is_delta(value := load(record)):
            await self._delta(value, record)
            return
        receipt = await self._receiver.take(record, follows=True)
        self._is_known = True
        for delivery in receipt.deliveries:
            if delivery.error is not None:
                await self._refuse(delivery.error, record)
        if receipt.opens:
            try:
                await self._open(receipt)
            except EnvelopeError as error:
                await receipt.leave()
                if receipt.intent is not Intent.ASK:
                    raise
                # The answer runs: it is its stream that cannot be read here now.
                await self._write_error(error, receipt.peer.did, {"stream_id": receipt.stream_id})
            except BaseException:
                await receipt.leave()
                raise

    async def _delta(self, value: object, record: bytes) -> None:
        """Process a delta from the reader: an acknowledgement, or a request for a missing delta."""
        delta = delta_of(value)
        stream = self._streams.get(delta.stream_id)
        if stream is None:
            if await self._relayed.send(delta.stream_id, record):
                return
            raise EnvelopeError(
                EnvelopeCode.NOT_FOUND, "This socket has no such stream.", detail="stream_id"
            )
        receipt, opened, _ = stream
        if (ack := delta.acknowledged) is not None:
            if opened is not None:
                opened.acknowledge(ack)
        elif delta.type is DeltaType.ERROR:
            after = missing_of(delta.payload)
            # It costs as much as the envelope that says the same.
            await rate_limits.count(receipt.peer, 1)
            await self._open(replace(receipt, opens=True, after=after, turn=None))
        else:
            raise malformed("A reader acknowledges deltas, or misses one.", detail="type")

    async def _open(self, receipt: EnvelopeReceipt) -> None:
        """Send the deltas of a stream from its reader's position, replacing any earlier sender."""
        stream_id = receipt.stream_id
        current = self._streams.get(stream_id)
        if current is not None:
            if current[0].peer.pk != receipt.peer.pk:
                raise EnvelopeError(
                    EnvelopeCode.CONFLICT,
                    "Another peer has a stream of this id on this socket.",
                    detail="stream_id",
                )
            current[2].cancel()
            await asyncio.wait([current[2]])
            if current[1] is not None:
                await current[1].close()
            del self._streams[stream_id]
        if len(self._streams) >= STREAMS_KEPT:
            for ended in [
                open_id for open_id, (_, _, task) in self._streams.items() if task.done()
            ]:
                del self._streams[ended]
        opened = await self._receiver.open(receipt)
        task = self._process.spawn(self._pump(receipt, opened), name="deltas")
        self._streams[stream_id] = receipt, opened, task

    async def _pump(self, receipt: EnvelopeReceipt, opened: WindowedStream) -> None:
        try:
            async for delta in opened.deltas():
                if delta is not None:
                    await self._write(delta.encoded())
                if self._closed:
                    return
        except EnvelopeError as error:
            members = {"stream_id": receipt.stream_id}
            await self._write_error(error, receipt.peer.did, members)
            if self._process.draining:
                await self._end(CLOSE_RESTART)
        except Exception:
            logger.exception("the deltas of a stream could not be produced")
            await self._end(CLOSE_DEFECT)
        finally:
            await opened.close()
            self._release(receipt, opened)

    def _release(self, receipt: EnvelopeReceipt, ended: WindowedStream) -> None:
        """Keep only the request of a stream that has ended: its text may be long."""
        current = self._streams.get(receipt.stream_id)
        if current is not None and current[1] is ended:
            self._streams[receipt.stream_id] = replace(receipt, turn=None), None, current[2]

    async def _refuse(self, error: EnvelopeError, record: bytes) -> None:
        """Send a signed error to the sender that a record claims; close a socket of strangers."""
        sender, members = claims_of(record)
        await self._write_error(error, sender, members)
        if not self._is_known:
            self._refused += 1
            if self._refused > MAX_REFUSALS:
                await self._end(error.meaning.close)

    async def _write_error(self, error: EnvelopeError, to: str, members: dict[str, str]) -> None:
        envelope = await database.run(partial(_signed_error, error, to, members))
        await self._write(msgspec.json.encode(envelope))

    async def _write(self, record: bytes) -> None:
        async with self._sending:
            if self._closed:
                return
            try:
                await self._send({"type": "websocket.send", "bytes": framed(record)})
            except Exception:
                # The socket closed during a send, which every server reports differently.
                logger.debug("a record was not sent", exc_info=True)
                self._closed = True

    async def _end(self, code: int) -> None:
        async with self._sending:
            if not self._closed:
                self._closed = True
                with contextlib.suppress(Exception):
                    await self._send({"type": "websocket.close", "code": code})


def _is_payment(record: bytes) -> bool:
    """Return whether a record claims to be a `confirm`; nothing is verified."""
    if b'"confirm"' not in record:
        return False
    try:
        value = load(record)
    except EnvelopeError:
        return False
    return isinstance(value, dict) and value.get("intent") == Intent.CONFIRM


def _signed_error(error: EnvelopeError, to: str, members: dict[str, str]) -> dict[str, Any]:
    did = own_names.own_identity().did
    return new_envelope(
        own_names.own_signer(did),
        # A record without a sender leaves no other address.
        to=[to or did],
        intent=Intent.ERROR,
        content=msgspec.json.encode(error.payload()).decode(),
        now=timezone.now(),
        type_=ERROR_TYPE,
        members=members,
    )
