"""WAV files for the raw samples that voice protocols carry (UAMP §8.2)."""

from __future__ import annotations

import struct
from typing import Final

# By format: the sample tag, the sample rate, and the bytes per sample.
_SAMPLES: Final = {
    "pcm16": (1, 24_000, 2),
    "g711_ulaw": (7, 8_000, 1),
    "g711_alaw": (6, 8_000, 1),
}


def wave_file(samples: bytes, audio_format: str | None) -> bytes | None:
    """Return a mono WAV file; None if the format is not raw samples or there are none."""
    if audio_format not in _SAMPLES or not samples:
        return None
    tag, rate, size = _SAMPLES[audio_format]
    facts = struct.pack("<HHIIHH", tag, 1, rate, rate * size, size, size * 8)
    # Chunks begin at even offsets.
    data = samples + b"\0" * (len(samples) % 2)
    chunks = [(b"fmt ", facts, len(facts)), (b"data", data, len(samples))]
    body = b"".join(name + struct.pack("<I", length) + inner for name, inner, length in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def duration_ms(samples: int, audio_format: str) -> int:
    """Return the length of this many bytes of raw samples."""
    _, rate, size = _SAMPLES[audio_format]
    return samples * 1000 // (rate * size)
