"""The length of MP4 and QuickTime files (ISO/IEC 14496-12 and -14).

A sample is a frame of the codec, and lasts as long as the codec says; samples may share bytes, and
edit lists may repeat them. Boxes count wherever they stand outside of the media data, because
readers differ in what they descend into.
"""

# ruff: noqa: PLR2004 the formats define these numbers
from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from chat_app.contents.sound import opus

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_US: Final = 10**12
"""The length of a file that cannot be measured."""
_UNKNOWN_US: Final = 10_000_000
"""The length of a sample of another codec."""
_BOXES: Final = 100_000
_TRACKS: Final = 32
_TABLES: Final = 4
"""How many tables of a kind a track may have."""
_RATES: Final = (
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
)  # fmt: skip
_AAC: Final = {0x40, 0x66, 0x67, 0x68}
_MP3: Final = {0x69, 0x6B}
_DESCRIPTORS: Final = 64
_SAMPLES_OF_AAC: Final = 1_024
_SAMPLES_OF_USAC: Final = 4_096
_USAC: Final = 42
_PLAIN: Final = {
    b"sowt", b"twos", b"lpcm", b"in24", b"in32", b"fl32", b"fl64", b"ulaw", b"alaw", b"raw ",
    b"ipcm", b"fpcm",
}  # fmt: skip
_FIXED_US: Final = {b"Opus": opus.PACKET_US, b"ac-3": 48_000, b"ec-3": 48_000, b".mp3": 144_000}
_NOT_SOUND: Final = {
    b"avc1", b"avc3", b"hvc1", b"hev1", b"vp08", b"vp09", b"av01", b"mp4v", b"jpeg", b"png ",
    b"text", b"tx3g", b"wvtt", b"stpp", b"tmcd", b"mett",
}  # fmt: skip
"""Samples of pictures and captions are no sound."""


def mp4_us(data: bytes) -> int:
    """Return the length of a file in microseconds."""
    boxes = _without_media(data)
    tracks = list(_places_of(boxes, b"trak"))
    sizes = [_long(boxes, at - 8) for at in tracks]
    if not tracks or len(tracks) > _TRACKS:
        return MAX_US
    bodies = []
    for at, size in zip(tracks, sizes, strict=True):
        if size < 8 or at - 8 + size > len(boxes):
            return MAX_US
        bodies.append(boxes[at : at - 8 + size])
    if sum(sizes) > len(boxes) or boxes.count(b"trun") > _BOXES:
        return MAX_US
    for kind in (b"stsd", b"stsz", b"stz2", b"stts", b"elst"):
        counts = [body.count(kind) for body in bodies]
        # It may stand outside of the tracks that were found.
        if sum(counts) < boxes.count(kind) or max(counts) > _TABLES:
            return MAX_US
    in_fragments = sum(_long(boxes, at + 4) for at in _places_of(boxes, b"trun"))
    scale = min((_scale(boxes, at) for at in _places_of(boxes, b"mvhd")), default=1)
    lengths = [_track_us(body, in_fragments, scale, len(data)) for body in bodies]
    claims = [_header_us(boxes, at) for at in _places_of(boxes, b"mvhd")]
    return max(lengths + claims) or MAX_US


def _without_media(data: bytes) -> bytes:
    """Return the boxes of a file without its media data, or all if readers may disagree."""
    parts: list[bytes] = []
    position = 0
    for _ in range(_BOXES):
        if position == len(data):
            return b"".join(parts)
        size, kind = _long(data, position), data[position + 4 : position + 8]
        if size == 1:
            size = int.from_bytes(data[position + 8 : position + 16])
            if size < 16:
                break
        elif size == 0:
            size = len(data) - position
        if size < 8 or position + size > len(data):
            break
        if kind != b"mdat":
            parts.append(data[position : position + size])
        position += size
    return data


