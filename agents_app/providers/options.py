"""The `options` of an agent's row: which there are, and what may stand in them.

What is wrong with them is said when they are written. A row that was written past the form
is refused in the same words when a person asks the agent.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import httpx
import msgspec

VOICE = r"^[A-Za-z0-9_-]{1,64}\Z"
"""The form of a vendor's name of a voice."""
_AMOUNT = r"^[0-9]{1,9}(?:\.[0-9]{1,9})?\Z"
_HEARING = frozenset({"google", "openai_realtime"})
_Positive = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class _GenerationConfig(msgspec.Struct):
    maxOutputTokens: _Positive | None = None  # noqa: N815 the vendor's own name


class _Params(msgspec.Struct):
    # The vendor's other parameters go to it as they are.
    max_tokens: _Positive | None = None
    max_completion_tokens: _Positive | None = None
    generationConfig: _GenerationConfig | None = None  # noqa: N815 as above


class _ProviderOptions(msgspec.Struct):
    reasoning_tokens: _Positive | None = None
    context_window: _Positive | None = None
    max_output_tokens: _Positive | None = None


class _Scripted(_ProviderOptions):
    script: str = ""
    delay: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0


class _OfModel(_ProviderOptions):
    base_url: str | None = None
    # What a key may be called, `providers.is_key_name` says.
    api_key_env: Any = None
    api_version: str | None = None
    models: list[str] = []
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] | None = None
    params: _Params = msgspec.field(default_factory=_Params)
    # Whether the model of an OpenAI-compatible server takes sound; most do not.
    audio: bool = False


class _Realtime(_OfModel):
    # The voice of an answer without one of its own.
    voice: Annotated[str, msgspec.Meta(pattern=VOICE)] | None = None
    # The vendor's model that writes down what is said to the agent; none does by default.
    transcription: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | None = None


class _RemoteOptions(_ProviderOptions):
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] | None = None
    params: _Params = msgspec.field(default_factory=_Params)
    # Whether a remote agent over Chat Completions takes sound.
    audio: bool = False
    # False for a remote agent of A2A that answers at once and does not stream.
    streams: bool = True
    # What a remote agent may be paid over there for one answer, in USD; nothing without it.
    pays_per_answer: Annotated[str, msgspec.Meta(pattern=_AMOUNT)] | None = None


SPEECH_FORMATS = ("pcm16", "g711_ulaw", "g711_alaw")
"""The formats of sound that a Realtime API takes and speaks."""
# What the adapters of the providers can put into a request.
_SOUNDS: Mapping[str, tuple[str, ...]] = {
    "openai_compat": ("wav", "mp3"),
    "openai_realtime": ("wav", *SPEECH_FORMATS),
    "google": ("wav", "mp3", "opus"),
}


def audio_formats(provider: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the formats of sound that reach an agent's model; none for most.

    Gemini's models take sound, and those behind a Realtime API; those of an OpenAI-compatible
    server with the option `audio`.
    """
    accepts_audio = provider in _HEARING or options.get("audio") is True
    return _SOUNDS.get(provider, ()) if accepts_audio else ()


def speech_formats(provider: str) -> tuple[str, ...]:
    """Return the formats of sound in which an agent's model answers; none for most."""
    return SPEECH_FORMATS if provider == "openai_realtime" else ()


def takes_calls(provider: str, options: Mapping[str, Any]) -> bool:
    """Return whether an agent's model takes sound and speaks, and so takes part in calls."""
    return "pcm16" in audio_formats(provider, options) and bool(speech_formats(provider))


def problem_of(provider: str, options: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a provider's options, in words for an operator; None for nothing.

    Options that there are not change nothing: see `unknown_options`.
    """
    try:
        read = msgspec.convert(options, _kind(provider))
    except msgspec.ValidationError as error:
        return f"{error}."
    base_url = read.base_url if isinstance(read, _OfModel) else None
    if base_url is not None and not _is_address(base_url):
        return f'{base_url[:200]!r} is no address. Write it as "http://127.0.0.1:11434/v1".'
    return None


def option_names(provider: str) -> tuple[str, ...]:
    """Return the options that agents of a provider have."""
    return _kind(provider).__struct_fields__


def unknown_options(provider: str, options: Mapping[str, Any]) -> list[str]:
    """Return the options that agents of a provider do not have."""
    return sorted(set(options) - set(option_names(provider)))


def _kind(provider: str) -> type[_Scripted | _OfModel | _RemoteOptions]:
    if provider == "scripted":
        return _Scripted
    if provider == "remote":
        return _RemoteOptions
    return _Realtime if provider == "openai_realtime" else _OfModel


def _is_address(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in {"http", "https"} and bool(url.host)
