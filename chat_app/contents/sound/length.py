"""An upper bound for the length of a sound, measured from its bytes.

The length that a file claims is not trusted: its frames are counted. Bytes that are not frames
count as long as their format allows.
"""

from __future__ import annotations

import re
from typing import Final

from chat_app.contents.sound.flac import flac_us
from chat_app.contents.sound.matroska import matroska_us
from chat_app.contents.sound.mp4 import mp4_us
from chat_app.contents.sound.mpeg import after_tags, frames_us
from chat_app.contents.sound.ogg import ogg_us
from chat_app.contents.sound.riff import wave_us

LONGEST_MS: Final = 10**9
"""No sound counts as longer."""
_LEAST_US: Final = 4_000
"""Microseconds that one byte of any other format lasts, at 2 kbit/s."""
_FRAMED: Final = {"audio/mpeg", "audio/mp3", "audio/aac", "audio/aacp"}
_ADTS_OR_MPEG: Final = re.compile(rb"\xff[\xe0-\xff]")


def longest_ms(data: bytes, mime_type: str) -> int:
    """Return the maximum length of a sound in milliseconds."""
    us = _us(data, mime_type)
    if (start := after_tags(data)) and not _ADTS_OR_MPEG.match(data, start):
        # Players skip tags before any format.
        us = max(us, _us(data[start:], mime_type))
    return min(-(-us // 1000), LONGEST_MS)


def _us(data: bytes, mime_type: str) -> int:
    if data.startswith(b"OggS"):
        us = ogg_us(data)
    elif data[:4] in {b"RIFF", b"RF64"} and data[8:12] == b"WAVE":
        us = wave_us(data)
    elif data.startswith(b"fLaC"):
        us = flac_us(data)
    elif data.startswith(b"\x1aE\xdf\xa3"):
        us = matroska_us(data)
    elif data[4:8] == b"ftyp":
        us = mp4_us(data)
    elif mime_type in _FRAMED or data.startswith(b"ID3") or _ADTS_OR_MPEG.match(data):
        us = frames_us(data)
    else:
        us = len(data) * _LEAST_US
    return us
