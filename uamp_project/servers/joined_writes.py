"""An asyncio transport with one system call for all writes of a loop iteration.

An answer that is ready at once takes some twenty frames. Writing each one separately would cost
more than all the other work for it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

# This many bytes are written immediately, since only a write lets the transport request a pause.
JOINED_BYTES: Final = 64 * 1024
# From this size on, a frame has an extended length of two or eight bytes.
EXTENDED: Final = 126


class JoinedWrites:
    """A transport that is written to once per iteration of its loop.

    Order is preserved: every write, including close frames, goes through it, and `close` writes the
    data joined so far. `abort` drops that data, as it drops the transport's own buffer. Everything
    else is delegated to the transport.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._joined: list[bytes] = []
        self._size = 0
        # Cached, because it is called for each frame.
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Queue data, to be written together with the other writes of this iteration."""
        if not self._joined:
            self._loop.call_soon(self._flush)
        self._joined.append(data)
        self._size += len(data)
        if self._size >= JOINED_BYTES:
            self._flush()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the client has not read, including those not yet written."""
        return self._transport.get_write_buffer_size() + self._size

    def _flush(self) -> None:
        joined, self._joined, self._size = self._joined, [], 0
        if joined:
            self._transport.write(joined[0] if len(joined) == 1 else b"".join(joined))

    def close(self) -> None:
        """Close the transport after writing the queued data."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the transport without writing the queued data."""
        self._joined, self._size = [], 0
        self._transport.abort()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def text_frame(text: str) -> bytes:
    """Return a text message as one unmasked server frame (RFC 6455 §5.2)."""
    payload = text.encode()
    size = len(payload)
    if size < EXTENDED:
        return b"\x81%c%b" % (size, payload)
    if size < 1 << 16:
        return b"\x81\x7e%b%b" % (struct.pack("!H", size), payload)
    return b"\x81\x7f%b%b" % (struct.pack("!Q", size), payload)
