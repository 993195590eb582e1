"""The records of a socket whose streams members of the hub answer (`exchange.relay`).

An `ask` or a `subscribe` for a member is sent on over a WebSocket to that member, one for each
member and socket. The deltas come back over it, byte by byte, and acknowledgements go the same way.
Any other envelope is posted, because no stream follows it.

Deltas are not signed. A member's are passed back only under the streams that the peer has named to
it, so that it cannot write into those of another member, or of this server. If the way to a member
breaks, the peer's socket is closed (1013), and the peer resumes its streams.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import aiohttp

from agents_app.outbound.rules import Unreachable
from agents_app.remote.addresses import session_of, target_of
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.limits import ENVELOPE_BYTES, load
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.streams.deltas import TERMINAL, delta_of, is_delta
from federation_app.envelope.streams.framing import SUBPROTOCOL, framed, read_records
from federation_app.exchange import relay
from federation_app.peers import quotas, registry
from federation_app.peers.connections import tls
from sessions_app import database
from sessions_app.process import registry as processes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from federation_app.exchange.admission import Admitted
    from federation_app.models import Peer, ReceivedEnvelope

SILENT_SECONDS: Final = 3600.0
"""How long a member may send nothing on a socket, such as that of a quiet chat."""
DIAL_SECONDS: Final = 10.0
TRUST_SECONDS: Final = 5.0
MAX_LINES: Final = 8
"""To how many members a socket leads."""
RECORD_BYTES: Final = 2 * ENVELOPE_BYTES
_open: Final[set[tuple[int, str]]] = set()
"""The envelopes whose streams are open here, by peer and id: one that comes back is in a circle."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _RelayedStream:
    """A stream that a member answers on a line, and the envelope that opened it."""

    peer: Peer
    received: ReceivedEnvelope

    @property
    def key(self) -> tuple[int, str]:
        return self.peer.pk, self.received.envelope_id


@dataclass(kw_only=True, slots=True)
class _MemberLine:
    """The WebSocket to one member."""

    member: Peer
    socket: aiohttp.ClientWebSocketResponse
    streams: dict[str, _RelayedStream] = field(default_factory=dict)
    reading: asyncio.Task[None] | None = None


