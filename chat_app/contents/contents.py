"""Content: blobs with a `content_id`, owned, checked for being what they say (UAMP §8.4.1, §8.5.4).

A medium that arrives as base64 is stored once and travels on as `/api/content/<uuid>`; the log
keeps references, not payloads. Everything here is synchronous.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import unicodedata
import uuid
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.files.base import ContentFile
from django.core.signing import BadSignature, TimestampSigner
from django.db import transaction
from django.db.models import Case, Count, Exists, OuterRef, Q, Sum, When
from django.utils import timezone

import uamp
from chat_app.contents.media_types import (
    DEFAULT_MIME,
    IMAGE_FORMATS,
    InvalidMedia,
    format_of_image,
    sniff,
)
from chat_app.models import Content, ContentUse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

SIGNATURE_SECONDS: Final = 15 * 60
FILENAME_BYTES: Final = 255
# How the key of a visitor begins (sessions_app.access.auth.anonymous).
VISITOR_KEYS: Final = "anonymous:"

_AUDIO_FORMATS: Final = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "webm": "audio/webm",
    "opus": "audio/ogg",
    "aac": "audio/aac",
}
# These formats have no header that could be looked at.
_HEADERLESS: Final = {"pcm16", "g711_ulaw", "g711_alaw", "aac"}


class QuotaExceeded(InvalidMedia):
    """The owner stores as much as is allowed."""


class ContentNotFound(LookupError):
    """There is no such content, or it is not for this caller: the answer is the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """Whose a new content is: a person, or a session or chat by its key."""

    user_id: int | None = None
    key: str = ""


def content_url(content_id: object) -> str:
    """Return the path under which a content is read."""
    return f"/api/content/{content_id}"


def signed_url(content_id: object) -> str:
    """Return a path that any client may read for SIGNATURE_SECONDS."""
    signature = TimestampSigner(salt="content").sign(str(content_id)).split(":", 1)[1]
    return f"{content_url(content_id)}?signature={signature}"


def signature_is_good(content_id: object, signature: str) -> bool:
    """Return whether a signature is ours, for this content, and not too old."""
    signer = TimestampSigner(salt="content")
    try:
        signer.unsign(f"{content_id}:{signature}", max_age=SIGNATURE_SECONDS)
    except BadSignature:
        return False
    return True


def clean_filename(name: str) -> str:
    """Return the last part of a name, without control and direction characters."""
    name = PurePosixPath(unicodedata.normalize("NFKC", name).replace("\\", "/")).name
    kept = "".join(c for c in name if unicodedata.category(c) not in {"Cc", "Cf", "Cs"})
    while len(kept.encode()) > FILENAME_BYTES:
        kept = kept[:-1]
    return kept


def store(
    data: bytes,
    *,
    mime_type: str,
    filename: str,
    owner: Owner,
    content_id: str | None = None,
    handle: str | None = None,
) -> Content:
    """Store a blob; with an id that this owner used for the same bytes, return that one.

    `content_id` is the server's own choice of the id, `handle` is what a client chose: what others
    use a handle for makes no difference. Raises InvalidMedia for an empty or too large blob, a type
    that is not true, or an id that this owner used for other bytes; QuotaExceeded; OSError where
    there is no space. Then nothing was stored.
    """
    if not data:
        raise InvalidMedia("The file is empty.")
    if len(data) > settings.UAMP_UPLOAD_BYTES:
        raise InvalidMedia(f"The file is larger than {settings.UAMP_UPLOAD_BYTES} bytes.")
    filename = clean_filename(filename)
    mime_type = sniff(data, declared=mime_type, filename=filename)
    sha256 = hashlib.sha256(data).hexdigest()
    if (known_as := content_id or handle) is not None:
        existing = owned(known_as, owner=owner)
        if existing is not None:
            if existing.sha256 == sha256:
                return existing
            raise InvalidMedia("You used this content_id for something else.")
    content = Content(
        id=content_id or uuid.uuid4(),
        handle=handle,
        sha256=sha256,
        mime_type=mime_type,
        filename=filename,
        size_bytes=len(data),
        owner_id=owner.user_id,
        owner_key=owner.key,
    )
    try:
        with transaction.atomic():
            _check_quota(owner, len(data))
            # The stored name is the id: what a client calls its file never reaches the file system.
            content.blob.save(str(content.id), ContentFile(data), save=False)
            content.save(force_insert=True)
    except BaseException:
        # A full disk keeps a part of the file, a row that was refused the whole.
        blob = content.blob
        blob.storage.delete(blob.field.generate_filename(content, str(content.id)))
        raise
    return content


