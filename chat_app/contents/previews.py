"""Previews of stored pictures that browsers do not show, drawn once per content.

A preview is a row of its content: it has the same readers, and both are deleted together. Exports
leave it out. Everything here is synchronous.
"""

from __future__ import annotations

from functools import partial

from django.db import IntegrityError, transaction

from agents_app.workers import connections
from chat_app.contents.drawing import DRAWN_TYPES, draw
from chat_app.contents.storage import read
from chat_app.models import Content, ContentPreview


def is_to_be_drawn(content: Content) -> bool:
    """Return whether the next request for a content's preview draws it."""
    if content.mime_type not in DRAWN_TYPES:
        return False
    return not ContentPreview.objects.filter(pk=content.pk).exists()


def preview_of(content: Content) -> bytes:
    """Return the preview of a content, drawn if it is the first time; empty if it has none.

    A picture that could not be drawn is not tried again. Raises DrawingBusy.
    """
    if content.mime_type not in DRAWN_TYPES:
        return b""
    row = ContentPreview.objects.filter(pk=content.pk).first()
    if row is None:
        asker = content.owner_key or str(content.owner_id)
        # Others may need the connection while this thread waits for a process.
        connections.release()
        try:
            picture = draw(partial(read, content), content.mime_type, asker=asker)
        except FileNotFoundError:
            return b""
        row = ContentPreview(content=content, data=picture)
        try:
            with transaction.atomic():
                ContentPreview.objects.bulk_create([row], ignore_conflicts=True)
        except IntegrityError:
            return b""  # the content was deleted meanwhile
    return bytes(row.data)
