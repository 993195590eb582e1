"""REST: a chat as a file for its members, written while it is read (docs/rest.md)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from django.http import Http404, StreamingHttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from agents_app.rest.problems import responses
from agents_app.rest.views import caller
from agents_app.workers import connections
from chat_app.export.formats import FORMATS
from chat_app.export.pages import ExportStopped, pages
from chat_app.rest.edge import RestView, chats_for
from chat_app.rest.paging import read_query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Any, ClassVar

    from rest_framework.request import Request

    from chat_app.export.pages import Receipts

logger = logging.getLogger(__name__)


class ExportQuery(serializers.Serializer["Any"]):
    """The query parameters of GET /api/v1/chats/{id}/export."""

    format = serializers.ChoiceField(choices=sorted(FORMATS))


class ExportResponse(StreamingHttpResponse):
    """A file that is made page by page; in an ASGI server off the event loop."""

    def __init__(self, pieces: Iterator[bytes], **kwargs: Any) -> None:
        self._pieces = pieces
        super().__init__(pieces, **kwargs)

    def _next(self) -> bytes:
        try:
            return next(self._pieces, b"")
        finally:
            # The next piece may be made in another thread.
            connections.release()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await asyncio.to_thread(self._next):
            yield piece


class ExportView(RestView):
    """A chat as a file. The room that knows what answers cost names its `receipts`."""

    throttle_scope = "exports"

    receipts: ClassVar[Receipts]

    @extend_schema(
        operation_id="export_chat",
        parameters=[ExportQuery],
        responses={
            (200, "text/markdown"): OpenApiTypes.STR,
            (200, "application/json"): OpenApiTypes.OBJECT,
            (200, "application/x-ndjson"): OpenApiTypes.STR,
            **responses(400, 404),
        },
    )
    def get(self, request: Request, chat_id: str) -> StreamingHttpResponse:
        """Return the messages as they are now; the end of the file has their count."""
        chosen = read_query(request, ExportQuery)["format"]
        chat = chats_for(request, chat_id).first()
        if chat is None:
            raise Http404
        write, media_type, suffix = FORMATS[chosen]
        name = f"{chat.title or chat.pk}.{suffix}"
        read = pages(chat, caller(request).pk, receipts=self.receipts)
        return ExportResponse(
            _until_stopped(write(chat, read), chat.pk),
            content_type=media_type,
            headers={
                "Content-Disposition": content_disposition_header(as_attachment=True, filename=name)
                or "attachment",
                "X-Content-Type-Options": "nosniff",
            },
        )


def _until_stopped(pieces: Iterator[bytes], chat_id: str) -> Iterator[bytes]:
    """Yield the pieces of a file; it ends without its last line where its reader has left."""
    try:
        yield from pieces
    except ExportStopped:
        logger.info("the export of %s ended: its reader left the chat", chat_id)
