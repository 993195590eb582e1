"""References to stored contents in content items (UAMP §8.4.1, §8.5.4).

A medium that arrives as base64 is stored once and travels on as `/api/content/<uuid>`; the log
keeps references, not payloads. Everything here is synchronous.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from typing import TYPE_CHECKING, Final

import msgspec
from django.utils import timezone

import uamp
from chat_app.contents.addresses import content_url
from chat_app.contents.media_types import (
    DEFAULT_MIME,
    IMAGE_FORMATS,
    InvalidMedia,
    format_of_image,
)
from chat_app.contents.reading_rights import ContentNotFound, readable
from chat_app.contents.storage import discard, store

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from chat_app.contents.quota import ContentOwner
    from chat_app.models import Content


_AUDIO_FORMATS: Final = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "webm": "audio/webm",
    "opus": "audio/ogg",
    "aac": "audio/aac",
}
# These formats have no header that could be looked at.
_HEADERLESS: Final = {"pcm16", "g711_ulaw", "g711_alaw", "aac"}


def item_of(content: Content) -> uamp.ContentItem:
    """Return the content item that refers to a stored content (UAMP §8.4.2)."""
    url = uamp.MediaUrl(url=content_url(content.id))
    kind, _, subtype = content.mime_type.partition("/")
    content_id = content.content_id
    if content.mime_type in IMAGE_FORMATS.values():
        return uamp.ImageContent(image=url, format=subtype, content_id=content_id)
    if kind == "audio":
        return uamp.AudioContent(audio=url, format=subtype, content_id=content_id)
    if kind == "video":
        return uamp.VideoContent(video=url, format=subtype, content_id=content_id)
    return uamp.FileContent(
        file=url,
        filename=content.filename or content_id,
        mime_type=content.mime_type,
        size_bytes=content.size_bytes,
        content_id=content_id,
    )


def media_of(item: uamp.ContentItem) -> uamp.MediaUrl | str | None:
    """Return the medium of a content item; None for text and tool items."""
    match item:
        case uamp.ImageContent(image=medium):
            return medium
        case uamp.AudioContent(audio=medium):
            return medium
        case uamp.VideoContent(video=medium):
            return medium
        case uamp.FileContent(file=medium):
            return medium
    return None


def ingest(
    items: Sequence[uamp.ContentItem], *, owner: ContentOwner, new_ids: Collection[str] = ()
) -> list[uamp.ContentItem]:
    """Store the base64 media of a message and return its items with references instead.

    References to our own content are checked for access; other URLs are kept and never fetched.
    What a tool result carries is treated alike. A content_id among `new_ids` was chosen by the
    server and is the id of the stored content; another one is its owner's handle. Raises
    InvalidMedia and ContentNotFound; then nothing is kept of the message.
    """
    began = timezone.now()
    ingested: list[uamp.ContentItem] = []
    try:
        ingested.extend(_ingest_item(item, owner, new_ids) for item in items)
    except (InvalidMedia, ContentNotFound):
        discard(content_ids(ingested), since=began)
        raise
    return ingested


def _ingest_item(
    item: uamp.ContentItem, owner: ContentOwner, new_ids: Collection[str]
) -> uamp.ContentItem:
    if isinstance(item, uamp.ToolResultContent) and item.tool_result.content_items:
        inner = tuple(ingest(item.tool_result.content_items, owner=owner, new_ids=new_ids))
        result = msgspec.structs.replace(item.tool_result, content_items=inner)
        return msgspec.structs.replace(item, tool_result=result)
    medium = media_of(item)
    if medium is None:
        return item
    if isinstance(medium, uamp.MediaUrl):
        if (content_id := uamp.content_id_of(medium.url)) is not None:
            known = readable(content_id, owner=owner)
            return _sized(_referring(item, known, content_id), known)
        if not re.match(r"https?://[^\s/]", medium.url):
            raise InvalidMedia("A medium is base64 data, an http(s) URL or /api/content/<uuid>.")
        return item
    if (content_id := uamp.content_id_of(medium)) is not None:
        known = readable(content_id, owner=owner)
        return _sized(
            _with_medium(item, uamp.MediaUrl(url=content_url(known.pk)), content_id), known
        )
    data = _decode(medium)
    mime_type, filename = _declared(item, data)
    chosen = getattr(item, "content_id", None)
    content = store(
        data,
        mime_type=mime_type,
        filename=filename,
        owner=owner,
        content_id=chosen if chosen in new_ids else None,
        handle=None if chosen in new_ids else _as_uuid(chosen),
    )
    url = uamp.MediaUrl(url=content_url(content.id))
    return _sized(_with_medium(item, url, content.content_id), content)


def _sized(item: uamp.ContentItem, content: Content) -> uamp.ContentItem:
    """Return an item with the size that was stored, whatever its client sent."""
    if not isinstance(item, uamp.FileContent) or item.size_bytes == content.size_bytes:
        return item
    return msgspec.structs.replace(item, size_bytes=content.size_bytes)


def _referring(item: uamp.ContentItem, content: Content, content_id: str) -> uamp.ContentItem:
    """Return an item whose address is the content's own, also where it was named by its handle."""
    if str(content.pk) == content_id.lower():
        return item
    url = uamp.MediaUrl(url=content_url(content.pk))
    return _with_medium(item, url, getattr(item, "content_id", None) or content_id)


def _as_uuid(value: str | None) -> str | None:
    try:
        return str(uuid.UUID(value)) if value else None
    except ValueError:
        raise InvalidMedia("content_id must be a UUID.") from None


def _decode(text: str) -> bytes:
    if text.startswith("data:"):
        text = text.partition(",")[2]
    elif text.startswith(("http://", "https://")):
        raise InvalidMedia('Send a URL as {"url": …}; a plain string is base64 data.')
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidMedia("The medium is not base64 data.") from error


def _declared(item: uamp.ContentItem, data: bytes) -> tuple[str, str]:
    """Return the media type that an item declares, and its file name."""
    match item:
        case uamp.FileContent(filename=filename, mime_type=mime_type):
            return mime_type, filename
        case uamp.ImageContent(format=None):
            found = IMAGE_FORMATS.get(format_of_image(data))
            if found is None:
                raise InvalidMedia("An image is jpeg, png, webp or gif.")
            return found, ""
        case uamp.ImageContent(format=image_format):
            return IMAGE_FORMATS.get(str(image_format), f"image/{image_format}"), ""
        case uamp.AudioContent(format=audio_format):
            if audio_format in _HEADERLESS or audio_format is None:
                return DEFAULT_MIME, ""
            return _AUDIO_FORMATS.get(audio_format, f"audio/{audio_format}"), ""
        case uamp.VideoContent(format=video_format):
            return f"video/{video_format or 'mp4'}", ""
    raise AssertionError(item)


def _with_medium(
    item: uamp.ContentItem, medium: uamp.MediaUrl, content_id: str
) -> uamp.ContentItem:
    field = type(item).__struct_config__.tag
    return msgspec.structs.replace(item, **{str(field): medium, "content_id": content_id})


def content_ids(items: Sequence[uamp.ContentItem]) -> list[str]:
    """Return the ids of all stored contents that items refer to, tool results included."""
    found: list[str] = []
    for item in items:
        if isinstance(item, uamp.ToolResultContent) and item.tool_result.content_items:
            found += content_ids(item.tool_result.content_items)
        medium = media_of(item)
        if isinstance(medium, uamp.MediaUrl) and (found_id := uamp.content_id_of(medium.url)):
            found.append(found_id)
    return found
