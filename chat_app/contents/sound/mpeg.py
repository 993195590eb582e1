"""The length of MPEG audio (MP3 and its relatives) and of ADTS frames (AAC)."""

# ruff: noqa: PLR2004 the formats define these numbers
from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

STEPS: Final = 1_200_000
"""How many possible frames of a file are visited; the bytes after them count by size."""
_BYTE_US: Final = 1_000
"""Microseconds that one byte lasts at 8 kbit/s, the lowest bit rate of MP3."""
_MAX_US: Final = 20_000
"""The same for a byte of the shortest frames that ADTS has, rounded up."""
_FREE_FRAME: Final = 13
"""Bytes of the shortest frame whose bit rate its header does not state."""
_PROOF: Final = 3
"""Frames in a row that prove the type of a file."""
_TAG_HEADER: Final = 10
_TAGS: Final = 100
_SYNC: Final = re.compile(rb"\xff[\xe0-\xff]")

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


def frames_us(data: bytes) -> int:
    """Return the length of all frames in microseconds.

    Decoders differ in where they find the first frame and where they resume after an error: the
    longest chain of frames counts, and bytes that are not frames at the lowest bit rate.
    """
    start = after_tags(data)
    return max(_walked_us(data, start), _chained_us(data))


def frame_type(data: bytes) -> str:
    """Return the media type of data that begins with several frames of one kind; '' otherwise."""
    position, first = 0, data[:7]
    for _ in range(_PROOF):
        header = data[position : position + 7]
        frame = _frame(header)
        if frame is None or not _is_same_kind(first, header):
            return ""
        position += frame[0]
    return "audio/mpeg" if first[1] & 6 else "audio/aac"


def after_tags(data: bytes) -> int:
    """Return the offset of the sound after ID3 tags, which decoders skip."""
    position = 0
    for _ in range(_TAGS):
        if not data.startswith(b"ID3", position) or len(data) < position + _TAG_HEADER:
            break
        head = data[position : position + _TAG_HEADER]
        if head[3] == 0xFF or head[4] == 0xFF or any(byte & 0x80 for byte in head[6:]):
            break
        size = 0
        for byte in head[6:]:
            size = size << 7 | byte
        end = position + _TAG_HEADER + size + _TAG_HEADER * (head[5] >> 4 & 1)
        if end > len(data):
            break
        position = end
    return position


def _walked_us(data: bytes, position: int) -> int:
    """Return the length of frames that follow each other, and of the bytes between them."""
    end, total = len(data), 0
    frames: dict[bytes, tuple[int, int] | None] = {}
    for _ in range(STEPS):
        if position >= end:
            return total
        header = data[position : position + 7]
        # For MPEG three bytes suffice.
        key = header[:3] if len(header) > 1 and header[1] & 6 else header
        frame = frames[key] if key in frames else frames.setdefault(key, _frame(header))
        if frame is None:
            sync = data.find(b"\xff", position + 1)
            sync = end if sync < 0 else sync
            total += (sync - position) * _BYTE_US
            position = sync
        else:
            position += frame[0]
            total += frame[1]
        if len(frames) > 10_000:
            frames.clear()
    return total + max(end - position, 0) * _MAX_US


def _chained_us(data: bytes) -> int:
    """Return the length of the longest series of frames that do not overlap.

    A frame counts if one of the same kind follows it, as decoders require.
    """
    syncs: list[int] = []
    for sync in _SYNC.finditer(data):
        if len(syncs) >= STEPS:
            return (len(data) - sync.start()) * _MAX_US + _longest(data, syncs)
        syncs.append(sync.start())
    return _longest(data, syncs)


def _longest(data: bytes, syncs: list[int]) -> int:
    # By index of a sync: the longest series that begins there or later.
    longest = [0] * (len(syncs) + 1)
    for index in range(len(syncs) - 1, -1, -1):
        longest[index] = longest[index + 1]
        position = syncs[index]
        header = data[position : position + 7]
        frame = _frame(header)
        if frame is None:
            continue
        after = position + frame[0]
        if after >= len(data) - 7 or _is_same_kind(header, data[after : after + 4]):
            rest = longest[bisect_left(syncs, after, index + 1)]
            longest[index] = max(longest[index], frame[1] + rest)
    return longest[0]


def _is_same_kind(header: bytes, other: bytes) -> bool:
    """Return whether two frames have the same layer, version and sampling rate."""
    mask = 0xC0 | 0x3C if header[1] & 6 == 0 else 0x0C
    return (
        len(other) > 2
        and other[0] == 0xFF
        and other[1] & 0xFE == header[1] & 0xFE
        and other[2] & mask == header[2] & mask
    )


def _frame(header: bytes) -> tuple[int, int] | None:
    """Return a frame's size in bytes and length in microseconds; None for other bytes."""
    if len(header) < 7 or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return None
    layer, version = header[1] >> 1 & 3, header[1] >> 3 & 3
    if layer == 0:
        return _adts_frame(header)
    kilobits, rate = header[2] >> 4, header[2] >> 2 & 3
    if version == 1 or rate == 3 or kilobits == 15:
        return None
    hertz = _RATES[version][rate]
    samples = 384 if layer == 3 else 576 if layer == 1 and version != 3 else 1152
    us = -(-samples * 1_000_000 // hertz)
    if not kilobits:
        return _FREE_FRAME, us
    bits = (_MPEG_1 if version == 3 else _MPEG_2)[layer][kilobits - 1] * 1000
    padding = header[2] >> 1 & 1
    if layer == 3:
        return (12 * bits // hertz + padding) * 4, us
    return samples // 8 * bits // hertz + padding, us


def _adts_frame(header: bytes) -> tuple[int, int] | None:
    rate = header[2] >> 2 & 15
    size = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    if header[1] & 0xF0 != 0xF0 or rate >= len(_ADTS_RATES) or size < 7:
        return None
    return size, -(-1_024_000_000 * ((header[6] & 3) + 1) // _ADTS_RATES[rate])
