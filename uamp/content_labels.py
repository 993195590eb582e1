"""Names contents by id, never by address, in texts that models read (UAMP §8.5.4)."""

import re
from collections.abc import Sequence

from uamp.types.content import (
    ContentItem,
    FileContent,
    MediaContent,
    MediaUrl,
    content_id_of,
    media_of,
)

_CONTENT_ADDRESS = re.compile(
    r"(?:https?://[^\s/\"'<>()]+)?/api/content/"
    r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
    r"(?:\?(?:for=[\w:%.~-]*&(?:amp;)?)?signature=[\w:%.~-]*)?"
)


def labelled(text: str, items: Sequence[ContentItem]) -> str:
    """Return a tool's result for the model: its text and the ids of its contents."""
    labels = [label for item in items if (label := _label(item))]
    return "\n\n".join(part for part in (pure(text), "\n".join(labels)) if part)


def pure(text: str) -> str:
    """Replace the addresses of contents in a text with their ids."""
    if "/api/content/" not in text:
        return text
    return _CONTENT_ADDRESS.sub(r"content_id \1", text)


def _label(item: ContentItem) -> str:
    if not isinstance(item, MediaContent):
        return ""
    medium = media_of(item)
    content_id = item.content_id or (
        content_id_of(medium.url) if isinstance(medium, MediaUrl) else None
    )
    if content_id is None:
        return ""
    kind = type(item).__struct_config__.tag
    details = [item.filename] if isinstance(item, FileContent) else []
    details += [item.description] if item.description else []
    return f"[{kind}: content_id={content_id}{''.join(f', {detail}' for detail in details)}]"
