"""The length of AIFF, CAF and AU files: their bytes at the slowest rate that they state anywhere.

A file that states none, or a rate at which its length cannot be bounded, counts as MAX_US.
"""

# ruff: noqa: PLR2004 the formats define these numbers
from __future__ import annotations

import math
import struct
from typing import Final

MAX_US: Final = 10**12
"""The length of a file that cannot be measured."""
_HEADERS: Final = 10_000
_SAMPLES_OF_BYTE: Final = 32
"""How many samples a byte of a compressed format holds at most."""
_AIFF_PLAIN: Final = {
    b"NONE", b"twos", b"sowt", b"raw ", b"in24", b"in32", b"42ni", b"fl32", b"FL32", b"fl64",
    b"FL64", b"ulaw", b"ULAW", b"alaw", b"ALAW",
}  # fmt: skip
_AIFF_SMALL: Final = {b"ulaw", b"ULAW", b"alaw", b"ALAW"}
_AU_BYTES: Final = {1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 8, 27: 1}
_CAF_PLAIN: Final = {b"lpcm", b"ulaw", b"alaw"}


def aiff_us(data: bytes) -> int:
    """Return the length of an AIFF or AIFC file in microseconds."""
    is_compressed = data[8:12] == b"AIFC"
    lengths = []
    for at in _chunk_starts(data, b"COMM", 22 if is_compressed else 18, first=12, wide=False):
        channels, frames, bits = struct.unpack_from(">hIh", data, at)
        kind = data[at + 18 : at + 22] if is_compressed else b"NONE"
        of_sample = 1 if kind in _AIFF_SMALL else -(-bits // 8)
        if channels < 1 or bits < 1:
            return MAX_US
        counted = (
            len(data) // (channels * of_sample)
            if kind in _AIFF_PLAIN
            else len(data) * _SAMPLES_OF_BYTE
        )
        lengths.append(_us(max(frames, counted), _extended(data[at + 8 : at + 18])))
    return max(lengths, default=MAX_US)


def caf_us(data: bytes) -> int:
    """Return the length of a CAF file in microseconds."""
    packets = frames = 0
    for at in _chunk_starts(data, b"pakt", 24, first=8, wide=True):
        claimed, valid = struct.unpack_from(">qq", data, at)
        packets, frames = max(packets, claimed), max(frames, valid)
    lengths = []
    for at in _chunk_starts(data, b"desc", 32, first=8, wide=True):
        hertz, kind, _, size, of_packet, channels, bits = struct.unpack_from(">d4sIIIII", data, at)
        if kind in _CAF_PLAIN:
            of_frame = min(size or MAX_US, channels * -(-(bits or 8) // 8))
            counted = len(data) // max(of_frame, 1)
        elif size and of_packet:
            counted = (len(data) // size + 1) * of_packet
        elif of_packet and 0 < packets <= len(data):
            counted = packets * of_packet
        else:
            return MAX_US
        lengths.append(_us(max(counted, frames), hertz))
    return max(lengths, default=MAX_US)


def au_us(data: bytes) -> int:
    """Return the length of an AU file in microseconds."""
    if len(data) < 24:
        return MAX_US
    encoding, hertz, channels = struct.unpack_from(">III", data, 12)
    of_sample = _AU_BYTES.get(encoding)
    if of_sample is None:
        return _us(len(data) * _SAMPLES_OF_BYTE, hertz)
    return _us(len(data) // (of_sample * max(channels, 1)), hertz)


def _chunk_starts(data: bytes, name: bytes, body: int, *, first: int, wide: bool) -> list[int]:
    """Return the offsets of chunks of a name whose contents have at least `body` bytes.

    If all readers find the same chunks in a file, those count; otherwise anything that looks like
    one. The first chunk is at `first`, and with `wide` its size has eight bytes.
    """
    header = 12 if wide else 8
    chunks = _chunks(data, first, header)
    if chunks is None:
        chunks, position = [], data.find(name)
        while position >= 0 and len(chunks) < _HEADERS:
            chunks.append((name, position + header))
            position = data.find(name, position + 4)
    return [at for chunk_name, at in chunks if chunk_name == name and at + body <= len(data)]


def _chunks(data: bytes, position: int, header: int) -> list[tuple[bytes, int]] | None:
    """Return the names of a file's chunks, and where their contents begin; None in doubt."""
    chunks: list[tuple[bytes, int]] = []
    while position < len(data):
        size = int.from_bytes(data[position + 4 : position + header], signed=header > 8)
        at = position + header
        if len(chunks) == _HEADERS or size % 2 or size < 0 or at + size > len(data):
            return None
        chunks.append((data[position : position + 4], at))
        position = at + size
    return chunks


def _us(frames: int, hertz: float) -> int:
    if not math.isfinite(hertz) or hertz < 1:
        return MAX_US
    return min(math.ceil(frames * 1_000_000 / hertz), MAX_US)


def _extended(number: bytes) -> float:
    """Return the value of an 80-bit number of IEEE 754."""
    exponent, mantissa = struct.unpack(">HQ", number)
    if exponent >> 15 or exponent > 16_383 + 63:
        return 0.0
    return math.ldexp(mantissa, exponent - 16_383 - 63)
