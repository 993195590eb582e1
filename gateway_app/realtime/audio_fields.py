"""The audio settings of a Realtime session: formats, the voice and turn detection.

The GA dialect nests them below `audio`; the beta keeps them beside the other members.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from gateway_app.openai.errors import refused
from uamp import ErrorCode
from uamp.types.bounds import Positive, Share

_NAMES: Final = {"audio/pcm": "pcm16", "audio/pcmu": "g711_ulaw", "audio/pcma": "g711_alaw"}
_GA_NAMES: Final = {name: ga for ga, name in _NAMES.items()}
BetaFormat: TypeAlias = Literal["pcm16", "g711_ulaw", "g711_alaw"]
_Ms = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
_VoiceName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]


class SoundFormat(msgspec.Struct, frozen=True, kw_only=True):
    """An audio format, as the GA dialect names it."""

    type: Literal["audio/pcm", "audio/pcmu", "audio/pcma"]
    rate: Positive | None = None

    @property
    def name(self) -> str:
        """The format's name in UAMP and in the beta."""
        return _NAMES[self.type]


class TurnDetection(msgspec.Struct, frozen=True, kw_only=True):
    """The detection of the end of speech, and what follows; both types go by loudness here."""

    type: Literal["server_vad", "semantic_vad"]
    threshold: Share | None = None
    prefix_padding_ms: _Ms = 300
    silence_duration_ms: _Ms = 500
    create_response: bool = True
    interrupt_response: bool = True


class CustomVoice(msgspec.Struct, frozen=True, kw_only=True):
    """A voice, named by its id."""

    id: _VoiceName


Voice: TypeAlias = _VoiceName | CustomVoice
"""A voice, named by its name or its id."""


def name_of(voice: Voice | None) -> str | None:
    """Return the name or id of a voice."""
    return voice.id if isinstance(voice, CustomVoice) else voice


class InputFields(msgspec.Struct, frozen=True, kw_only=True):
    """The `audio.input` of the GA dialect."""

    format: SoundFormat | None = None
    turn_detection: TurnDetection | UnsetType | None = UNSET


class OutputFields(msgspec.Struct, frozen=True, kw_only=True):
    """The `audio.output` of the GA dialect."""

    format: SoundFormat | None = None
    voice: Voice | None = None


class SpokenFields(msgspec.Struct, frozen=True, kw_only=True):
    """The `audio` of a response in the GA dialect."""

    output: OutputFields = msgspec.field(default_factory=OutputFields)


class AudioFields(msgspec.Struct, frozen=True, kw_only=True):
    """The `audio` of a session in the GA dialect."""

    input: InputFields = msgspec.field(default_factory=InputFields)
    output: OutputFields = msgspec.field(default_factory=OutputFields)


class SoundFields(Protocol):
    """A session's audio members in both dialects; None leaves a setting unchanged."""

    @property
    def audio(self) -> AudioFields | None:
        """The members of the GA dialect."""

    @property
    def voice(self) -> Voice | None:
        """The voice in the beta."""

    @property
    def input_audio_format(self) -> BetaFormat | None:
        """The format of the client's audio in the beta."""

    @property
    def output_audio_format(self) -> BetaFormat | None:
        """The format of the agent's audio in the beta."""

    @property
    def turn_detection(self) -> TurnDetection | UnsetType | None:
        """The turn detection in the beta; None turns it off."""


class SpeechSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in force. Formats have UAMP's names; without `detection`, the client commits."""

    input_format: str = "pcm16"
    output_format: str = "pcm16"
    voice: str | None = None
    detection: TurnDetection | None = msgspec.field(
        default_factory=lambda: TurnDetection(type="server_vad")
    )

    def after(self, fields: SoundFields) -> SpeechSettings:
        """Return the settings after an update."""
        audio = fields.audio or AudioFields()
        input_format, output_format = audio.input.format, audio.output.format
        voice = audio.output.voice or fields.voice
        detection = audio.input.turn_detection
        if detection is UNSET:
            detection = fields.turn_detection
        return SpeechSettings(
            input_format=input_format.name
            if input_format
            else fields.input_audio_format or self.input_format,
            output_format=output_format.name
            if output_format
            else fields.output_audio_format or self.output_format,
            voice=name_of(voice) or self.voice,
            detection=self.detection if isinstance(detection, UnsetType) else detection,
        )

    def check(self, takes: tuple[str, ...]) -> None:
        """Raise RemoteProtocolError if the agent accepts audio, but not in this format."""
        if takes and self.input_format not in takes:
            raise refused(
                "session.audio.input.format",
                f"The agent takes {', '.join(takes)}.",
                ErrorCode.UNSUPPORTED_MODALITY,
            )

    def body(self, *, is_ga: bool, speaks: bool) -> dict[str, Any]:
        """Return the members in the format of the dialect."""
        detection = None if self.detection is None else self._detection(self.detection)
        if not is_ga:
            members: dict[str, Any] = {
                "input_audio_format": self.input_format,
                "turn_detection": detection,
            }
            output = {"voice": self.voice, "output_audio_format": self.output_format}
            return members | (output if speaks else {})
        audio: dict[str, Any] = {
            "input": {"format": _ga_format(self.input_format), "turn_detection": detection}
        }
        if speaks:
            audio["output"] = {"format": _ga_format(self.output_format), "voice": self.voice}
        return {"audio": audio}

    def _detection(self, detection: TurnDetection) -> dict[str, Any]:
        members = msgspec.to_builtins(detection) | {"type": "server_vad"}
        return {name: value for name, value in members.items() if value is not None}


def _ga_format(name: str) -> dict[str, Any]:
    kind = _GA_NAMES[name]
    return {"type": kind, "rate": 24_000} if name == "pcm16" else {"type": kind}
