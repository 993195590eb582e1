"""The audio that a Realtime client sends: a bounded buffer with speech detection. Pure.

Speech is detected by loudness, in frames of 20 ms: it begins with the first loud frame and ends
after the session's configured silence.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway_app.openai.errors import refused
from uamp import ErrorCode
from uamp.types.inline_media import media_bytes

if TYPE_CHECKING:
    from gateway_app.realtime.audio_fields import TurnDetection

BYTES_PER_MS: Final = {"pcm16": 48, "g711_ulaw": 8, "g711_alaw": 8}
MIN_MS: Final = 100
"""The shortest audio, in ms, that can be committed, as with OpenAI."""
FRAME_MS: Final = 20
THRESHOLD: Final = 0.5
EXAMINED_AT_ONCE: Final = 250
"""The number of frames examined, in a few milliseconds, before other tasks run."""
# The root mean square of samples that corresponds to a threshold of 1.
_LOUDEST: Final = 1_500


@dataclass(frozen=True)
class SpeechStarted:
    """Speech began; `at_ms` counts from the start of the session's audio."""

    at_ms: int


@dataclass(frozen=True)
class SpeechStopped:
    """Speech ended, and is now in the buffer."""

    at_ms: int


Found: TypeAlias = SpeechStarted | SpeechStopped


class InputSound:
    """The input buffer of one socket, limited to `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.format = "pcm16"
        self.is_speech = False
        self._limit = limit
        self._samples = bytearray()
        # How many bytes preceded the buffer, and how many bytes of it have been examined.
        self._before = 0
        self._examined = 0
        self._quiet_ms = 0

    @property
    def size(self) -> int:
        """The bytes in the buffer."""
        return len(self._samples)

    def change_format(self, name: str) -> None:
        """Change the sample format; raises RemoteProtocolError unless the buffer is empty."""
        if name != self.format and self._samples:
            raise refused("session.audio.input.format", "Clear or commit the buffer first.")
        self.format = name

    def append(self, audio: str) -> None:
        """Append base64 samples; raises RemoteProtocolError if malformed or too large."""
        try:
            samples = media_bytes(audio)
        except ValueError:
            raise refused("audio", "The audio is not base64.", ErrorCode.INVALID_MEDIA) from None
        if len(self._samples) + len(samples) > self._limit:
            raise refused(
                "audio",
                f"The buffer may have at most {self._limit} bytes. Commit or clear it.",
                ErrorCode.EVENT_TOO_LARGE,
            )
        self._samples += samples

    def whole(self) -> bytes:
        """Return the buffered audio; raises RemoteProtocolError if it is too short."""
        if len(self._samples) < MIN_MS * BYTES_PER_MS[self.format]:
            raise refused("input_audio_buffer", f"The buffer has less than {MIN_MS} ms of audio.")
        samples = bytes(self._samples)
        # PCM samples have two bytes each.
        return samples[: len(samples) // 2 * 2] if self.format == "pcm16" else samples

    def clear(self) -> None:
        """Discard the buffered audio."""
        self._before += len(self._samples)
        self._samples.clear()
        self._examined = self._quiet_ms = 0
        self.is_speech = False

    def find(self, detection: TurnDetection) -> Found | None:
        """Examine up to EXAMINED_AT_ONCE frames, and return the first start or end of speech.

        Returns None if there is neither. Before speech, the buffer keeps only the last
        `prefix_padding_ms`.
        """
        size = self._frame_bytes
        threshold = THRESHOLD if detection.threshold is None else detection.threshold
        for _ in range(EXAMINED_AT_ONCE):
            if not self.has_more:
                break
            frame = self._samples[self._examined : self._examined + size]
            self._examined += size
            is_loud = _loudness(bytes(frame), self.format) > threshold * _LOUDEST
            self._quiet_ms = 0 if is_loud else self._quiet_ms + FRAME_MS
            if is_loud and not self.is_speech:
                self.is_speech = True
                return SpeechStarted(self._drop_before(detection.prefix_padding_ms, size))
            if self.is_speech and self._quiet_ms >= max(detection.silence_duration_ms, FRAME_MS):
                return SpeechStopped(self._at(self._examined))
        if not self.is_speech:
            self._drop_before(detection.prefix_padding_ms, 0)
        return None

    @property
    def has_more(self) -> bool:
        """Whether `find` has a frame left to examine."""
        return self._examined + self._frame_bytes <= len(self._samples)

    @property
    def _frame_bytes(self) -> int:
        return FRAME_MS * BYTES_PER_MS[self.format]

    def take_speech(self) -> bytes:
        """Return the finished speech; later audio stays in the buffer."""
        samples = bytes(self._samples[: self._examined])
        rest = self._samples[self._examined :]
        self.clear()
        self._before -= len(rest)
        self._samples = rest
        return samples

    def _drop_before(self, padding_ms: int, size: int) -> int:
        """Drop all but the padding before the frame; return where the rest begins, in ms."""
        retained_bytes = padding_ms * BYTES_PER_MS[self.format] + size
        drop = max(self._examined - retained_bytes, 0)
        del self._samples[:drop]
        self._before += drop
        self._examined -= drop
        return self._at(0)

    def _at(self, place: int) -> int:
        return (self._before + place) // BYTES_PER_MS[self.format]


def _loudness(frame: bytes, name: str) -> float:
    """Return the root mean square of a frame's samples, at most 32,768."""
    if name == "pcm16":
        samples = array("h", frame)
        return math.sqrt(sum(sample * sample for sample in samples) / len(samples))
    table = _ULAW if name == "g711_ulaw" else _ALAW
    return math.sqrt(sum(table[code] for code in frame) / len(frame))


def _of_ulaw(code: int) -> int:
    """Return the magnitude of a µ-law code (ITU-T G.711)."""
    code = ~code & 0x7F
    return ((((code & 0x0F) << 3) + 0x84) << (code >> 4)) - 0x84


def _of_alaw(code: int) -> int:
    """Return the magnitude of an A-law code (ITU-T G.711)."""
    code = (code ^ 0x55) & 0x7F
    exponent, mantissa = code >> 4, code & 0x0F
    value = (mantissa << 4) + 8
    return value if exponent == 0 else (value + 0x100) << (exponent - 1)


_ULAW: Final = tuple(_of_ulaw(code) ** 2 for code in range(256))
_ALAW: Final = tuple(_of_alaw(code) ** 2 for code in range(256))