def _check_quota(owner: Owner, size: int) -> None:
    """Raise QuotaExceeded where an owner may not store so many bytes more."""
    if owner.user_id is not None:
        # Two uploads at once are counted one after the other.
        get_user_model().objects.select_for_update(no_key=True).filter(pk=owner.user_id).first()
        theirs = Content.objects.filter(owner_id=owner.user_id)
    else:
        theirs = Content.objects.filter(owner_id=None, owner_key=owner.key)
    most_bytes, most = settings.UAMP_STORED_BYTES_PER_USER, settings.UAMP_STORED_FILES_PER_USER
    if owner.user_id is None and owner.key.startswith(VISITOR_KEYS):
        # Every session of a visitor has another key: they have one quota together.
        theirs = Content.objects.filter(owner_id=None, owner_key__startswith=VISITOR_KEYS)
        most_bytes = settings.UAMP_ANONYMOUS_STORED_BYTES
        most = settings.UAMP_ANONYMOUS_STORED_FILES
    stored = theirs.aggregate(bytes=Sum("size_bytes"), files=Count("pk"))
    if (stored["bytes"] or 0) + size > most_bytes:
        raise QuotaExceeded(f"At most {most_bytes} bytes are stored for you.")
    if stored["files"] >= most:
        raise QuotaExceeded(f"At most {most} files are stored for you.")


def read(content: Content) -> bytes:
    """Return the bytes of a content."""
    with content.blob.open("rb") as blob:
        data: bytes = blob.read()
        return data


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
    items: Sequence[uamp.ContentItem], *, owner: Owner, new_ids: Collection[str] = ()
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
    item: uamp.ContentItem, owner: Owner, new_ids: Collection[str]
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
    """Return an item with the size that was stored, whatever its client said."""
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
    """Return the media type that an item says, and its file name."""
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


def readable(content_id: str, *, owner: Owner) -> Content:
    """Return a content that an owner may read, by its id or handle; raises ContentNotFound.

    One query answers it, the same for what is not there and for what is not theirs.
    """
    allowed = Q(owner_key=owner.key) if owner.key else Q(pk__isnull=True)
    if owner.user_id is not None:
        in_chats = ContentUse.objects.filter(
            content=OuterRef("pk"),
            chat__participants__user_id=owner.user_id,
            chat__participants__left_at__isnull=True,
        )
        allowed |= Q(owner_id=owner.user_id) | Q(Exists(in_chats))
    content = _named(content_id).filter(allowed).first()
    if content is None:
        raise ContentNotFound
    return content


def _named(content_id: str) -> QuerySet[Content]:
    """Return what an id may mean: the content that has it before those that have it as a handle."""
    by_id = Case(When(pk=content_id, then=0), default=1)
    return Content.objects.filter(Q(pk=content_id) | Q(handle=content_id)).order_by(
        by_id, "created_at", "pk"
    )


def owned(content_id: str, *, owner: Owner) -> Content | None:
    """Return a content if it is this owner's own, by its id or handle."""
    rows = _named(content_id)
    if owner.user_id is None:
        return rows.filter(owner_key=owner.key).first() if owner.key else None
    return rows.filter(owner_id=owner.user_id).first()


def in_chat(content_id: str, chat_id: str) -> Content:
    """Return a content that appears in a chat, by its id or handle; raises ContentNotFound."""
    content = _named(content_id).filter(uses__chat_id=chat_id).first()
    if content is None:
        raise ContentNotFound
    return content


def discard(stored: Iterable[str], *, since: datetime) -> None:
    """Forget contents that were stored since a time for something that was not written."""
    unused = Content.objects.filter(pk__in=list(stored), created_at__gte=since, uses__isnull=True)
    for content in unused:
        content.delete()
        content.blob.delete(save=False)


def use(chat_id: str, used: Iterable[str]) -> None:
    """Let the members of a chat read contents that a message of it carries.

    What was deleted meanwhile is left out: the message must be written all the same.
    """
    kept = Content.objects.filter(pk__in=list(used)).values_list("pk", flat=True)
    ContentUse.objects.bulk_create(
        [ContentUse(chat_id=chat_id, content_id=content_id) for content_id in kept],
        ignore_conflicts=True,
    )


def read_in_chat(content_id: str, chat_id: str) -> tuple[bytes, str]:
    """Return the bytes and type of a content that appears in a chat; raises ContentNotFound.

    An id may come from a client's own history: it need not be one of ours.
    """
    try:
        content = in_chat(str(uuid.UUID(content_id)), chat_id)
        return read(content), content.mime_type
    except (ValueError, FileNotFoundError) as error:
        raise ContentNotFound from error


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
