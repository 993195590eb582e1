"""An upper bound for the length of a sound, measured from its bytes.

The length that a file claims is not trusted: its frames are counted. Bytes that are not frames
count as long as their format allows. A format whose bytes may last any time is not measured.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from chat_app.contents.sound.amr import amr_us
from chat_app.contents.sound.flac import flac_us
from chat_app.contents.sound.matroska import matroska_us
from chat_app.contents.sound.mp4 import mp4_us
from chat_app.contents.sound.mpeg import after_tags, frames_us
from chat_app.contents.sound.ogg import ogg_us
from chat_app.contents.sound.plain import aiff_us, au_us, caf_us
from chat_app.contents.sound.riff import wave_us

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_MS: Final = 10**9
"""The longest length of a sound; a sound of this length could not be measured."""
_RAW_US: Final = 125
"""Microseconds that one byte of a raw sound lasts, at 8 kHz and eight bits."""
_RAW: Final = {"audio/pcm", "audio/pcm16", "audio/pcmu", "audio/pcma", "audio/basic"}
_FRAMED: Final = {"audio/mpeg", "audio/mp3", "audio/aac", "audio/aacp"}
_STARTS: Final = (
    (b"OggS", ogg_us),
    (b"fLaC", flac_us),
    (b"\x1aE\xdf\xa3", matroska_us),
    (b"#!AMR", amr_us),
    (b"caff", caf_us),
    (b".snd", au_us),
)
_FORMS: Final = {
    (b"RIFF", b"WAVE"): wave_us,
    (b"RF64", b"WAVE"): wave_us,
    (b"FORM", b"AIFF"): aiff_us,
    (b"FORM", b"AIFC"): aiff_us,
}
_ADTS_OR_MPEG: Final = re.compile(rb"\xff[\xe0-\xff]")


def longest_ms(data: bytes, mime_type: str) -> int:
    """Return the maximum length of a sound in milliseconds."""
    us = _us(data, mime_type)
    if (start := after_tags(data)) and not _ADTS_OR_MPEG.match(data, start):
        # Players skip tags before any format.
        us = max(us, _us(data[start:], mime_type))
    return min(-(-us // 1000), LONGEST_MS)


def _us(data: bytes, mime_type: str) -> int:
    measure = _measure_of(data)
    if measure is not None:
        return measure(data)
    if mime_type in _FRAMED or data.startswith(b"ID3") or _ADTS_OR_MPEG.match(data):
        return frames_us(data)
    return len(data) * _RAW_US if mime_type in _RAW else LONGEST_MS * 1000


def _measure_of(data: bytes) -> Callable[[bytes], int] | None:
    """Return the function that measures a container; None for unknown containers."""
    if data[4:8] == b"ftyp":
        return mp4_us
    form = _FORMS.get((data[:4], data[8:12]))
    return form or next((measure for start, measure in _STARTS if data.startswith(start)), None)
