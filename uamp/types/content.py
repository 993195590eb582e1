"""Content items and messages, in every medium (UAMP §8.4, §8.5).

An item is immutable, names its own type, and carries its medium as base64 text or by reference,
never as bytes. Items of types unknown to the protocol (including the reference implementation's
``html``) are dropped when an event is decoded (§14.3).
"""

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from uamp.types.bounds import Count, Time
from uamp.types.inline_media import is_data_url

_CONTENT_PATH = re.compile(
    r"(?:https?://[^/?#]+)?/api/content/"
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/?(?:[?#].*)?",
    re.IGNORECASE | re.DOTALL,
)


class MediaUrl(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A medium by reference: ``{"url": …}`` (UAMP §8.4.1), usually ``/api/content/<uuid>``."""

    url: str


Media = str | MediaUrl

IMAGE_FORMATS = frozenset({"jpeg", "png", "webp", "gif"})
"""The formats of an ImageContent (UAMP §8.4.2); an image in another format is a FileContent."""

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
"""The author's role in a conversation (UAMP §8.5)."""
InputRole: TypeAlias = Literal["user", "system", "assistant"]
"""The author's role in an ``input.text`` (UAMP §5.6)."""


class ToolCallData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool call; ``arguments`` is JSON text, possibly a fragment of it while streaming."""

    id: str
    name: str
    arguments: str


class ToolResultData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a tool: ``result`` is JSON text, ``content_items`` its media (§8.4.2).

    ``status`` is named as in §6.6 (``success``, ``error``), ``is_error`` as in §8.4.2.
    ``duration_ms``, an addition, is how long a server tool took, if one process saw all of it.
    """

    call_id: str
    result: str
    is_error: bool = False
    status: str | None = None
    duration_ms: Count | None = None
    content_items: tuple["ContentItem", ...] | None = None


class _Item(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of every content item."""


class _MediaItem(_Item, frozen=True, kw_only=True):
    """Base of the four media items: a handle, and display hints (reference extension)."""

    content_id: str | None = None
    description: str | None = None
    display_hint: str | None = None


class TextContent(_Item, frozen=True, kw_only=True, tag="text"):
    """Plain text."""

    text: str


class ImageContent(_MediaItem, frozen=True, kw_only=True, tag="image"):
    """An image; ``format`` is jpeg, png, webp or gif, ``detail`` low, high or auto."""

    image: Media
    format: str | None = None
    detail: str | None = None
    alt_text: str | None = None


class AudioContent(_MediaItem, frozen=True, kw_only=True, tag="audio"):
    """Audio; ``format`` is an audio format of §8.2, ``duration_ms`` in milliseconds."""

    audio: Media
    format: str | None = None
    duration_ms: Time | None = None


class VideoContent(_MediaItem, frozen=True, kw_only=True, tag="video"):
    """A video; ``duration_ms`` in milliseconds, ``thumbnail`` a URL or base64 image."""

    video: Media
    format: str | None = None
    duration_ms: Time | None = None
    thumbnail: str | None = None


class FileContent(_MediaItem, frozen=True, kw_only=True, tag="file"):
    """Any other document."""

    file: Media
    filename: str
    mime_type: str
    size_bytes: Count | None = None


class ToolCallContent(_Item, frozen=True, kw_only=True, tag="tool_call"):
    """A tool call as part of an answer."""

    tool_call: ToolCallData


class ToolResultContent(_Item, frozen=True, kw_only=True, tag="tool_result"):
    """A tool's result as part of an answer."""

    tool_result: ToolResultData


class ThinkingContent(_Item, frozen=True, kw_only=True, tag="thinking"):
    """Stored reasoning. UAMP §6.13 names this item without defining its shape; this is ours."""

    thinking: str
    stage: str | None = None
    redacted: bool = False


ContentItem = (
    TextContent
    | ImageContent
    | AudioContent
    | VideoContent
    | FileContent
    | ToolCallContent
    | ToolResultContent
    | ThinkingContent
)
MediaContent = ImageContent | AudioContent | VideoContent | FileContent

CONTENT_TYPES: dict[str, type[ContentItem]] = {
    "text": TextContent,
    "image": ImageContent,
    "audio": AudioContent,
    "video": VideoContent,
    "file": FileContent,
    "tool_call": ToolCallContent,
    "tool_result": ToolResultContent,
    "thinking": ThinkingContent,
}


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a conversation (UAMP §8.5).

    If both are present, ``content`` is the text and ``content_items`` all of the content. Any
    ``role`` but the four is refused (invalid_event).
    """

    role: Role
    content: str | None = None
    content_items: tuple[ContentItem, ...] | None = None
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[ToolCallData, ...] | None = None


def media_of(item: ContentItem) -> Media | None:
    """Return the medium of a media item, whichever field holds it; None for other items."""
    match item:
        case ImageContent():
            return item.image
        case AudioContent():
            return item.audio
        case VideoContent():
            return item.video
        case FileContent():
            return item.file
        case _:
            return None


def is_url(medium: str) -> bool:
    """Return whether a medium's text is a URL, not base64 data (UAMP §5.8).

    A URL has a colon, or the path and length of a stored content, which cannot be base64.
    """
    return (
        medium[:8].lower().startswith(("http://", "https://"))
        or is_data_url(medium)
        or (medium.startswith("/api/content/") and content_id_of(medium) is not None)
    )


def content_id_of(url: str) -> str | None:
    """Return the lower-case UUID in an ``/api/content/<uuid>`` URL, or None (UAMP §8.5.4).

    An absolute http(s) URL counts too: the id is a handle, and every reader checks access again.
    """
    match = _CONTENT_PATH.fullmatch(url)
    return match[1].lower() if match else None


def with_content_id(item: ContentItem, new_id: Callable[[], str]) -> ContentItem:
    """Return ``item`` with a ``content_id``: its own, its URL's, or a new one (UAMP §8.5.4).

    Text, thinking and tool items have none and are returned unchanged.
    """
    if not isinstance(item, MediaContent) or item.content_id is not None:
        return item
    media = media_of(item)
    content_id = content_id_of(media.url if isinstance(media, MediaUrl) else str(media))
    return msgspec.structs.replace(item, content_id=content_id or new_id())
