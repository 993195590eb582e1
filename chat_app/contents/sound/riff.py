"""The length of WAV files (RIFF, RF64): their bytes at the slowest rate that the format allows."""

# ruff: noqa: PLR2004 the formats define these numbers
from __future__ import annotations

import struct
from typing import Final

MIN_US: Final = 4_000
"""Microseconds that a byte of a compressed format lasts, at 2 kbit/s."""
_SAMPLES_OF_BYTE: Final = 32
"""The same in samples, for compressed formats."""
_SAMPLE_BITS: Final = {6: 8, 7: 8}
"""Bits of a sample of the formats that do not depend on the header for it."""
_UNCOMPRESSED: Final = {1, 3, 6, 7}
_ADPCM: Final = {2, 0x11}
_ADPCM_SAMPLES: Final = 4
"""Samples in a byte at two bits for each, the fewest."""
_EXTENSIBLE: Final = 0xFFFE
_SUBFORMAT: Final = bytes.fromhex("000000001000800000aa00389b71")
_CHUNKS: Final = 10_000


def wave_us(data: bytes) -> int:
    """Return the length of a file in microseconds."""
    formats, claimed = _chunks(data)
    slowest = max((_byte_ns(data, at) for at in formats), default=MIN_US * 1000)
    hertz = min((_hertz(data, at) for at in formats), default=1)
    return max(len(data) * slowest // 1000, claimed * 1_000_000 // max(hertz, 1))


def _chunks(data: bytes) -> tuple[list[int], int]:
    """Return the offsets of the format descriptions, and the number of samples that are declared.

    If all readers find the same chunks before the samples, only those count; otherwise anything
    that looks like a format description.
    """
    formats: list[int] = []
    position, claimed = 12, 0
    for _ in range(_CHUNKS):
        name, size = data[position : position + 4], _long(data, position + 4)
        if name == b"data" and formats:
            # After the samples, readers may look for more.
            end = position + 8 + size
            return formats + _anywhere(data, end), claimed
        if size % 2 or not name or position + 8 + size > len(data):
            break
        if name == b"fmt " and size >= 16:
            formats.append(position + 8)
        elif name == b"fact" and size >= 4:
            claimed = max(claimed, _long(data, position + 8))
        position += 8 + size
    return _anywhere(data, 12), claimed


def _anywhere(data: bytes, position: int) -> list[int]:
    formats: list[int] = []
    while (position := data.find(b"fmt ", position)) >= 0 and len(formats) < _CHUNKS:
        if position + 24 <= len(data):
            formats.append(position + 8)
        position += 4
    return formats


def _hertz(data: bytes, at: int) -> int:
    return _long(data, at + 4)


def _byte_ns(data: bytes, at: int) -> int:
    """Return the most nanoseconds that a byte can last."""
    facts: tuple[int, ...] = struct.unpack_from("<HHIIHH", data, at)
    tag, channels, hertz, per_second, block, bits = facts
    if tag == _EXTENSIBLE and data[at + 26 : at + 40] == _SUBFORMAT:
        tag = int.from_bytes(data[at + 24 : at + 26], "little")
    if tag in _ADPCM:
        return _ADPCM_SAMPLES * 1_000_000_000 // max(hertz, 1)
    if tag not in _UNCOMPRESSED:
        stated = 1_000_000_000 // per_second if per_second else 0
        return max(MIN_US * 1000, _SAMPLES_OF_BYTE * 1_000_000_000 // max(hertz, 1), stated)
    of_sample = _SAMPLE_BITS.get(tag, bits)
    speeds = (per_second, hertz * block, hertz * channels * of_sample // 8)
    return -(-1_000_000_000 // max(min(speeds), 1))


def _long(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")
