"""The capabilities of a model, a client or an agent, in one shape (UAMP §9).

Three flags and three names are required on the wire, so they are always sent; a missing flag in a
received declaration means False.
"""

from typing import Any

import msgspec

from uamp.types.bounds import Count, Positive, Time


class ImageCapabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Images: sizes in bytes and pixels."""

    formats: tuple[str, ...] | None = None
    max_size_bytes: Count | None = None
    max_pixels: Count | None = None
    detail_levels: tuple[str, ...] | None = None
    max_images_per_request: Count | None = None


class AudioCapabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Audio: sample rates in hertz, durations in seconds."""

    input_formats: tuple[str, ...] | None = None
    output_formats: tuple[str, ...] | None = None
    sample_rates: tuple[Positive, ...] | None = None
    max_duration_seconds: Time | None = None
    supports_realtime: bool | None = None
    voices: tuple[str, ...] | None = None


class FileCapabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Documents: sizes in bytes."""

    supported_mime_types: tuple[str, ...] | None = None
    max_size_bytes: Count | None = None
    supports_pdf: bool | None = None
    supports_code: bool | None = None
    supports_structured_data: bool | None = None


class ToolCapabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tools and functions."""

    supports_tools: bool | None = None
    supports_parallel_tools: bool | None = None
    supports_streaming_tools: bool | None = None
    max_tools_per_request: Count | None = None
    built_in_tools: tuple[str, ...] | None = None


class ConversationCapabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The server's features for chats besides turns; an addition to UAMP.

    ``client_events`` are the types of events that it accepts, ``server_events`` those that it
    sends. ``features`` are named after what people do with them.
    """

    client_events: tuple[str, ...] | None = None
    server_events: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None


def _no() -> bool:
    return False


def _unnamed() -> str:
    return ""


def _text_only() -> tuple[str, ...]:
    return ("text",)


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The capabilities of a client, server or agent (UAMP §9); context windows in tokens.

    ``model_id``, which the reference implementation sends, is also accepted for ``id``.
    """

    id: str = msgspec.field(default_factory=_unnamed)
    provider: str = msgspec.field(default_factory=_unnamed)
    modalities: tuple[str, ...] = msgspec.field(default_factory=_text_only)
    supports_streaming: bool = msgspec.field(default_factory=_no)
    supports_thinking: bool = msgspec.field(default_factory=_no)
    supports_caching: bool = msgspec.field(default_factory=_no)
    context_window: Count | None = None
    max_output_tokens: Count | None = None
    image: ImageCapabilities | None = None
    audio: AudioCapabilities | None = None
    file: FileCapabilities | None = None
    tools: ToolCapabilities | None = None
    conversation: ConversationCapabilities | None = None
    provides: tuple[str, ...] | None = None
    widgets: tuple[str, ...] | None = None
    endpoints: tuple[str, ...] | None = None
    output_content_types: tuple[str, ...] | None = None
    supports_rich_display: bool | None = None
    model_id: str | None = None
    extensions: dict[str, Any] = msgspec.field(default_factory=dict)
