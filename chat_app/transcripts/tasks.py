"""Workers that send recordings for transcription (OpenAI's `audio/transcriptions`)."""

from __future__ import annotations

import logging
from typing import Any, Final

import httpx
from celery import shared_task
from django.conf import settings

from chat_app.contents import storage
from chat_app.models import Content
from chat_app.transcripts import transcripts

logger = logging.getLogger(__name__)

SECONDS: Final = 120.0
EXPIRES_SECONDS: Final = 240
ANSWER_BYTES: Final = 1024 * 1024


def ask(content_id: str) -> None:
    """Have a worker send a recording; without a broker, it is requested again later."""
    try:
        transcribe.apply_async(
            kwargs={"content_id": content_id}, retry=False, expires=EXPIRES_SECONDS
        )
    except Exception:
        logger.warning("no worker was asked for a transcript", exc_info=True)


@shared_task
def transcribe(*, content_id: str, **kwargs: Any) -> None:
    """Send a recording to the server, and store the text that it returns."""
    if kwargs:
        logger.info("ignored arguments from a newer caller: %s", ", ".join(kwargs))
    content = Content.objects.filter(pk=content_id).first()
    if content is not None:
        transcripts.keep(content_id, _text(content))


def _text(content: Content) -> str:
    """Return the text of a recording; "" if the server fails or does not respond."""
    key = settings.UAMP_TRANSCRIPTION_KEY
    kind = content.mime_type.partition("/")[2].partition(";")[0]
    name = content.filename or f"sound.{kind}"
    try:
        with (
            httpx.Client(timeout=SECONDS, trust_env=False) as client,
            client.stream(
                "POST",
                f"{settings.UAMP_TRANSCRIPTION_URL.rstrip('/')}/audio/transcriptions",
                headers={"Authorization": f"Bearer {key}"} if key else {},
                data={"model": settings.UAMP_TRANSCRIPTION_MODEL, "response_format": "json"},
                files={"file": (name, storage.read(content), content.mime_type)},
            ) as answer,
        ):
            answer.raise_for_status()
            body = b""
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > ANSWER_BYTES:
                    logger.warning("the transcript of %s is too large", content.pk)
                    return ""
            text = httpx.Response(200, content=body).json()["text"]
    except (httpx.HTTPError, OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("there is no transcript of %s: %s", content.pk, type(error).__name__)
        return ""
    return text.strip() if isinstance(text, str) else ""
