"""What is said in a sound, kept for all who may hear it. Synchronous."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone

from chat_app.models import Content, Transcript, TranscriptState

if TYPE_CHECKING:
    from collections.abc import Callable

SOUND_BYTES: Final = 25 * 1024 * 1024
"""A larger sound is not sent: servers take no more."""
TEXT_CHARS: Final = 50_000
ASKED_AGAIN: Final = timedelta(minutes=5)
"""A sound that no worker has sent by then is sent again."""
TRIED_AGAIN: Final = timedelta(hours=1)
"""A sound of which the server had no text is sent again after this time."""

_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


def has_transcript(content: Content) -> bool:
    """Return whether a content is a sound that is sent to the server."""
    return content.mime_type.startswith("audio/") and content.size_bytes <= SOUND_BYTES


def transcript_of(content: Content, ask: Callable[[str], None]) -> Transcript:
    """Return what is known of what is said in a sound; `ask` has a worker send it.

    Of several who look at it at once, one has it sent.
    """
    known = Transcript.objects.filter(pk=content.pk).first()
    now = timezone.now()
    if known is not None and not _is_due(known, now):
        return known
    with transaction.atomic():
        Transcript.objects.get_or_create(
            pk=content.pk, defaults={"state": TranscriptState.NONE, "created_at": _LONG_AGO}
        )
        row = Transcript.objects.select_for_update(no_key=True).get(pk=content.pk)
        if _is_due(row, now):
            row.state, row.created_at = TranscriptState.ASKED, now
            row.save(update_fields=["state", "created_at"])
            transaction.on_commit(lambda: ask(str(content.pk)))
    return row


def keep(content_id: str, text: str) -> None:
    """Keep what is said in a sound; "" where the server had no text."""
    Transcript.objects.filter(content__id=content_id).update(
        state=TranscriptState.DONE if text else TranscriptState.NONE,
        text=text.replace("\0", "\ufffd")[:TEXT_CHARS],
    )


def _is_due(row: Transcript, now: datetime) -> bool:
    age = now - row.created_at
    if row.state == TranscriptState.DONE:
        return False
    return age > (ASKED_AGAIN if row.state == TranscriptState.ASKED else TRIED_AGAIN)
