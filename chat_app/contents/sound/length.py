"""An upper bound for the length of a sound, measured from its bytes.

The length that a file claims is not trusted: its frames are counted. Bytes that are not frames
count as long as their format allows.
"""

# ruff: noqa: PLR2004 the formats define these numbers
from __future__ import annotations

import re
from typing import Final

from chat_app.contents.sound.mpeg import after_tags, frames_us
from chat_app.contents.sound.riff import wave_us

LONGEST_MS: Final = 10**9
"""No sound counts as longer."""
PACKETS: Final = 500_000
"""How many Opus packets are measured; each one after them counts as the longest."""
_MP3_US: Final = 1_000
"""Microseconds that one byte of MP3 or AAC lasts at 8 kbit/s, the lowest bit rate."""
_OPUS_US: Final = 1_334
"""The same for one byte of Opus at 6 kbit/s."""
_LEAST_US: Final = 4_000
"""The same for one byte of any other format, at 2 kbit/s."""
_PACKET_US: Final = 120_000
"""The longest packet of Opus."""

_FRAMED: Final = {"audio/mpeg", "audio/mp3", "audio/aac", "audio/aacp"}
_ADTS_OR_MPEG: Final = re.compile(rb"\xff[\xe0-\xff]")
_OPUS_FRAMES: Final = (10_000, 20_000, 40_000, 60_000)


def longest_ms(data: bytes, mime_type: str) -> int:
    """Return the maximum length of a sound in milliseconds."""
    if (start := after_tags(data)) and not _ADTS_OR_MPEG.match(data, start):
        # Players skip tags before any format.
        return max(longest_ms(data[start:], mime_type), _in_ms(frames_us(data)))
    if data.startswith(b"OggS"):
        us = _ogg_us(data)
    elif data[:4] in {b"RIFF", b"RF64"} and data[8:12] == b"WAVE":
        us = wave_us(data)
    elif data.startswith(b"fLaC"):
        us = _flac_us(data)
    elif data.startswith(b"\x1aE\xdf\xa3"):
        us = len(data) * _OPUS_US
    elif data[4:8] == b"ftyp":
        us = len(data) * _MP3_US
    elif mime_type in _FRAMED or data.startswith(b"ID3") or _ADTS_OR_MPEG.match(data):
        us = frames_us(data)
    else:
        us = len(data) * _LEAST_US
    return _in_ms(us)


def _in_ms(us: int) -> int:
    return min(-(-us // 1000), LONGEST_MS)


def _flac_us(data: bytes) -> int:
    """Return the length of a FLAC file with as many blocks as it may have frames."""
    if len(data) < 26:
        return len(data) * _LEAST_US
    samples = max(int.from_bytes(data[10:12]), 4096)
    hertz = int.from_bytes(data[18:21]) >> 4
    frames = data.count(b"\xff\xf8") + data.count(b"\xff\xf9")
    claimed = int.from_bytes(data[21:26]) & 0xF_FFFF_FFFF
    return max(frames * samples, claimed) * 1_000_000 // max(hertz, 1)


def _ogg_us(data: bytes) -> int:
    """Return the length of the packets of an Ogg file, summed over its streams."""
    lengths: dict[bytes, int | None] = {}
    position = total = packets = 0
    while (page := data.find(b"OggS", position)) >= 0 and len(data) >= page + 27:
        table = data[page + 27 : page + 27 + data[page + 26]]
        start = page + 27 + len(table)
        serial = data[page + 14 : page + 18]
        if serial not in lengths:
            lengths[serial] = _packet_us(data[start : start + 30])
        length = lengths[serial]
        ends = len(table) - table.count(255)
        packets += ends
        if length is not None or packets > PACKETS:
            total += ends * (length or _PACKET_US)
        else:
            total += _opus_us(data, start, table, is_continued=bool(data[page + 5] & 1))
        # A page may lie about its own size, and hide others.
        end = start + sum(table)
        position = end if data[end : end + 4] == b"OggS" else start
    return total


def _packet_us(head: bytes) -> int | None:
    """Return the longest packet of a stream by its head; None for Opus, whose packets state it."""
    if head.startswith(b"OpusHead"):
        return None
    if head.startswith(b"\x01vorbis") and len(head) >= 29:
        hertz, longest = int.from_bytes(head[12:16], "little"), 1 << (head[28] >> 4)
        return -(-longest // 2 * 1_000_000 // max(hertz, 1))
    return _PACKET_US


def _opus_us(data: bytes, start: int, table: bytes, *, is_continued: bool) -> int:
    total, begins, position = 0, not is_continued, start
    for size in table:
        if begins and position + 1 < len(data):
            total += _opus_packet_us(data[position], data[position + 1])
        position += size
        begins = size < 255
    return total


def _opus_packet_us(toc: int, count: int) -> int:
    """Return the length of a packet by its first byte (RFC 6716 §3.1)."""
    config = toc >> 3
    if config < 12:
        frame = _OPUS_FRAMES[config & 3]
    elif config < 16:
        frame = (10_000, 20_000)[config & 1]
    else:
        frame = (2_500, 5_000, 10_000, 20_000)[config & 3]
    frames = (1, 2, 2, count & 63)[toc & 3]
    return min(frame * frames, _PACKET_US)