class RelayedRecords:
    """The lines of one socket; all methods are called on its loop.

    `write` sends a record to the peer, and `end` closes the peer's socket.
    """

    def __init__(
        self,
        *,
        relays: tuple[str, ...],
        write: Callable[[bytes], Awaitable[None]],
        end: Callable[[], Awaitable[None]],
    ) -> None:
        self._relays = relays
        self._write = write
        self._end = end
        self._lines: dict[int, _MemberLine] = {}
        self._dialling = asyncio.Lock()
        self._stream_ended = asyncio.Event()

    async def pass_on(self, admitted: Admitted, raw: bytes) -> relay.Passed:
        """Pass on an envelope; raises EnvelopeError, that of a member only for a posted one."""
        member = admitted.relayed_to
        if member is None or admitted.envelope.intent not in relay.OPENING:
            return await relay.pass_on(admitted, raw, relays=self._relays)
        key = admitted.peer.pk, admitted.envelope.id
        if key in _open:
            raise EnvelopeError(EnvelopeCode.BUSY, "The envelope is in transit.", detail="relay")
        if sum(len(line.streams) for line in self._lines.values()) >= quotas.streams_of(
            admitted.peer
        ):
            raise EnvelopeError(EnvelopeCode.BUSY, "You read too many streams. Close one first.")
        _open.add(key)
        try:
            row, received, is_repeated = await database.run(relay.begin_stream, admitted, member)
            try:
                await self._send_on(member, row.stream_id, admitted.peer, received, raw)
            except BaseException:
                if not is_repeated:
                    await database.run(relay.forget_stream, received)
                raise
        except BaseException:
            _open.discard(key)
            raise
        return relay.Passed(stream=row, is_repeated=is_repeated)

    async def send(self, stream_id: str, record: bytes) -> bool:
        """Pass on a reader's delta; return False if no member answers the stream here."""
        for line in self._lines.values():
            if stream_id in line.streams:
                try:
                    await line.socket.send_bytes(framed(record))
                except (aiohttp.ClientError, OSError):
                    raise relay.unanswered() from None
                return True
        return False

    async def finish(self) -> None:
        """Wait until the streams have ended."""
        while any(line.streams for line in self._lines.values()):
            self._stream_ended.clear()
            await self._stream_ended.wait()

    async def close(self) -> None:
        """Leave the members, whose streams continue."""
        for line in list(self._lines.values()):
            if line.reading is not None:
                line.reading.cancel()
                await asyncio.wait([line.reading])

    async def _send_on(
        self, member: Peer, stream_id: str, peer: Peer, received: ReceivedEnvelope, raw: bytes
    ) -> None:
        line = await self._line(member)
        if (earlier := line.streams.get(stream_id)) is not None:
            _open.discard(earlier.key)
        line.streams[stream_id] = _RelayedStream(peer=peer, received=received)
        try:
            await line.socket.send_bytes(framed(raw))
        except (aiohttp.ClientError, OSError):
            del line.streams[stream_id]
            raise relay.unanswered() from None

    async def _line(self, member: Peer) -> _MemberLine:
        """Return the line to a member; raises EnvelopeError busy if it does not answer."""
        async with self._dialling:
            if (open_line := self._lines.get(member.pk)) is not None:
                return open_line
            if len(self._lines) >= MAX_LINES:
                raise EnvelopeError(
                    EnvelopeCode.BUSY, "This socket has streams to too many members."
                )
            base = relay.base_of(member)
            try:
                async with asyncio.timeout(DIAL_SECONDS):
                    socket = await session_of(target_of(base, is_peer=True), tls=tls()).dial(
                        f"{base}/uamp/1/ws",
                        headers=relay.headers_of(self._relays),
                        silent=SILENT_SECONDS,
                        protocols=(SUBPROTOCOL,),
                    )
            except (aiohttp.ClientError, OSError, TimeoutError, Unreachable):
                raise relay.unanswered() from None
            line = self._lines[member.pk] = _MemberLine(member=member, socket=socket)
            line.reading = processes.current().spawn(self._read(line), name="relayed records")
            return line

    async def _read(self, line: _MemberLine) -> None:
        try:
            await self._pass_back(line)
        except (aiohttp.ClientError, OSError, TimeoutError, EnvelopeError):
            # The member is unreachable, breaks the protocol, or has left the hub.
            pass
        finally:
            self._lines.pop(line.member.pk, None)
            is_cut = bool(line.streams)
            for stream_id in list(line.streams):
                self._forget(line, stream_id)
            await line.socket.close()
        if is_cut:
            await self._end()

    async def _pass_back(self, line: _MemberLine) -> None:
        checked_at = asyncio.get_running_loop().time()
        while True:
            message = await line.socket.receive()
            if message.type not in {aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT}:
                return
            if asyncio.get_running_loop().time() - checked_at > TRUST_SECONDS:
                checked_at = asyncio.get_running_loop().time()
                peers = {stream.peer.pk: stream.peer for stream in line.streams.values()}
                await database.run(_check, [line.member, *peers.values()])
            for record in read_records(message.data, limit=2 * RECORD_BYTES, record=RECORD_BYTES):
                await self._record(line, record)

    async def _record(self, line: _MemberLine, record: bytes) -> None:
        """Pass back a delta of a stream of this line, or an envelope, which is signed."""
        value = load(record, limit=RECORD_BYTES)
        if is_delta(value):
            delta = delta_of(value)
            if delta.stream_id not in line.streams:
                return
            if delta.type in TERMINAL:
                self._forget(line, delta.stream_id)
            await self._write(record)
        elif isinstance(value, dict) and "sig" in value:
            if value.get("intent") == Intent.ERROR:
                await self._refused(line, value)
            await self._write(record)

    async def _refused(self, line: _MemberLine, value: dict[str, object]) -> None:
        """End the stream that an `error` of a member is about; a refused envelope leaves no row."""
        stream_id, request_id = str(value.get("stream_id", "")), str(value.get("reply_to", ""))
        for name, stream in list(line.streams.items()):
            is_refused = request_id.lower().endswith(stream.received.envelope_id)
            if is_refused:
                await database.run(relay.forget_stream, stream.received)
            if is_refused or name == stream_id:
                self._forget(line, name)

    def _forget(self, line: _MemberLine, stream_id: str) -> None:
        _open.discard(line.streams.pop(stream_id).key)
        self._stream_ended.set()


def _check(peers: list[Peer]) -> None:
    for peer in peers:
        if not registry.is_member(peer):
            raise EnvelopeError(EnvelopeCode.UNAUTHORIZED, "The stream is no longer relayed.")
