"""The length of Matroska and WebM files (RFC 9559): each block lasts as long as its frames say.

Players look for the next block in their own ways if elements do not fit into each other: such
files are not measured.
"""

# ruff: noqa: PLR2004 the formats define these numbers
from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Final

from chat_app.contents.sound import flac, opus
from chat_app.contents.sound.mp4 import configured_us

MAX_US: Final = 10**12
"""The length of a file that cannot be measured."""
ELEMENTS: Final = 1_000_000
"""How many elements of a file are visited."""
_UNKNOWN_US: Final = 10_000_000
"""The length of a frame of another codec."""
_SEGMENT, _CLUSTER, _TRACK = 0x18538067, 0x1F43B675, 0xAE
# Segment, Info, Tracks, TrackEntry, Audio, Cluster and BlockGroup.
_MASTERS: Final = {_SEGMENT, 0x1549A966, 0x1654AE6B, _TRACK, 0xE1, _CLUSTER, 0xA0}
_TRACK_NUMBER, _CODEC, _PRIVATE, _ENCODINGS = 0xD7, 0x86, 0x63A2, 0x6D80
_RATES: Final = {0xB5, 0x78B5}
_CHANNELS, _BITS = 0x9F, 0x6264
_SCALE, _DURATION = 0x2AD7B1, 0x4489
_BLOCKS: Final = {0xA3, 0xA1, 0xAF}
_MP3_US: Final = 144_000
_FIXED_US: Final = {b"A_AC3": 48_000, b"A_EAC3": 48_000, b"A_MPEG/L3": _MP3_US}


class _BrokenError(Exception):
    """The elements do not fit into each other."""


@dataclass(slots=True)
class _Track:
    numbers: list[int] = field(default_factory=list)
    codecs: list[bytes] = field(default_factory=list)
    private: list[bytes] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    channels: int = 1
    bits: int = 8
    is_encoded: bool = False

    def frames_us(self, data: bytes, start: int, end: int, frames: int) -> int:
        """Return the length of the frames in these bytes."""
        codec = self.codecs[0].rstrip(b"\0") if len(set(self.codecs)) == 1 else b""
        if codec.startswith((b"V_", b"S_", b"D_")):
            return 0
        if codec == b"A_OPUS":
            is_read = frames == 1 and not self.is_encoded
            return opus.packet_us(data, start) if is_read else frames * opus.PACKET_US
        if codec == b"A_FLAC" and frames == 1 and not self.is_encoded:
            private = self.private[0] if self.private else b""
            return flac.frame_us(data, start, flac.stream_hertz(private[8:]))
        if codec.startswith(b"A_PCM/") and not self.is_encoded:
            bytes_per_second = self.hertz * self.channels * self.bits // 8
            return (end - start) * 1_000_000 // max(bytes_per_second, 1)
        return frames * self._frame_us(codec)

    @property
    def hertz(self) -> int:
        """The lowest sampling rate that the track states."""
        return max(int(min(self.rates, default=8_000.0)), 1)

    def _frame_us(self, codec: bytes) -> int:
        if codec == b"A_VORBIS":
            return max(map(_vorbis_us, self.private), default=_UNKNOWN_US)
        if codec.startswith(b"A_AAC"):
            stated = [configured_us(data) for data in self.private if data]
            return max([*stated, 1_024_000_000 // self.hertz])
        return _FIXED_US.get(codec, _UNKNOWN_US)


def matroska_us(data: bytes) -> int:
    """Return the length of a file in microseconds, summed over its sound tracks."""
    try:
        return _Walk(data).us()
    except _BrokenError:
        return MAX_US


class _Walk:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._tracks: list[_Track] = []
        self._scale, self._duration = 1_000_000, 0.0
        self._total = 0

    def us(self) -> int:
        """Visit all elements and return the length."""
        position, ends = 0, [len(self._data)]
        for _ in range(ELEMENTS):
            while len(ends) > 1 and position == ends[-1]:
                ends.pop()
            if position >= len(self._data):
                claimed = int(self._duration * self._scale / 1000)
                return max(self._total, claimed) if self._tracks else MAX_US
            element, position = self._number(position, keep_marker=True)
            size, position = self._number(position)
            is_open = size < 0
            end = ends[-1] if is_open else position + size
            if is_open and element not in {_SEGMENT, _CLUSTER}:
                raise _BrokenError
            if element in {_SEGMENT, _CLUSTER} and is_open:
                # It ends where the next one begins.
                continue
            if end > ends[-1]:
                raise _BrokenError
            if element in _MASTERS:
                if element == _TRACK:
                    self._tracks.append(_Track())
                ends.append(end)
                continue
            self._read(element, position, end)
            position = end
        raise _BrokenError

    def _number(self, position: int, *, keep_marker: bool = False) -> tuple[int, int]:
        """Return a variable-size integer and where it ends; -1 for an unknown size."""
        first = self._data[position] if position < len(self._data) else 0
        width = 9 - first.bit_length()
        end = position + width
        if not first or end > len(self._data):
            raise _BrokenError
        number = int.from_bytes(self._data[position:end])
        if keep_marker:
            return number, end
        number &= (1 << 7 * width) - 1
        return -1 if number == (1 << 7 * width) - 1 else number, end

    def _read(self, element: int, start: int, end: int) -> None:
        if element in _BLOCKS:
            self._block(start, end)
        elif element == _SCALE:
            self._scale = max(self._scale, int.from_bytes(self._data[start:end]))
        elif element == _DURATION:
            self._duration = max(self._duration, self._float(start, end))
        elif self._tracks:
            self._describe(self._tracks[-1], element, start, end)

    def _describe(self, track: _Track, element: int, start: int, end: int) -> None:
        if element in _RATES:
            track.rates.append(self._float(start, end))
        elif element in {_CODEC, _PRIVATE}:
            list_of = track.codecs if element == _CODEC else track.private
            list_of.append(self._data[start:end])
        elif element == _ENCODINGS:
            track.is_encoded = True
        elif element in {_TRACK_NUMBER, _CHANNELS, _BITS}:
            number = int.from_bytes(self._data[start : min(end, start + 8)])
            if element == _TRACK_NUMBER:
                track.numbers.append(number)
            elif element == _CHANNELS:
                track.channels = number
            else:
                track.bits = number

    def _block(self, start: int, end: int) -> None:
        number, position = self._number(start)
        position += 3
        if position > end:
            raise _BrokenError
        frames = 1
        if self._data[position - 1] & 6:
            frames = self._data[position] + 1 if position < end else 1
            position += 1
        tracks = [track for track in self._tracks if number in track.numbers]
        lengths = [track.frames_us(self._data, position, end, frames) for track in tracks]
        self._total += max(lengths, default=frames * _UNKNOWN_US)

    def _float(self, start: int, end: int) -> float:
        width = end - start
        if width not in {4, 8}:
            return 0.0
        number = struct.unpack(">f" if width == 4 else ">d", self._data[start:end])[0]
        return min(float(number), 1e15) if math.isfinite(number) and number > 0 else 0.0


def _vorbis_us(private: bytes) -> int:
    at = private.find(b"\x01vorbis")
    if at < 0 or len(private) < at + 29:
        return _UNKNOWN_US
    hertz, longest = (
        int.from_bytes(private[at + 12 : at + 16], "little"),
        1 << private[at + 28] // 16,
    )
    return -(-longest // 2 * 1_000_000 // max(hertz, 1))
