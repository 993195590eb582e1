"""The length of FLAC (RFC 9639): each frame states its own, whatever the file claims."""

# ruff: noqa: PLR2004 the formats define these numbers
from __future__ import annotations

import re
from typing import Final

FRAMES: Final = 1_000_000
"""How many possible frames of a file are read; the bytes after them count as the most."""
MAX_US: Final = 10**12
"""The length of a file that cannot be measured."""
_MAX_SAMPLES: Final = 65_536
_SYNC: Final = re.compile(rb"\xff[\xf8\xf9]")
_RATES: Final = (
    0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000,
)  # fmt: skip
_LONGEST_HEADER: Final = 16


def _crc_table() -> bytes:
    table = bytearray()
    for byte in range(256):
        for _ in range(8):
            byte = (byte << 1 ^ 0x07) & 0xFF if byte & 0x80 else byte << 1  # noqa: PLW2901
        table.append(byte)
    return bytes(table)


_CRC: Final = _crc_table()


def flac_us(data: bytes) -> int:
    """Return the length of a file in microseconds."""
    hertz = stream_hertz(data[8:])
    claimed = int.from_bytes(data[21:26]) & 0xF_FFFF_FFFF
    total = claimed * 1_000_000 // max(hertz, 1)
    frames = visited = 0
    for sync in _SYNC.finditer(data, 4):
        visited += 1
        if visited > FRAMES:
            return MAX_US
        if is_header(data, sync.start()):
            frames += frame_us(data, sync.start(), hertz)
    if visited and not frames:
        frames = visited * _MAX_SAMPLES * 1_000_000 // max(hertz, 1)
    return max(frames, total)


def stream_hertz(info: bytes) -> int:
    """Return the sampling rate in a STREAMINFO block."""
    return int.from_bytes(info[10:13]) >> 4


def frame_us(data: bytes, position: int, hertz: int) -> int:
    """Return the length of the frame at a position."""
    samples, rate, _ = _header(data[position : position + _LONGEST_HEADER])
    return -(-samples * 1_000_000 // max(rate or hertz, 1))


def is_header(data: bytes, position: int) -> bool:
    """Return whether a frame begins at a position, by the checksum of its header."""
    head = data[position : position + _LONGEST_HEADER]
    length = _header(head)[2]
    if not length or length >= len(head):
        return False
    crc = 0
    for byte in head[:length]:
        crc = _CRC[crc ^ byte]
    return crc == head[length]


def _header(head: bytes) -> tuple[int, int, int]:
    """Return the samples of a frame, its sampling rate or 0, and the length of its header.

    The length is without the checksum, and 0 for bytes that are not a header.
    """
    if len(head) < 6 or head[0] != 0xFF or head[1] & 0xFE != 0xF8:
        return _MAX_SAMPLES, 1, 0
    size, rate = head[2] >> 4, head[2] & 15
    leading = 8 - (head[4] ^ 0xFF).bit_length()
    at = 4 + max(leading, 1)
    if size == 0 or rate == 15 or leading == 1 or leading > 7:
        return _MAX_SAMPLES, 1, 0
    samples = (
        192 if size == 1 else 576 << size - 2 if size < 6 else 256 << size - 8 if size > 7 else 0
    )
    if not samples:
        width = size - 5
        samples = int.from_bytes(head[at : at + width]) + 1
        at += width
    hertz = _RATES[rate] if rate < 12 else 0
    if rate >= 12:
        width = 1 if rate == 12 else 2
        hertz = int.from_bytes(head[at : at + width]) * (1_000, 1, 10)[rate - 12]
        at += width
        hertz = max(hertz, 1)
    return samples, hertz, at
