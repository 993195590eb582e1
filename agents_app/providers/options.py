"""The `options` of an agent's row: their names and allowed values.

Invalid options are rejected when they are saved. If a row was written without the form, the same
message appears when a person calls the agent.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import httpx
import msgspec

from agents_app.providers.row_params import null_in_params, problem_of_params

VOICE = r"^[A-Za-z0-9_-]{1,64}\Z"
"""The pattern of a vendor's voice name."""
_AMOUNT = r"^[0-9]{1,9}(?:\.[0-9]{1,9})?\Z"
_HEARING = frozenset({"google", "openai_realtime"})
_Positive = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class _ProviderOptions(msgspec.Struct):
    reasoning_tokens: _Positive | None = None
    context_window: _Positive | None = None
    max_output_tokens: _Positive | None = None


class _Scripted(_ProviderOptions):
    script: str = ""
    delay: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0


class _OfModel(_ProviderOptions):
    base_url: str | None = None
    # Validated by `providers.is_key_name`.
    api_key_env: Any = None
    api_version: str | None = None
    models: list[str] = []
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] | None = None
    # Checked by `row_params`.
    params: dict[str, Any] = {}
    # Whether the model of an OpenAI-compatible server accepts audio; most do not.
    audio: bool = False


class _Realtime(_OfModel):
    # The default voice of answers.
    voice: Annotated[str, msgspec.Meta(pattern=VOICE)] | None = None
    # The vendor's model that transcribes spoken input; none by default.
    transcription: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | None = None


class _RemoteOptions(_ProviderOptions):
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] | None = None
    params: dict[str, Any] = {}
    # Whether a remote agent over Chat Completions accepts audio.
    audio: bool = False
    # False for a remote A2A agent that answers at once instead of streaming.
    streams: bool = True
    # The most that a remote agent may be paid there for one answer, in USD; unset means nothing.
    pays_per_answer: Annotated[str, msgspec.Meta(pattern=_AMOUNT)] | None = None
    # Whether the cost that it states is trusted.
    trusts_cost: bool = False


class _ConnectedOptions(_ProviderOptions):
    # Whether another daemon starts over if one is lost before it said anything.
    starts_over: bool = True


SPEECH_FORMATS = ("pcm16", "g711_ulaw", "g711_alaw")
"""The audio formats that a Realtime API accepts and produces."""
# The formats that the providers' adapters can put into a request.
_SOUNDS: Mapping[str, tuple[str, ...]] = {
    "openai_compat": ("wav", "mp3"),
    "openai_realtime": ("wav", *SPEECH_FORMATS),
    "google": ("wav", "mp3", "opus"),
}


def audio_formats(provider: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the audio formats that an agent's model accepts; most accept none.

    Gemini models and those behind a Realtime API accept audio; those of an OpenAI-compatible server
    need the option `audio`.
    """
    accepts_audio = provider in _HEARING or options.get("audio") is True
    return _SOUNDS.get(provider, ()) if accepts_audio else ()


def speech_formats(provider: str) -> tuple[str, ...]:
    """Return the audio formats in which an agent's model answers; most have none."""
    return SPEECH_FORMATS if provider == "openai_realtime" else ()


def takes_calls(provider: str, options: Mapping[str, Any]) -> bool:
    """Return whether an agent's model accepts and produces audio and so can take part in calls."""
    return "pcm16" in audio_formats(provider, options) and bool(speech_formats(provider))


def problem_of(provider: str, options: Mapping[str, Any]) -> str | None:
    """Return the fault in a provider's options, for operators, or None.

    Unknown options have no effect here: see `unknown_options`. For the options of a remote agent,
    `provider` is "remote_" and its protocol.
    """
    try:
        read = msgspec.convert(options, _kind(provider))
    except msgspec.ValidationError as error:
        return f"{error}."
    if isinstance(read, _OfModel | _RemoteOptions):
        problem = problem_of_params(provider, read.params)
        if problem is not None:
            return f"{problem}."
    base_url = read.base_url if isinstance(read, _OfModel) else None
    if base_url is not None and not _is_address(base_url):
        return f'{base_url[:200]!r} is not an address. Write it as "http://127.0.0.1:11434/v1".'
    return None


def problem_of_new(provider: str, options: Mapping[str, Any]) -> str | None:
    """Return what is wrong with options that are about to be saved, or None.

    Rows that were saved earlier may have nulls among their `params`, which are left out.
    """
    problem = problem_of(provider, options)
    if problem is None and "params" in option_names(provider):
        path = null_in_params(provider, options.get("params", {}))
        if path is not None:
            problem = f"`params.{path}` is null. Leave it out for the default."
    return problem


def option_names(provider: str) -> tuple[str, ...]:
    """Return the names of the options for agents of a provider."""
    return _kind(provider).__struct_fields__


def unknown_options(provider: str, options: Mapping[str, Any]) -> list[str]:
    """Return the options that agents of a provider do not have."""
    return sorted(set(options) - set(option_names(provider)))


def _kind(provider: str) -> type[_Scripted | _OfModel | _RemoteOptions | _ConnectedOptions]:
    if provider == "scripted":
        return _Scripted
    if provider.partition("_")[0] == "remote":
        return _RemoteOptions
    if provider == "connected":
        return _ConnectedOptions
    return _Realtime if provider == "openai_realtime" else _OfModel


def _is_address(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in {"http", "https"} and bool(url.host)
