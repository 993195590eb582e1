"""An upper bound for the length of a sound, measured from its bytes.

The length that a file claims is not trusted: its frames are counted. Bytes that are not frames
count as long as their format allows.
"""

# ruff: noqa: PLR2004 the formats define these numbers
from __future__ import annotations

import struct
from typing import Final

LONGEST_MS: Final = 10**9
"""No sound counts as longer."""
STEPS: Final = 1_500_000
"""How many frames of a file are visited; the bytes after them count by size."""
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

_RATES: Final = {
    3: (44_100, 48_000, 32_000),
    2: (22_050, 24_000, 16_000),
    0: (11_025, 12_000, 8_000),
}
_ADTS_RATES: Final = (
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
)  # fmt: skip
# Bit rates of MPEG 1 and MPEG 2 in kbit/s, by the layer number in the header (1 is III, 3 is I).
_MPEG_1: Final = {
    1: (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    3: (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
}
_LAYERS_OF_2: Final = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_MPEG_2: Final = {
    1: _LAYERS_OF_2,
    2: _LAYERS_OF_2,
    3: (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
}
_UNCOMPRESSED: Final = {1, 3, 6, 7, 0xFFFE}
_FRAMED: Final = {"audio/mpeg", "audio/mp3", "audio/aac", "audio/aacp"}
_OPUS_FRAMES: Final = (10_000, 20_000, 40_000, 60_000)


def longest_ms(data: bytes, mime_type: str) -> int:
    """Return the maximum length of a sound in milliseconds."""
    if data.startswith(b"OggS"):
        us = _ogg_us(data)
    elif data.startswith(b"RIFF") and data[8:12] == b"WAVE":
        us = _wave_us(data)
    elif data.startswith(b"fLaC"):
        us = _flac_us(data)
    elif data.startswith(b"\x1aE\xdf\xa3"):
        us = len(data) * _OPUS_US
    elif data[4:8] == b"ftyp":
        us = len(data) * _MP3_US
    elif mime_type in _FRAMED or data.startswith(b"ID3") or _frame(data[:7]) is not None:
        us = _frames_us(data)
    else:
        us = len(data) * _LEAST_US
    return min(-(-us // 1000), LONGEST_MS)


def _frames_us(data: bytes) -> int:
    """Return the length of MPEG or ADTS frames."""
    position, end, total = _after_tag(data), len(data), 0
    known: dict[bytes, tuple[int, int] | None] = {}
    for _ in range(STEPS):
        if position >= end:
            break
        header = data[position : position + 7]
        # For MPEG three bytes suffice.
        key = header[:3] if len(header) > 1 and header[1] & 6 else header
        frame = known[key] if key in known else known.setdefault(key, _frame(header))
        if frame is None:
            sync = data.find(b"\xff", position + 1)
            sync = end if sync < 0 else sync
            total += (sync - position) * _MP3_US
            position = sync
        else:
            position += frame[0]
            total += frame[1]
        if len(known) > 10_000:
            known.clear()
    return total + max(end - position, 0) * _MP3_US


def _after_tag(data: bytes) -> int:
    """Return where the sound begins after an ID3 tag, which decoders skip."""
    if not data.startswith(b"ID3") or len(data) < 10:
        return 0
    size = 0
    for byte in data[6:10]:
        size = size << 7 | byte & 0x7F
    return 10 + size


def _frame(header: bytes) -> tuple[int, int] | None:
    """Return a frame's size in bytes and length in microseconds; None for other bytes."""
    if len(header) < 7 or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return None
    layer, version = header[1] >> 1 & 3, header[1] >> 3 & 3
    if layer == 0:
        return _adts_frame(header)
    kilobits, rate = header[2] >> 4, header[2] >> 2 & 3
    if version == 1 or rate == 3 or not 0 < kilobits < 15:
        return None
    hertz = _RATES[version][rate]
    bits = (_MPEG_1 if version == 3 else _MPEG_2)[layer][kilobits - 1] * 1000
    padding = header[2] >> 1 & 1
    if layer == 3:
        return (12 * bits // hertz + padding) * 4, -(-384_000_000 // hertz)
    samples = 576 if layer == 1 and version != 3 else 1152
    return samples // 8 * bits // hertz + padding, -(-samples * 1_000_000 // hertz)


def _adts_frame(header: bytes) -> tuple[int, int] | None:
    rate = header[2] >> 2 & 15
    size = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    if header[1] & 0xF0 != 0xF0 or rate >= len(_ADTS_RATES) or size < 7:
        return None
    return size, -(-1_024_000_000 * ((header[6] & 3) + 1) // _ADTS_RATES[rate])


def _wave_us(data: bytes) -> int:
    """Return the length of all bytes of a WAV file at the slowest rate its format allows."""
    at = data.find(b"fmt ", 12, 4096)
    if at < 0 or len(data) < at + 24:
        return len(data) * _LEAST_US
    facts: tuple[int, ...] = struct.unpack_from("<HHIIHH", data, at + 8)
    tag, channels, hertz, per_second, block, bits = facts
    if tag not in _UNCOMPRESSED:
        return len(data) * max(_LEAST_US, 1_000_000 // max(per_second, 1))
    speeds = (per_second, hertz * block, hertz * channels * bits // 8)
    return len(data) * 1_000_000 // max(min(speeds), 1)


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
