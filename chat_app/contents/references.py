"""References to stored contents in content items (UAMP §8.4.1, §8.5.4).

A medium that arrives as base64 is stored once and passed on as `/api/content/<uuid>`; the log holds
references, not payloads. Everything here is synchronous.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urljoin

import msgspec
from django.utils import timezone

import uamp
from chat_app.contents.addresses import ContentReader, content_url, signed_url
from chat_app.contents.filenames import clean_filename
from chat_app.contents.media_types import (
    DEFAULT_MIME,
    IMAGE_FORMATS,
    InvalidMedia,
    picture_type,
)
from chat_app.contents.reading_rights import ContentNotFound, ContentRecord, own_or_shown
from chat_app.contents.storage import discard, store
from chat_app.contents.wave import wave_file
from uamp.types.content import is_url
from uamp.types.inline_media import is_data_url, media_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from chat_app.contents.quota import ContentOwner
    from chat_app.models import Content

    Finder: TypeAlias = Callable[[str], Content]
    """Returns the content of an id or handle; raises ContentNotFound."""


# These formats have no header to inspect.
_HEADERLESS: Final = {"pcm16", "g711_ulaw", "g711_alaw", "aac"}
_AUDIO_FORMATS: Final = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "webm": "audio/webm",
    "opus": "audio/ogg",
    "aac": "audio/aac",
}
_AUDIO_WORDS: Final = {"audio/mpeg": "mp3", "audio/wav": "wav"}
# Types of data that may be audio or video, with nothing to decide which.
_UNDECIDED: Final = {DEFAULT_MIME, "application/ogg"}


def item_of(content: ContentRecord) -> uamp.ContentItem:
    """Return the content item that refers to a stored content (UAMP §8.4.2)."""
    url = uamp.MediaUrl(url=content_url(content.pk))
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ingestion:
    """The owner of the media, the ids that the server chose, and whether it is for a history."""

    owner: ContentOwner
    find: Finder
    new_ids: Collection[str]
    reuse: bool
    is_history: bool = False


def absolute_url(item: uamp.ContentItem, *, base_url: str, reader: ContentReader) -> str | None:
    """Return an address of an item's medium for a client without a key; None without a medium.

    A content of this server gets a signed address below `base_url` (`https://host`), which any
    holder may read for UAMP_CONTENT_URL_SECONDS, while `reader` may. Addresses elsewhere are
    returned unchanged. Rights are checked when the address is opened.
    """
    medium = media_of(item)
    if not isinstance(medium, uamp.MediaUrl):
        return None
    content_id = uamp.content_id_of(medium.url)
    return medium.url if content_id is None else urljoin(base_url, signed_url(content_id, reader))


def ingest(
    items: Sequence[uamp.ContentItem],
    *,
    owner: ContentOwner,
    find: Finder | None = None,
    new_ids: Collection[str] = (),
    reuse: bool = False,
) -> list[uamp.ContentItem]:
    """Store the base64 media of a message and return its items with references instead.

    `find` returns our own contents that the message may refer to, by default those of its owner;
    other URLs are kept and never fetched. Media in tool results are treated the same. A content_id
    in `new_ids` was chosen by the server and becomes the id of the stored content; any other is its
    owner's handle. With `reuse`, a medium that the owner sent before is not stored again. Raises
    InvalidMedia and ContentNotFound, in which case nothing of the message is stored.
    """
    find = find or partial(own_or_shown, owner=owner, chat_id="")
    how = _Ingestion(owner=owner, find=find, new_ids=new_ids, reuse=reuse)
    return _ingest_messages([items], how)[0]


def ingest_history(
    messages: Sequence[Sequence[uamp.ContentItem]], *, owner: ContentOwner, find: Finder
) -> tuple[list[list[uamp.ContentItem]], list[str]]:
    """Store the base64 media of a history as `ingest` does; return its items and content ids.

    The ids are those of contents that `find` returns. Clients send their history with every turn,
    so media sent before are not stored again, and dangling references stay as they are. Raises
    InvalidMedia, in which case nothing of the history is stored.
    """
    how = _Ingestion(owner=owner, find=find, new_ids=(), reuse=True, is_history=True)
    ingested = _ingest_messages(messages, how)
    named = {content_id for items in ingested for content_id in content_ids(items)}
    return ingested, [content_id for content_id in named if _may_name(content_id, find)]


def _may_name(content_id: str, find: Finder) -> bool:
    try:
        find(content_id)
    except ContentNotFound:
        return False
    return True


def _ingest_messages(
    messages: Sequence[Sequence[uamp.ContentItem]], how: _Ingestion
) -> list[list[uamp.ContentItem]]:
    began = timezone.now()
    ingested: list[list[uamp.ContentItem]] = []
    try:
        for items in messages:
            ingested.append([])
            ingested[-1].extend(_ingest_item(item, how) for item in items)
    except BaseException:
        stored_ids = [content_id for items in ingested for content_id in content_ids(items)]
        discard(stored_ids, since=began)
        raise
    return ingested


def _ingest_item(item: uamp.ContentItem, how: _Ingestion) -> uamp.ContentItem:
    if isinstance(item, uamp.ToolResultContent) and item.tool_result.content_items:
        inner = tuple(_ingest_messages([item.tool_result.content_items], how)[0])
        result = msgspec.structs.replace(item.tool_result, content_items=inner)
        return msgspec.structs.replace(item, tool_result=result)
    medium = media_of(item)
    if medium is None:
        return item
    if isinstance(item, uamp.FileContent):
        item = msgspec.structs.replace(item, filename=clean_filename(item.filename) or "file")
    url = medium.url if isinstance(medium, uamp.MediaUrl) else medium
    if (content_id := uamp.content_id_of(url)) is not None:
        return _checked(item, content_id, how)
    if isinstance(medium, uamp.MediaUrl) and not is_data_url(url):
        if not re.match(r"https?://[^\s/]", url, re.IGNORECASE):
            raise InvalidMedia("Media must be base64 data, an http(s) URL or /api/content/<uuid>.")
        _as_uuid(getattr(item, "content_id", None))
        return item
    return _stored(item, url, how)


def _checked(item: uamp.ContentItem, content_id: str, how: _Ingestion) -> uamp.ContentItem:
    """Return an item that refers to a content which its sender may show."""
    is_reference = isinstance(media_of(item), uamp.MediaUrl)
    try:
        content = how.find(content_id)
    except ContentNotFound:
        if how.is_history and is_reference:
            return item
        raise
    if is_reference:
        return _described(_referring(item, content, content_id), content)
    url = uamp.MediaUrl(url=content_url(content.pk))
    return _described(_with_medium(item, url, content_id), content)


def _stored(item: uamp.ContentItem, medium: str, how: _Ingestion) -> uamp.ContentItem:
    """Store the data of a medium and return its item with a reference instead."""
    data = _decode(medium)
    if isinstance(item, uamp.AudioContent) and (wave := wave_file(data, item.format)) is not None:
        # Without a header, samples could be neither played nor read by a model.
        item, data = msgspec.structs.replace(item, format="wav"), wave
    mime_type, filename = _declared(item, data)
    chosen = getattr(item, "content_id", None)
    is_new = chosen is None or chosen in how.new_ids
    content = store(
        data,
        mime_type=mime_type,
        filename=filename,
        owner=how.owner,
        content_id=chosen if is_new else None,
        handle=None if is_new else _as_uuid(chosen),
        reuse=how.reuse,
    )
    url = uamp.MediaUrl(url=content_url(content.id))
    return _described(_with_medium(item, url, content.content_id), content)


def _described(item: uamp.ContentItem, content: Content) -> uamp.ContentItem:
    """Describe an item by its stored content, whatever the client declared.

    A picture that is not displayed, and data of a different kind than the item's, become a file.
    """
    kind, _, subtype = content.mime_type.partition("/")
    match item:
        case uamp.FileContent():
            return msgspec.structs.replace(
                item,
                filename=content.filename or item.filename,
                mime_type=content.mime_type,
                size_bytes=content.size_bytes,
            )
        case uamp.ImageContent() if content.mime_type in IMAGE_FORMATS.values():
            return msgspec.structs.replace(item, format=subtype)
        case uamp.AudioContent() if kind == "audio":
            if _AUDIO_FORMATS.get(item.format or "") == content.mime_type:
                return item
            word = _AUDIO_WORDS.get(content.mime_type, subtype)
            return msgspec.structs.replace(item, format=word)
        case uamp.AudioContent() | uamp.VideoContent() if (
            kind in {"audio", "video"} or content.mime_type in _UNDECIDED
        ):
            return item
    return _as_stored(item, content)


def _as_stored(item: uamp.ContentItem, content: Content) -> uamp.ContentItem:
    """Return the item of a content, keeping the client's id and description."""
    stored = item_of(content)
    if not (isinstance(item, uamp.MediaContent) and isinstance(stored, uamp.MediaContent)):
        return item
    named = {"content_id": item.content_id, "description": item.description}
    if isinstance(stored, uamp.FileContent) and not content.filename:
        kind, _, subtype = content.mime_type.partition("/")
        named["filename"] = f"image.{subtype}" if kind == "image" else kind
    return msgspec.structs.replace(stored, **named)


def _referring(item: uamp.ContentItem, content: Content, content_id: str) -> uamp.ContentItem:
    """Return an item with the content's own address, even if it was named by its handle."""
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
    if is_url(text) and not is_data_url(text):
        raise InvalidMedia('Send a URL as {"url": …}; a plain string is base64 data.')
    try:
        return media_bytes(text)
    except ValueError as error:
        raise InvalidMedia("The media item is neither base64 data nor a data: URL.") from error


def _declared(item: uamp.ContentItem, data: bytes) -> tuple[str, str]:
    """Return the media type that an item declares, and its file name."""
    match item:
        case uamp.FileContent(filename=filename, mime_type=mime_type):
            return mime_type, filename
        case uamp.ImageContent(format=None):
            return picture_type(data), ""
        case uamp.ImageContent(format=image_format):
            return f"image/{image_format}", ""
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
    ids: list[str] = []
    for item in items:
        if isinstance(item, uamp.ToolResultContent) and item.tool_result.content_items:
            ids += content_ids(item.tool_result.content_items)
        medium = media_of(item)
        if isinstance(medium, uamp.MediaUrl) and (found_id := uamp.content_id_of(medium.url)):
            ids.append(found_id)
    return ids
