"""REST: transcripts of stored recordings (docs/calls.md)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import Throttled
from rest_framework.response import Response

from agents_app.rest.problems import responses
from agents_app.rest.views import caller
from chat_app.rest.contents.contents import readable
from chat_app.rest.edge import RestView
from chat_app.transcripts.tasks import ask
from chat_app.transcripts.transcripts import (
    has_transcript,
    known_transcript,
    transcript_of,
)

if TYPE_CHECKING:
    import uuid

    from rest_framework.request import Request

    from chat_app.models import Content


class TranscriptSerializer(serializers.Serializer[Any]):
    """The transcript of a recording."""

    state = serializers.ChoiceField(
        choices=["asked", "done", "none"],
        help_text="asked: a worker is requesting it, retry in a moment; none: there is no text.",
    )
    text = serializers.CharField(allow_blank=True)


class TranscriptView(RestView):
    """The transcript of a recording."""

    write_scope = "messages:write"

    throttle_scope = "transcripts"

    @extend_schema(
        operation_id="read_transcript",
        request=None,
        responses={200: TranscriptSerializer, **responses(404, 429)},
    )
    def post(self, request: Request, content_id: uuid.UUID) -> Response:
        """Return the transcript of a recording that the caller may play, made on first request.

        On a server that makes none, it is the one written down by an agent that was spoken to.
        Other files are answered with 404.
        """
        return self.repeated(request, content_id)

    def repeated(self, request: Request, content_id: uuid.UUID) -> Response:
        """Return the transcript to those who may still play the recording."""
        content = readable(content_id, user_id=caller(request).pk)
        if not has_transcript(content):
            raise Http404
        is_made = bool(settings.UAMP_TRANSCRIPTION_URL)
        if is_made:
            transcript = transcript_of(content, ask, charge=partial(self._charge, content))
        else:
            transcript = known_transcript(content)
        return Response({"state": transcript.state, "text": transcript.text})

    def _charge(self, content: Content, seconds: int) -> None:
        """Count a recording that is about to be sent for the person who stored it.

        Otherwise, one person's recordings would use up the limits of the members who view them.
        Those of agents and other servers count for the caller. Raises Throttled.
        """
        limit: int = settings.UAMP_TRANSCRIPT_SECONDS_PER_DAY
        # A longer recording could never be sent.
        cost = max(min(seconds, limit), 1)
        user_id = content.owner_id or caller(self.request).pk
        throttles: list[Any] = self.get_throttles()
        for throttle in throttles:
            pause = throttle.charge("seconds of recordings", user_id, cost)
            if pause is not None:
                raise Throttled(pause)
