"""Storing, reading and deleting blobs (UAMP §8.4.1).

A blob is checked against its declared type before it is stored. Everything here is synchronous.
"""

from __future__ import annotations

import hashlib
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.core.files.base import ContentFile
from django.db import IntegrityError, transaction

from agents_app.workers import connections
from chat_app.contents.extents import extent_of
from chat_app.contents.filenames import clean_filename
from chat_app.contents.marks.ai_marks import with_mark
from chat_app.contents.measures import UNMEASURED
from chat_app.contents.media_types import InvalidMedia, is_unchecked_picture, sniff
from chat_app.contents.quota import (
    ContentOwner,
    QuotaExceeded,
    check_quota,
    check_room,
    largest_file,
    of_any_chat_elsewhere,
    of_other_servers,
)
from chat_app.contents.reading_rights import ContentNotFound, in_chat, owned, used_copy
from chat_app.models import Content

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from django.db.models.fields.files import FieldFile


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
    """Store a blob; if this owner already used the id for the same bytes, return that content.

    A picture that an agent made is marked as such (`ai_marks`). With `reuse`, an identical file of
    the same owner in use in a chat is returned instead.
    `content_id` is an id chosen by the server, `handle` one chosen by a client; handles of other
    owners do not matter. Raises InvalidMedia for an empty or too large blob, a wrong type, or an id
    that this owner used for other bytes; QuotaExceeded; OSError if there is no space. Nothing is
    stored then. Measuring and writing may take a minute, so do not call it in a transaction.
    """
    if not data:
        raise InvalidMedia("The file is empty.")
    if len(data) > (max_bytes := largest_file(owner)):
        raise InvalidMedia(f"The file is larger than {max_bytes} bytes.")
    filename = clean_filename(filename)
    mime_type = sniff(data, declared=mime_type, filename=filename)
    if owner.is_agent:
        data = with_mark(data, mime_type)
    sha256 = hashlib.sha256(data).hexdigest()
    known_as = content_id or handle
    if (existing := _stored_as(known_as, sha256, owner=owner)) is not None:
        return existing
    if reuse and handle is None:
        copy = used_copy(sha256, owner=owner, mime_type=mime_type, filename=filename)
        if copy is not None:
            return copy
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
        check_room(owner, len(data))
        # Others may need the connection while this thread waits for a process.
        connections.release()
        content.extent = extent_of(data, mime_type, asker=owner.key or str(owner.user_id))
        with stored_file(content.blob, data), transaction.atomic():
            check_quota(owner, len(data))
            content.save(force_insert=True)
    except (IntegrityError, QuotaExceeded):
        # A concurrent request may have stored it.
        if (existing := _stored_as(known_as, sha256, owner=owner)) is not None:
            return existing
        raise
    return content


def _stored_as(known_as: str | None, sha256: str, *, owner: ContentOwner) -> Content | None:
    existing = None if known_as is None else owned(known_as, owner=owner)
    if existing is not None and existing.sha256 != sha256:
        raise InvalidMedia("You used this content_id for something else.")
    return existing


@contextmanager
def stored_file(blob: FieldFile, data: bytes) -> Iterator[None]:
    """Write a file, and delete it if the block fails, which writes its row.

    The name is random: a client's file name never reaches the file system, and a file that is
    deleted here is no one else's.
    """
    # Others may need the connection while the disk or the bucket takes the file.
    connections.release()
    name = blob.field.generate_filename(blob.instance, uuid.uuid4().hex)
    try:
        blob.name = blob.storage.save(name, ContentFile(data), max_length=blob.field.max_length)
        yield
    except BaseException:
        # A full disk leaves a part of the file behind.
        blob.storage.delete(blob.name or name)
        raise


def read(content: Content) -> bytes:
    """Return the bytes of a content."""
    with content.blob.open("rb") as blob:
        data: bytes = blob.read()
        return data


def discard(stored: Iterable[str], *, since: datetime) -> None:
    """Delete contents stored since a time for something that was not written after all."""
    unused = Content.objects.filter(pk__in=list(stored), created_at__gte=since, uses__isnull=True)
    for content in unused:
        content.delete()
        content.blob.delete(save=False)


def keep_for_chat(content_ids: Iterable[str], chat_id: str) -> None:
    """Let files from other servers belong to the chat that shows them, and to no person."""
    rows = Content.objects.filter(pk__in=list(content_ids), uses__chat_id=chat_id)
    rows.update(owner=None, owner_key=of_other_servers(chat_id).key)


def delete_unshown(before: datetime, limit: int) -> int:
    """Delete files from other servers that no message came to show; return how many."""
    rows = Content.objects.filter(of_any_chat_elsewhere(), created_at__lt=before, uses__isnull=True)
    unshown = list(rows.order_by("created_at")[:limit])
    for content in unshown:
        content.delete()
        content.blob.delete(save=False)
    return len(unshown)


def read_in_chat(content_id: str, chat_id: str, *, is_paid: bool = False) -> tuple[bytes, str]:
    """Return the bytes and type of a content that appears in a chat; raises ContentNotFound.

    The id may come from a client's own history and need not be ours. With `is_paid`, a content is
    not found if there is no bound for how much of it a model counts: a picture that could not be
    checked is measured as a file, and models read it as a picture.
    """
    try:
        content = in_chat(str(uuid.UUID(content_id)), chat_id)
        if is_paid and content.extent == UNMEASURED:
            raise ContentNotFound
        data = read(content)
    except (ValueError, FileNotFoundError) as error:
        raise ContentNotFound from error
    if is_paid and is_unchecked_picture(data, content.mime_type):
        raise ContentNotFound
    return data, content.mime_type
