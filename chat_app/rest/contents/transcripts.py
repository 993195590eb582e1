"""REST: transcripts of stored recordings (docs/calls.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from agents_app.rest.problems import responses
from agents_app.rest.views import caller
from chat_app.rest.contents.contents import readable
from chat_app.rest.edge import RestView
from chat_app.transcripts.tasks import ask
from chat_app.transcripts.transcripts import (
    has_transcript,
    is_to_be_sent,
    known_transcript,
    seconds_of,
    transcript_of,
)

if TYPE_CHECKING:
    import uuid

    from rest_framework.request import Request


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

    def further_cost(self, request: Request) -> tuple[str, int, int] | None:
        """Count a recording that is about to be sent for the person who stored it.

        Otherwise, one person's recordings would use up the limits of the members who view them.
        Those of agents and other servers count for the caller. Raises Http404.
        """
        if not settings.UAMP_TRANSCRIPTION_URL:
            return None
        user_id = caller(request).pk
        content = readable(self.kwargs["content_id"], user_id=user_id)
        if not is_to_be_sent(content):
            return None
        return "seconds of recordings", content.owner_id or user_id, seconds_of(content)

    @extend_schema(
        operation_id="read_transcript",
        request=None,
        responses={200: TranscriptSerializer, **responses(404)},
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
        transcript = transcript_of(content, ask) if is_made else known_transcript(content)
        return Response({"state": transcript.state, "text": transcript.text})