def _track_us(body: bytes, in_fragments: int, movie_scale: int, file_bytes: int) -> int:
    samples = sum(_long(body, at + 8) for at in _places_of(body, b"stsz"))
    samples = max(samples, sum(_long(body, at + 8) for at in _places_of(body, b"stz2")))
    counted = spent = 0
    for at in _places_of(body, b"stts"):
        for count, ticks in struct.iter_unpack(">II", _entries(body, at, 8)):
            counted += count
            spent += count * ticks
    scale = min((_scale(body, at) for at in _places_of(body, b"mdhd")), default=1)
    claims = [spent * 1_000_000 // scale]
    claims += [_header_us(body, at) for at in _places_of(body, b"mdhd")]
    edits = 0
    for at in _places_of(body, b"elst"):
        wide = body[at : at + 1] == b"\1"
        entries = _entries(body, at, 20 if wide else 12)
        edits += sum(row[0] for row in struct.iter_unpack(">QQI" if wide else ">III", entries))
    claims.append(edits * 1_000_000 // movie_scale)
    frames = max(samples, counted) + in_fragments
    lasts = max(
        (
            length
            for at in _places_of(body, b"stsd")
            for length in _entry_lengths(body, at, frames, file_bytes)
        ),
        default=_UNKNOWN_US * frames,
    )
    return max(lasts, *claims)


def _entry_lengths(body: bytes, at: int, frames: int, file_bytes: int) -> Iterator[int]:
    """Yield the durations of a track's samples, one for each of its descriptions."""
    end = at - 8 + _long(body, at - 8)
    position = at + 8
    while position + 36 <= min(end, len(body)):
        size, kind = _long(body, position), body[position + 4 : position + 8]
        if size < 16:
            break
        entry = body[position : position + size]
        if kind in _PLAIN:
            hertz = int.from_bytes(entry[32:34])
            yield (frames + file_bytes) * 1_000_000 // max(hertz, 1)
        else:
            yield 0 if kind in _NOT_SOUND else frames * _frame_us(kind, entry)
        position += size


def _frame_us(kind: bytes, entry: bytes) -> int:
    """Return the longest frame of a codec."""
    if entry.count(b"esds") > _TABLES or entry.count(b"alac") > _TABLES:
        return _UNKNOWN_US
    if kind == b"mp4a":
        return max((_aac_us(entry, at) for at in _places_of(entry, b"esds")), default=_UNKNOWN_US)
    if kind == b"alac":
        cookies = [at for at in _places_of(entry, b"alac") if at > 36]
        lengths = [
            _long(entry, at + 4) * 1_000_000 // max(_long(entry, at + 24), 1) for at in cookies
        ]
        return max(lengths, default=_UNKNOWN_US)
    if kind in {b"samr", b"sawb"}:
        counts = [entry[at + 8] for at in _places_of(entry, b"damr") if at + 8 < len(entry)]
        return 20_000 * max([*counts, 1])
    return _FIXED_US.get(kind, _UNKNOWN_US)


def _aac_us(entry: bytes, at: int) -> int:
    """Return the longest frame by the decoder's configuration (ISO/IEC 14496-1, 7.2.6)."""
    position, end = at + 4, len(entry)
    kind = 0
    for _ in range(_DESCRIPTORS):
        if position >= end:
            break
        tag = entry[position]
        size, position = _descriptor_size(entry, position + 1)
        if tag == 3:
            # The optional fields after these three bytes do not occur in files.
            if entry[position + 2 : position + 3] > b"\x1f":
                break
            position += 3
        elif tag == 4 and position < end:
            kind = entry[position]
            position += 13
            if kind in _MP3:
                return 144_000
        elif tag == 5 and kind in _AAC:
            return configured_us(entry[position : position + size])
        else:
            position += size
    return _UNKNOWN_US


def _descriptor_size(entry: bytes, position: int) -> tuple[int, int]:
    """Return the size of a descriptor and where its contents begin."""
    size = 0
    for byte in entry[position : position + 4]:
        size, position = size << 7 | byte & 0x7F, position + 1
        if not byte & 0x80:
            break
    return size, position


def configured_us(configuration: bytes) -> int:
    """Return the length of an AAC frame by an AudioSpecificConfig (ISO/IEC 14496-3, 1.6)."""
    bits = "".join(f"{byte:08b}" for byte in configuration[:16]).ljust(128, "0")
    position = 5
    codec = int(bits[:5], 2)
    if codec == 31:
        codec, position = 32 + int(bits[5:11], 2), 11
    rates = []
    for _ in range(2):
        index, position = int(bits[position : position + 4], 2), position + 4
        if index == 15:
            rates.append(int(bits[position : position + 24], 2))
            position += 24
        elif index < len(_RATES):
            rates.append(_RATES[index])
        else:
            return _UNKNOWN_US
        # SBR and parametric stereo state a second rate after the channels.
        if codec not in {5, 29}:
            break
        position += 4
    samples = _SAMPLES_OF_USAC if codec >= _USAC else _SAMPLES_OF_AAC
    return -(-samples * 1_000_000 // max(min(rates), 1))


def _places_of(data: bytes, kind: bytes) -> Iterator[int]:
    """Yield the offsets at which the contents of boxes of a kind begin."""
    position = data.find(kind, 4)
    while position >= 0:
        yield position + 4
        position = data.find(kind, position + 4)


def _entries(body: bytes, at: int, width: int) -> bytes:
    """Return the entries of a table."""
    count = min(_long(body, at + 4), (len(body) - at - 8) // width)
    return body[at + 8 : at + 8 + max(count, 0) * width]


def _scale(body: bytes, at: int) -> int:
    return max(_long(body, at + (20 if body[at : at + 1] == b"\1" else 12)), 1)


def _header_us(body: bytes, at: int) -> int:
    """Return the length in a movie or media header."""
    is_wide = body[at : at + 1] == b"\1"
    width = 8 if is_wide else 4
    start = at + (24 if is_wide else 16)
    ticks = int.from_bytes(body[start : start + width])
    # All ones mean that the length is not known.
    return 0 if ticks == (1 << 8 * width) - 1 else ticks * 1_000_000 // _scale(body, at)


def _long(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4])
