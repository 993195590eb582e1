"""The configuration and costs of a session (UAMP §8.1 to §8.3, §8.6 to §8.8).

These are the shapes of the specification. ``uamp.codec.dialects`` converts other spellings that
clients use into these shapes first.
"""

from typing import Any

import msgspec

from uamp.types.bounds import Count, Pitch, Quantity, Share, Speed, Time


class FunctionDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A callable function: ``parameters`` is a JSON Schema object (UAMP §8.6)."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool: a function, or a provider's own tool, which has only a ``type`` (UAMP §8.6)."""

    type: str = msgspec.field(default_factory=lambda: "function")
    function: FunctionDefinition | None = None

    @property
    def name(self) -> str:
        """The function's name, or the type of a provider's own tool."""
        return self.function.name if self.function else self.type


class VoiceConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The voice of spoken answers (UAMP §5.1)."""

    provider: str | None = None
    voice_id: str | None = None
    name: str | None = None
    speed: Speed | None = None
    pitch: Pitch | None = None
    language: str | None = None
    extensions: dict[str, Any] | None = None


class TurnDetectionConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The detection of the end of a spoken turn: server_vad, client_vad, push_to_talk, none."""

    type: str
    threshold: Share | None = None
    silence_duration_ms: Time | None = None
    prefix_padding_ms: Time | None = None


class JsonSchemaFormat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named JSON Schema that the answer must satisfy (UAMP §8.3)."""

    name: str
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class ResponseFormat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Structured output: ``text``, ``json_object`` or ``json_schema`` (UAMP §8.3)."""

    type: str
    json_schema: JsonSchemaFormat | None = None


def _text_only() -> tuple[str, ...]:
    return ("text",)


class SessionConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Session configuration (UAMP §8.1); ``modalities`` is always sent, and defaults to text.

    ``id`` is the session id that a client suggests. Credentials and the agent that clients put here
    are moved to the event itself, so that a configuration can be stored and echoed.
    """

    modalities: tuple[str, ...] = msgspec.field(default_factory=_text_only)
    instructions: str | None = None
    tools: tuple[ToolDefinition, ...] = ()
    voice: VoiceConfig | None = None
    input_audio_format: str | None = None
    output_audio_format: str | None = None
    turn_detection: TurnDetectionConfig | None = None
    response_format: ResponseFormat | None = None
    extensions: dict[str, Any] = msgspec.field(default_factory=dict)
    id: str | None = None


class SessionPatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a configuration that ``session.update`` changes; None leaves a value as it is."""

    modalities: tuple[str, ...] | None = None
    instructions: str | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    voice: VoiceConfig | None = None
    input_audio_format: str | None = None
    output_audio_format: str | None = None
    turn_detection: TurnDetectionConfig | None = None
    response_format: ResponseFormat | None = None
    extensions: dict[str, Any] | None = None

    def apply_to(self, config: SessionConfig) -> SessionConfig:
        """Return ``config`` with the values of this patch that are not None."""
        changes = {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        }
        return msgspec.structs.replace(config, **changes)


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The session as the server sends it (UAMP §8.8); ``created_at`` is in seconds.

    ``status`` is active or closed. ``agent`` repeats the name that the client sent, ``agent_id`` is
    the server's own id of that agent; connected agents read both.
    """

    id: str
    created_at: Time | None = None
    config: SessionConfig | None = None
    status: str = msgspec.field(default_factory=lambda: "active")
    agent: str | None = None
    agent_id: str | None = None


class Resume(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The point from which to resume a lost session: everything in ``epoch`` after ``after``.

    Without ``session_id`` a new session of the same chat resumes there.
    """

    session_id: str | None = None
    epoch: str | None = None
    after: Count = 0


class Cost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cost of the tokens, for display; the ledger uses decimal strings (UAMP §8.7).

    Additions: ``answer_cost`` is the part that is the price of an answer, and ``unfinished`` is how
    much of that price an incomplete answer costs: whole, share or none.
    """

    input_cost: Quantity | None = None
    output_cost: Quantity | None = None
    total_cost: Quantity | None = None
    answer_cost: Quantity | None = None
    unfinished: str | None = None
    currency: str | None = None


class AudioUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Seconds of audio heard and spoken (UAMP §8.7).

    Additions: how many of the response's ``input_tokens`` (without cached tokens) and of its
    ``output_tokens`` were audio.
    """

    input_seconds: Quantity | None = None
    output_seconds: Quantity | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None


class UsageStats(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Token usage (UAMP §8.7).

    ``cache_write_tokens``, an addition, is how many of the ``cached_tokens`` were written: their
    price may differ from that of tokens read.
    """

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    total_tokens: Count | None = None
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    cost: Cost | None = None
    audio: AudioUsage | None = None
