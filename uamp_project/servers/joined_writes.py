"""An asyncio transport with one system call for the writes of a loop iteration.

An answer that is ready is some twenty frames; each as a write of its own costs more than all the
rest that is done for it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

# So many bytes are written at once: only then may the transport ask for a pause.
JOINED_BYTES: Final = 64 * 1024
# From this size on the length of a frame has two or eight bytes of its own.
EXTENDED: Final = 126


class JoinedWrites:
    """A transport that is written to once in each turn of its loop.

    Order is kept: every write, also of a close frame, goes through it, and `close` writes what is
    joined so far. `abort` drops it, as it drops the transport's own buffer. Everything else is the
    transport's own.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._joined: list[bytes] = []
        self._size = 0
        # It is asked for each frame.
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write with all else that is written before the loop goes on."""
        if not self._joined:
            self._loop.call_soon(self._flush)
        self._joined.append(data)
        self._size += len(data)
        if self._size >= JOINED_BYTES:
            self._flush()

    def get_write_buffer_size(self) -> int:
        """Return what the client has not taken, with what is not written yet."""
        return self._transport.get_write_buffer_size() + self._size

    def _flush(self) -> None:
        joined, self._joined, self._size = self._joined, [], 0
        if joined:
            self._transport.write(joined[0] if len(joined) == 1 else b"".join(joined))

    def close(self) -> None:
        """Close after what was written."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close without what was written."""
        self._joined, self._size = [], 0
        self._transport.abort()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def text_frame(text: str) -> bytes:
    """Return a text message as one unmasked frame of a server (RFC 6455 §5.2)."""
    payload = text.encode()
    size = len(payload)
    if size < EXTENDED:
        return b"\x81%c%b" % (size, payload)
    if size < 1 << 16:
        return b"\x81\x7e%b%b" % (struct.pack("!H", size), payload)
    return b"\x81\x7f%b%b" % (struct.pack("!Q", size), payload)
