"""Blobs that are stored, read and deleted (UAMP §8.4.1).

A blob is checked for its declared type before it is stored. Everything here is synchronous.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING

from django.core.files.base import ContentFile
from django.db import transaction

from chat_app.contents.extents import extent_of
from chat_app.contents.filenames import clean_filename
from chat_app.contents.media_types import InvalidMedia, sniff
from chat_app.contents.quota import ContentOwner, check_quota, largest_file
from chat_app.contents.reading_rights import ContentNotFound, in_chat, owned, used_copy
from chat_app.models import Content

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


def store(
    data: bytes,
    *,
    mime_type: str,
    filename: str,
    owner: ContentOwner,
    content_id: str | None = None,
    handle: str | None = None,
    reuse: bool = False,
) -> Content:
    """Store a blob; with an id that this owner used for the same bytes, return that one.

    With `reuse` the same file, of the same owner and in use in a chat, is returned instead.

    `content_id` is the server's own choice of the id, `handle` is what a client chose: what others
    use a handle for makes no difference. Raises InvalidMedia for an empty or too large blob, a type
    that is not true, or an id that this owner used for other bytes; QuotaExceeded; OSError where
    there is no space. Then nothing was stored.
    """
    if not data:
        raise InvalidMedia("The file is empty.")
    if len(data) > (most := largest_file(owner)):
        raise InvalidMedia(f"The file is larger than {most} bytes.")
    filename = clean_filename(filename)
    mime_type = sniff(data, declared=mime_type, filename=filename)
    sha256 = hashlib.sha256(data).hexdigest()
    if (known_as := content_id or handle) is not None:
        existing = owned(known_as, owner=owner)
        if existing is not None:
            if existing.sha256 == sha256:
                return existing
            raise InvalidMedia("You used this content_id for something else.")
    if reuse and handle is None:
        known = used_copy(sha256, owner=owner, mime_type=mime_type, filename=filename)
        if known is not None:
            return known
    content = Content(
        id=content_id or uuid.uuid4(),
        handle=handle,
        sha256=sha256,
        mime_type=mime_type,
        filename=filename,
        size_bytes=len(data),
        extent=extent_of(data, mime_type),
        owner_id=owner.user_id,
        owner_key=owner.key,
    )
    try:
        with transaction.atomic():
            check_quota(owner, len(data))
            # The stored name is the id: what a client calls its file never reaches the file system.
            content.blob.save(str(content.id), ContentFile(data), save=False)
            content.save(force_insert=True)
    except BaseException:
        # A full disk keeps a part of the file, a row that was refused the whole.
        blob = content.blob
        blob.storage.delete(blob.field.generate_filename(content, str(content.id)))
        raise
    return content


def read(content: Content) -> bytes:
    """Return the bytes of a content."""
    with content.blob.open("rb") as blob:
        data: bytes = blob.read()
        return data


def discard(stored: Iterable[str], *, since: datetime) -> None:
    """Forget contents that were stored since a time for something that was not written."""
    unused = Content.objects.filter(pk__in=list(stored), created_at__gte=since, uses__isnull=True)
    for content in unused:
        content.delete()
        content.blob.delete(save=False)


def read_in_chat(content_id: str, chat_id: str) -> tuple[bytes, str]:
    """Return the bytes and type of a content that appears in a chat; raises ContentNotFound.

    An id may come from a client's own history: it need not be one of ours.
    """
    try:
        content = in_chat(str(uuid.UUID(content_id)), chat_id)
        return read(content), content.mime_type
    except (ValueError, FileNotFoundError) as error:
        raise ContentNotFound from error
