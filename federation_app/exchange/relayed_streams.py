"""A stream that another member of the hub answers, read over HTTP through this server.

The reader's bearer token names both servers in `aud`, because each of them verifies it. The events
are passed on whole and unaltered; their numbers, the window and the place to resume at are between
the reader and the member.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

import aiohttp
import msgspec

from agents_app.outbound.rules import Unreachable
from agents_app.remote.addresses import session_of, target_of
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.limits import DELTA_BYTES
from federation_app.exchange.relay import base_of, headers_of, refusal_in, unanswered
from federation_app.peers import quotas, registry
from federation_app.peers.connections import tls
from sessions_app import database
from uamp.codec.single_lines import single_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from federation_app.models import EnvelopeStream, Peer

SILENT_SECONDS: Final = 90.0
"""How long a member may send nothing, not even a comment."""
TRUST_SECONDS: Final = 5.0
FRAME_BYTES: Final = 2 * DELTA_BYTES
_OK: Final = 200
_ENDS: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_END_BYTES: Final = 4
_counts: Final[Counter[int]] = Counter()


class RelayedStream:
    """The response of a member to one reader, which calls `close` in the end."""

    def __init__(self, peer: Peer, stream: EnvelopeStream) -> None:
        self._peer = peer
        self._stream = stream
        self._response: aiohttp.ClientResponse | None = None
        self._is_open = False

    async def open(self, *, token: str, after: str, relays: tuple[str, ...]) -> None:
        """Ask the member for the stream; raises EnvelopeError, also that of the member.

        `after` is the reader's Last-Event-ID, "" if it sent none.
        """
        if _counts[self._peer.pk] >= quotas.streams_of(self._peer):
            raise EnvelopeError(EnvelopeCode.BUSY, "You read too many streams. Close one first.")
        _counts[self._peer.pk] += 1
        self._is_open = True
        try:
            await self._open(token, after, relays)
        except BaseException:
            await self.close()
            raise

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield whole events as they arrive; raises EnvelopeError if they end without the stream.

        That is busy if the member does not answer, and unauthorized if either has left the hub.
        """
        if self._response is None:
            return
        data, checked_at = bytearray(), time.monotonic()
        try:
            async for chunk in self._response.content.iter_any():
                # An end may begin in the bytes before, which are not searched again.
                start = max(0, len(data) - _END_BYTES + 1)
                data += chunk
                if len(data) > FRAME_BYTES:
                    raise unanswered()
                if ends := [match.end() for match in _ENDS.finditer(data, start)]:
                    yield single_lines(bytes(data[: ends[-1]]))
                    del data[: ends[-1]]
                if time.monotonic() - checked_at > TRUST_SECONDS:
                    checked_at = time.monotonic()
                    await database.run(self._member)
        except (aiohttp.ClientError, OSError, TimeoutError):
            raise unanswered() from None

    async def close(self) -> None:
        """Leave the stream, which continues at the member; later calls do nothing."""
        if not self._is_open:
            return
        self._is_open = False
        _counts[self._peer.pk] -= 1
        if not _counts[self._peer.pk]:
            del _counts[self._peer.pk]
        if self._response is not None:
            self._response.close()

    async def _open(self, token: str, after: str, relays: tuple[str, ...]) -> None:
        member = await database.run(self._member)
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "text/event-stream",
            **({"Last-Event-ID": after} if after else {}),
            **headers_of(relays),
        }
        base = base_of(member)
        try:
            self._response = await session_of(target_of(base, is_peer=True), tls=tls()).get(
                f"{base}/v1/stream/{self._stream.remote_id or self._stream.stream_id}",
                headers=headers,
                silent=SILENT_SECONDS,
            )
            if self._response.status != _OK:
                async with asyncio.timeout(SILENT_SECONDS):
                    raise await refusal_in(self._response)
        except (aiohttp.ClientError, OSError, TimeoutError, Unreachable):
            raise unanswered() from None

    def _member(self) -> Peer:
        """Return the member that answers; raises EnvelopeError unauthorized if it has left."""
        member = registry.member_of(self._stream.receiver)
        if (
            member is None
            or member.pk != self._stream.relayed_to_id
            or not registry.is_member(self._peer)
        ):
            raise EnvelopeError(
                EnvelopeCode.UNAUTHORIZED, "The stream is no longer relayed.", detail="relay"
            )
        return member


def error_frame(error: EnvelopeError) -> bytes:
    """Return the event with which a stream over HTTP ends early."""
    return b"event: error\ndata: %b\n\n" % single_lines(msgspec.json.encode(error.payload()))
