"""Transcripts, stored for everyone who may play the recordings. Synchronous."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone

from chat_app.contents.measures import UNMEASURED
from chat_app.models import Content, Message, Transcript, TranscriptState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SOUND_BYTES: Final = 25 * 1024 * 1024
"""Larger recordings are not sent: servers refuse them."""
TEXT_CHARS: Final = 50_000
REQUEST_RETRY: Final = timedelta(minutes=5)
"""A recording that no worker has sent by then is sent again."""
FAILURE_RETRY: Final = timedelta(hours=1)
"""A recording for which the server had no text is sent again after this time."""
UNDER_WAY: Final = 2
"""How many recordings of one owner are sent at once, so that workers are left for others."""
_UNMEASURED_BYTES_A_SECOND: Final = 4000
"""The rate at which a recording of unknown length counts: that of voice notes."""

_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


def has_transcript(content: Content) -> bool:
    """Return whether a content is a recording that may be sent to the server."""
    return content.mime_type.startswith("audio/") and content.size_bytes <= SOUND_BYTES


def seconds_of(content: Content) -> int:
    """Return the length of a recording in seconds, at least 1, for its owner's limit of a day."""
    if content.extent is None or content.extent >= UNMEASURED:
        return max(1, -(-content.size_bytes // _UNMEASURED_BYTES_A_SECOND))
    return max(1, -(-content.extent // 1000))


def transcript_of(
    content: Content, ask: Callable[[str], None], *, charge: Callable[[int], None]
) -> Transcript:
    """Return the transcript of a recording as far as known; `ask` has a worker send it.

    If several people view it at once, it is sent only once. Before that, `charge` counts its
    seconds, and raises to refuse it; a request that was lost on its way is not counted again. It
    waits, as `asked`, until fewer than UNDER_WAY others of its owner are being sent.
    """
    transcript = Transcript.objects.filter(pk=content.pk).first()
    now = timezone.now()
    if transcript is not None and not _is_due(transcript, now):
        return transcript
    if _is_busy(content, now):
        return Transcript(content=content, state=TranscriptState.ASKED)
    with transaction.atomic():
        Transcript.objects.get_or_create(
            pk=content.pk, defaults={"state": TranscriptState.NONE, "created_at": _LONG_AGO}
        )
        row = Transcript.objects.select_for_update(no_key=True).get(pk=content.pk)
        if _is_due(row, now):
            if row.state != TranscriptState.ASKED:
                charge(seconds_of(content))
            row.state, row.created_at = TranscriptState.ASKED, now
            row.save(update_fields=["state", "created_at"])
            transaction.on_commit(lambda: ask(str(content.pk)))
    return row


def keep(content_id: str, text: str) -> None:
    """Store the transcript of a recording; "" if the server had no text."""
    Transcript.objects.filter(content__id=content_id).update(
        state=TranscriptState.DONE if text else TranscriptState.NONE,
        text=_stored(text),
    )


def known_transcript(content: Content) -> Transcript:
    """Return the transcript of a recording as far as known, without having it sent."""
    transcript = Transcript.objects.filter(pk=content.pk).first()
    return transcript or Transcript(content=content, state=TranscriptState.NONE)


def keep_words(message_id: str, texts: Sequence[str]) -> None:
    """Store a model's transcripts of the recordings in a message, in order."""
    message = Message.objects.filter(pk=message_id).first()
    items = message.content_items if message is not None else None
    sounds = [item for item in items or () if item.get("type") == "audio"]
    for sound, text in zip(sounds, texts, strict=False):
        content = Content.objects.filter(pk=sound.get("content_id")).first()
        if content is not None and text:
            Transcript.objects.update_or_create(
                pk=content.pk,
                defaults={
                    "state": TranscriptState.DONE,
                    "text": _stored(text),
                    "created_at": timezone.now(),
                },
            )


def _stored(text: str) -> str:
    return text.replace("\0", "\ufffd")[:TEXT_CHARS]


def _is_busy(content: Content, now: datetime) -> bool:
    """Return whether UNDER_WAY recordings of the owner are being sent."""
    sent = Transcript.objects.filter(
        state=TranscriptState.ASKED,
        created_at__gt=now - REQUEST_RETRY,
        content__owner=content.owner_id,
        content__owner_key=content.owner_key,
    )
    return sent.count() >= UNDER_WAY


def _is_due(row: Transcript, now: datetime) -> bool:
    age = now - row.created_at
    if row.state == TranscriptState.DONE:
        return False
    return age > (REQUEST_RETRY if row.state == TranscriptState.ASKED else FAILURE_RETRY)
