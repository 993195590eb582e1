"""The length of the packets in an Ogg file (RFC 3533)."""

# ruff: noqa: PLR2004 the formats define these numbers
from __future__ import annotations

from typing import Final

from chat_app.contents.sound import flac, opus

PACKETS: Final = 500_000
"""How many packets are measured; each one after them counts as the longest."""
_UNKNOWN_US: Final = 1_000_000
"""The length of a packet of another format."""
_HEADS: Final = (b"OpusHead", b"\x01vorbis", b"\x7fFLAC", b"fLaC", b"Speex   ")
_CONTINUED: Final = 1
_FIRST: Final = 2


class _Stream:
    """The facts about a logical stream."""

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.packet_us = _packet_us(head)
        self.hertz = flac.stream_hertz(head[17:])
        self.is_unfinished = False

    def change(self, head: bytes) -> None:
        """Note that the stream begins again: decoders differ in which beginning they take."""
        if head != self.head:
            self.packet_us = max(self.packet_us or 0, _packet_us(head) or 0, _UNKNOWN_US)

    def us(self, data: bytes, position: int) -> int:
        """Return the length of the packet at a position."""
        if self.packet_us is not None:
            return self.packet_us
        if self.head.startswith(b"OpusHead"):
            return opus.packet_us(data, position)
        return flac.frame_us(data, position, self.hertz) if data[position] == 0xFF else 0


def ogg_us(data: bytes) -> int:
    """Return the length of the packets of a file in microseconds, summed over its streams."""
    streams: dict[bytes, _Stream] = {}
    position = total = packets = 0
    while (page := data.find(b"OggS", position)) >= 0 and len(data) >= page + 27:
        table = data[page + 27 : page + 27 + data[page + 26]]
        start = page + 27 + len(table)
        serial, flags = data[page + 14 : page + 18], data[page + 5]
        head = data[start : start + 64]
        if serial not in streams:
            streams[serial] = _Stream(head)
        elif flags & _FIRST or head.startswith(_HEADS):
            streams[serial].change(head)
        packets += len(table) - table.count(255)
        total += _page_us(data, start, table, streams[serial], flags, is_late=packets > PACKETS)
        # A page may lie about its own size, and hide others.
        end = start + sum(table)
        position = end if data[end : end + 4] == b"OggS" else start
    return total


def _page_us(
    data: bytes, start: int, table: bytes, stream: _Stream, flags: int, *, is_late: bool
) -> int:
    ends = len(table) - table.count(255)
    if is_late:
        return ends * max(stream.packet_us or 0, opus.PACKET_US)
    begins, total, position = not flags & _CONTINUED, 0, start
    if not begins and not stream.is_unfinished:
        # Decoders differ in whether they take a packet without its beginning.
        total = stream.packet_us or opus.PACKET_US
    if stream.packet_us is not None:
        total += ends * stream.packet_us
    for size in table if stream.packet_us is None else ():
        if begins and position < len(data):
            total += stream.us(data, position)
        position += size
        begins = size < 255
    stream.is_unfinished = table[-1:] == b"\xff"
    return total


def _packet_us(head: bytes) -> int | None:
    """Return the longest packet of a stream by its head; None if each packet states its own."""
    if head.startswith((b"OpusHead", b"\x7fFLAC")):
        return None
    if head.startswith(b"\x01vorbis") and len(head) >= 29:
        hertz, longest = int.from_bytes(head[12:16], "little"), 1 << (head[28] >> 4)
        return -(-longest // 2 * 1_000_000 // max(hertz, 1))
    return _UNKNOWN_US
