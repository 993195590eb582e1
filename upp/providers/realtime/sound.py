"""Audio for a Realtime API: raw samples in one of three formats, read from WAV files."""

from dataclasses import dataclass
from typing import Final

PCM16: Final = "audio/pcm"
ULAW: Final = "audio/pcmu"
ALAW: Final = "audio/pcma"

# The header of a WAV file: format, channels, sample rate, bits.
_FORMATS: Final = {
    (1, 1, 24_000, 16): PCM16,
    (7, 1, 8_000, 8): ULAW,
    (6, 1, 8_000, 8): ALAW,
}
_EXTENSIBLE: Final = 0xFFFE
_FACTS_BYTES: Final = 16


@dataclass(frozen=True)
class Sound:
    """Raw samples of one channel, and the vendor's name for their format."""

    format: str
    samples: bytes


def read_wave(data: bytes) -> Sound | None:
    """Read a WAV file with one channel: 16-bit PCM at 24 kHz, or G.711 at 8 kHz.

    Returns None for any other file. A truncated file yields the samples it has.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return None
    format_name: str | None = None
    at = 12
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        body = data[at + 8 : at + 8 + size]
        if name == b"fmt " and len(body) >= _FACTS_BYTES:
            format_name = _FORMATS.get(_facts(body))
        elif name == b"data":
            return None if format_name is None else Sound(format_name, body)
        at += 8 + size + size % 2
    return None


def _facts(body: bytes) -> tuple[int, int, int, int]:
    kind = int.from_bytes(body[:2], "little")
    if kind == _EXTENSIBLE:
        kind = int.from_bytes(body[24:26], "little")
    return (
        kind,
        int.from_bytes(body[2:4], "little"),
        int.from_bytes(body[4:8], "little"),
        int.from_bytes(body[14:16], "little"),
    )
