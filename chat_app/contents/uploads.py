"""Files uploaded in parts: starting, continuing, completing and deleting. Synchronous.

The whole length counts against the owner's quota from the start. Parts are separate files, so that
any storage can hold them.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from chat_app.contents.filenames import clean_filename
from chat_app.contents.media_types import DEFAULT_MIME, InvalidMedia
from chat_app.contents.quota import ContentOwner, QuotaExceeded, check_quota, largest_file
from chat_app.contents.storage import store, stored_file
from chat_app.models import Upload, UploadPart

if TYPE_CHECKING:
    import uuid

    from chat_app.models import Content

OPEN_UPLOADS: Final = 20
"""How many uploads of one person may be in progress at once."""
PARTS: Final = 1_000
"""The most parts of an upload."""


class WrongOffset(Exception):
    """The part does not continue the upload, whose actual length is `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"The upload has {offset} bytes.")
        self.offset = offset


def begin(*, user_id: int, length: int, filename: str, mime_type: str) -> Upload:
    """Start an upload; raises InvalidMedia for a bad length, QuotaExceeded if there is no room."""
    max_bytes = largest_file(ContentOwner(user_id=user_id))
    if not 0 < length <= max_bytes:
        raise InvalidMedia(f"A file must have 1 to {max_bytes} bytes.")
    with transaction.atomic():
        # Locks the person's row, so that concurrent uploads are counted one after the other.
        check_quota(ContentOwner(user_id=user_id), 0)
        unfinished = Upload.objects.filter(owner_id=user_id, content__isnull=True)
        if unfinished.count() >= OPEN_UPLOADS:
            raise QuotaExceeded(f"At most {OPEN_UPLOADS} uploads may be in progress at once.")
        promised = unfinished.aggregate(bytes=Sum("length"))["bytes"] or 0
        check_quota(ContentOwner(user_id=user_id), promised + length)
        return Upload.objects.create(
            owner_id=user_id,
            length=length,
            filename=clean_filename(filename),
            mime_type=mime_type or DEFAULT_MIME,
            expires_at=timezone.now() + timedelta(hours=settings.UAMP_UPLOAD_HOURS),
        )


def find(upload_id: uuid.UUID, *, user_id: int) -> Upload | None:
    """Return a person's own upload, unless it has expired."""
    rows = Upload.objects.filter(pk=upload_id, owner_id=user_id, expires_at__gt=timezone.now())
    return rows.first()


def add_part(upload_id: uuid.UUID, *, offset: int, data: bytes) -> Upload:
    """Append bytes at an offset; the last ones complete the content.

    Raises WrongOffset if the upload does not end there, InvalidMedia for more bytes than announced
    and for an invalid file, whose upload is deleted, and Upload.DoesNotExist if it was deleted.
    """
    upload = Upload.objects.get(pk=upload_id)
    _check_fits(upload, offset, data)
    if data:
        upload = _append(upload, data)
    return _finish(upload) if upload.offset == upload.length else upload


def _check_fits(upload: Upload, offset: int, data: bytes) -> None:
    if upload.offset != offset:
        raise WrongOffset(upload.offset)
    if offset + len(data) > upload.length:
        raise InvalidMedia(
            f"This goes past the end of the upload, which has {upload.length} bytes."
        )


def _append(upload: Upload, data: bytes) -> Upload:
    part = UploadPart(upload=upload, start=upload.offset)
    with stored_file(part.blob, data), transaction.atomic():
        upload = Upload.objects.select_for_update(no_key=True).get(pk=upload.pk)
        _check_fits(upload, part.start, data)
        if upload.parts.count() >= PARTS:
            raise InvalidMedia(
                f"An upload may have at most {PARTS} parts. Start again with larger ones."
            )
        part.save(force_insert=True)
        upload.offset += len(data)
        upload.save(update_fields=["offset"])
    return upload


def _finish(upload: Upload) -> Upload:
    """Store the content of a complete upload; doing so twice has no effect."""
    if upload.content_id is None:
        data = _joined(upload)
        if len(data) < upload.length:
            # Another request has completed or deleted the upload.
            upload.refresh_from_db()
        if upload.content_id is None:
            upload.content = _stored(upload, data)
            Upload.objects.filter(pk=upload.pk).update(content=upload.content)
    _delete_parts(upload.pk)
    return upload


def _joined(upload: Upload) -> bytes:
    """Return the bytes of the parts; fewer if they are being deleted."""
    data = bytearray()
    # The part's file is deleted after its row.
    with suppress(FileNotFoundError):
        for part in upload.parts.order_by("start"):
            with part.blob.open("rb") as blob:
                data += blob.read()
    return bytes(data)


def _stored(upload: Upload, data: bytes) -> Content:
    if len(data) < upload.length:
        delete(upload.pk)
        raise InvalidMedia("The file was deleted. Upload it again.")
    try:
        return store(
            data,
            mime_type=upload.mime_type,
            filename=upload.filename,
            owner=ContentOwner(user_id=upload.owner_id),
            # Requests that complete the upload at once store one content.
            content_id=str(upload.pk),
        )
    except InvalidMedia:
        delete(upload.pk)
        raise


def delete(upload_id: uuid.UUID) -> None:
    """Delete an upload with its parts; a content stored from it stays."""
    with transaction.atomic():
        # A part that is arriving is refused after this, and its file deleted.
        upload = Upload.objects.select_for_update(no_key=True).filter(pk=upload_id).first()
        if upload is not None:
            _delete_parts(upload_id)
            upload.delete()


def _delete_parts(upload_id: uuid.UUID) -> None:
    parts = list(UploadPart.objects.filter(upload_id=upload_id))
    UploadPart.objects.filter(pk__in=[part.pk for part in parts]).delete()
    for part in parts:
        transaction.on_commit(partial(part.blob.delete, save=False))


def forget_expired(*, limit: int) -> int:
    """Delete at most `limit` expired uploads; return how many."""
    expired = Upload.objects.filter(expires_at__lte=timezone.now()).order_by("expires_at")
    ids = list(expired.values_list("pk", flat=True)[:limit])
    for upload_id in ids:
        delete(upload_id)
    return len(ids)
