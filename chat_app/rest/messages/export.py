"""REST: a chat as a file for its members, written while it is read (docs/rest.md)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from django.http import Http404, StreamingHttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from agents_app.rest.problems import responses
from agents_app.rest.views import caller
from agents_app.workers import connections
from chat_app.conversation.reactions import reactions_of
from chat_app.export.formats import FORMATS, json, ndjson
from chat_app.export.log_lines import log_lines
from chat_app.export.pages import ExportStopped, pages
from chat_app.rest.edge import RestView, chats_for
from chat_app.rest.paging import SEQ_MAX, read_query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import Any, ClassVar

    from rest_framework.request import Request

    from chat_app.export.pages import FailedAnswers, Receipts

logger = logging.getLogger(__name__)

_WITH_LOG: Final = {"json": json, "ndjson": ndjson}
"""The formats that can include the log."""


class ExportQuery(serializers.Serializer["Any"]):
    """The query parameters of GET /api/v1/chats/{id}/export."""

    format = serializers.ChoiceField(choices=sorted(FORMATS))
    log = serializers.BooleanField(
        required=False,
        help_text="Whether NDJSON or JSON includes the log with its hash chain and signed head.",
    )
    after = serializers.IntegerField(
        min_value=0,
        max_value=SEQ_MAX,
        default=0,
        help_text="Only messages with a larger `seq`, to resume an export that was cut off.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse the log in formats that cannot include it."""
        if attrs.get("log") and attrs["format"] not in _WITH_LOG:
            raise serializers.ValidationError({"log": "Only NDJSON and JSON can include the log."})
        return attrs


class ExportResponse(StreamingHttpResponse):
    """A file that is written page by page; on an ASGI server off the event loop."""

    def __init__(self, pieces: Iterator[bytes], **kwargs: Any) -> None:
        self._pieces = pieces
        super().__init__(pieces, **kwargs)

    def _next(self) -> bytes:
        try:
            return next(self._pieces, b"")
        finally:
            # The next piece may be written in another thread.
            connections.release()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await asyncio.to_thread(self._next):
            yield piece


class RequestAdmission(Protocol):
    """Checks whether the credential of a request is still valid."""

    def __call__(self, request: Request) -> bool:
        """Return whether it is."""


class ExportView(RestView):
    """A chat as a file.

    The app that runs answers and admits clients sets `receipts`, `failures` and `is_admitted`.
    """

    read_scope = "chats:read"

    throttle_scope = "exports"

    receipts: ClassVar[Receipts]
    failures: ClassVar[FailedAnswers]
    is_admitted: ClassVar[RequestAdmission]

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
        """Return the current messages; the file ends with their count."""
        query = read_query(request, ExportQuery)
        chosen = query["format"]
        chat = chats_for(request, chat_id).first()
        if chat is None:
            raise Http404
        write, media_type, suffix = FORMATS[chosen]
        name = f"{chat.title or chat.pk}.{suffix}"
        reader = caller(request).pk
        read = pages(
            chat, reader, receipts=self.receipts, failures=self.failures, after=query["after"]
        )
        read = _with_reactions(read, reader)
        if query.get("log"):
            write = partial(_WITH_LOG[chosen], log=log_lines(chat.pk, reader))
        return ExportResponse(
            _until_stopped(write(chat, read), chat.pk, partial(self.is_admitted, request)),
            content_type=media_type,
            headers={
                "Content-Disposition": content_disposition_header(as_attachment=True, filename=name)
                or "attachment",
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
            },
        )


def _with_reactions(
    read: Iterator[list[dict[str, Any]]], reader: int
) -> Iterator[list[dict[str, Any]]]:
    """Yield pages whose messages have their `reactions`, where there are any."""
    for page in read:
        by_message = reactions_of([message["id"] for message in page], reader)
        for message in page:
            if reactions := by_message.get(message["id"]):
                message["reactions"] = [
                    {name: reaction[name] for name in ("emoji", "count", "users")}
                    for reaction in reactions
                ]
        yield page


def _until_stopped(
    pieces: Iterator[bytes], chat_id: str, is_admitted: Callable[[], bool]
) -> Iterator[bytes]:
    """Yield the pieces of a file; the last line is missing if the reader loses access meanwhile.

    Readers lose access by leaving the chat, or when their credential is no longer valid.
    """
    try:
        for piece in pieces:
            if not is_admitted():
                logger.info("the export of %s ended: its reader's credential ended", chat_id)
                return
            yield piece
    except ExportStopped:
        logger.info("the export of %s ended: its reader left the chat", chat_id)
