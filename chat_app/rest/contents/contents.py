"""Content over HTTP: files arrive as multipart, and are served so that they cannot act as a page.

UAMP §8.4.1: a caller who may not read a content learns nothing about it, and no browser ever
interprets stored bytes as a page or a script of this site.
"""

from __future__ import annotations

import asyncio
import re
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from django.conf import settings
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.response import Response

from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import Problem, refusal, responses
from agents_app.rest.views import caller
from chat_app.contents import addresses, media_types, quota, reading_rights, storage
from chat_app.rest.contents.multipart import FileParser
from chat_app.rest.edge import RestView
from chat_app.rest.paging import read_query
from chat_app.rest.serializers import ContentSerializer, NoQuery, UploadSerializer, content_data
from uamp.digital_source import AI_HEADERS

if TYPE_CHECKING:
    import uuid
    from collections.abc import AsyncIterator, Iterator

    from django.db.models.fields.files import FieldFile
    from django.http import HttpRequest
    from rest_framework.request import Request

    from chat_app.models import Content

CHUNK_BYTES: Final = 256 * 1024
# The lines around the file in a multipart body.
_MULTIPART_BYTES: Final = 64 * 1024
# Python refuses numbers of thousands of digits; this many exceed any limit.
_DIGITS: Final = 18
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_INLINE_KINDS: Final = {"audio", "video"}
_PLAIN_TYPES: Final = {"application/pdf", "text/plain"}
POLICY: Final = "sandbox; default-src 'none'"
"""A file that is opened as a page may load, run and submit nothing."""


class Part(NamedTuple):
    """A run of bytes of a file."""

    start: int
    size: int


class BlobResponse(StreamingHttpResponse):
    """Part of a stored file, read piece by piece; on an ASGI server off the event loop.

    The file is opened for the first piece, so a response that becomes a 304 opens nothing.
    """

    def __init__(self, blob: FieldFile, part: Part, **kwargs: Any) -> None:
        self._blob = blob
        self._file: IO[bytes] | None = None
        self._start, self._bytes_left = part
        super().__init__(self._pieces(), **kwargs)
        self["Content-Length"] = str(part.size)

    def close(self) -> None:
        """Close the file with the response; the server calls this however the response ends."""
        super().close()
        if self._file is not None:
            self._file.close()

    def _read(self) -> bytes:
        if self._file is None:
            self._file = self._blob.storage.open(str(self._blob.name), "rb")
            self._file.seek(self._start)
        piece = self._file.read(min(CHUNK_BYTES, self._bytes_left))
        self._bytes_left -= len(piece)
        return piece

    def _pieces(self) -> Iterator[bytes]:
        while piece := self._read():
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await asyncio.to_thread(self._read):
            yield piece


class ContentsView(RestView):
    """The files that the caller stores."""

    write_scope = "messages:write"
    takes_restricted_keys = True

    parser_classes = (FileParser,)
    throttle_scope = "uploads"

    @extend_schema(
        operation_id="create_content",
        parameters=[LOCATION],
        request={"multipart/form-data": UploadSerializer},
        responses={201: ContentSerializer, **responses(400, 403, 413, 415, 422)},
    )
    def post(self, request: Request) -> Response:
        """Store one file, whose bytes must match its type."""
        length = request.headers.get("Content-Length", "")
        if (
            length.isdecimal()
            and int(length[:_DIGITS]) > settings.UAMP_UPLOAD_BYTES + _MULTIPART_BYTES
        ):
            raise _too_large(settings.UAMP_UPLOAD_BYTES)
        body = UploadSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        upload = body.validated_data["file"]
        owner = quota.ContentOwner(user_id=caller(request).pk)
        if upload.size > (limit := quota.largest_file(owner)):
            raise _too_large(limit)
        try:
            content = storage.store(
                upload.read(),
                mime_type=upload.content_type or media_types.DEFAULT_MIME,
                filename=upload.name or "",
                owner=owner,
            )
        except quota.QuotaExceeded as error:
            raise Problem("quota_exceeded", str(error)) from error
        except media_types.InvalidMedia as error:
            raise Problem(
                "invalid_media", str(error), errors=[{"pointer": "/file", "detail": str(error)}]
            ) from error
        location = f"{request.path}/{content.pk}"
        described = content_data(content, user_id=owner.user_id)
        return Response(described, status=201, headers={"Location": location})


class ContentView(RestView):
    """The metadata of a file."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="get_content", responses={200: ContentSerializer, **responses(400, 404)}
    )
    def get(self, request: Request, content_id: uuid.UUID) -> Response:
        """Return the file's metadata, and an address that any client may read for a while."""
        read_query(request, NoQuery)
        user_id = caller(request).pk
        return Response(content_data(readable(content_id, user_id=user_id), user_id=user_id))


class BlobView(RestView):
    """The file itself."""

    read_scope = "chats:read"

    permission_classes = (AllowAny,)

    @extend_schema(
        operation_id="read_content",
        parameters=[
            OpenApiParameter("for", description="From `signed_url`."),
            OpenApiParameter("signature", description="From `signed_url`; needs no sign-in."),
            OpenApiParameter("Range", location="header", description="One range of bytes."),
        ],
        responses={
            (200, "*/*"): OpenApiTypes.BINARY,
            (206, "*/*"): OpenApiTypes.BINARY,
            **responses(404, 416),
        },
    )
    def get(self, request: Request, content_id: uuid.UUID) -> HttpResponse | StreamingHttpResponse:
        """Return the bytes, or the requested range of them."""
        return blob_response(requested(content_id, request), request)


def _too_large(limit: int) -> Problem:
    return Problem("content_too_large", f"A file may have at most {limit} bytes.")


def requested(content_id: uuid.UUID, request: Request) -> Content:
    """Return the content of a signed address, or one that the caller may read; raises Http404."""
    query = request.query_params
    reader = addresses.reader_of(content_id, query.get("for", ""), query.get("signature", ""))
    content = None if reader is None else reading_rights.behind(content_id, reader)
    return readable(content_id, user_id=request.user.pk) if content is None else content


def readable(content_id: uuid.UUID, *, user_id: int | None) -> Content:
    """Return a content that a person may read; raises Http404."""
    try:
        return reading_rights.readable(str(content_id), owner=quota.ContentOwner(user_id=user_id))
    except reading_rights.ContentNotFound as error:
        raise Http404 from error


def blob_response(
    content: Content, request: Request | HttpRequest
) -> HttpResponse | StreamingHttpResponse:
    """Return the bytes of a content, or the requested range, with headers that keep it inert."""
    etag = f'"{content.sha256}"'
    range_header = request.headers.get("Range", "")
    if request.headers.get("If-Range", etag) != etag:
        range_header = ""  # the client has the beginning of a different file
    part = _part(range_header, content.size_bytes)
    headers = _headers(content, etag)
    if part is None:
        headers["Content-Range"] = f"bytes */{content.size_bytes}"
        refused = refusal("range_not_satisfiable", instance=request.path)
        for name in ("Content-Range", "Accept-Ranges", "Content-Security-Policy"):
            if name in headers:
                refused[name] = headers[name]
        return refused
    status = 200
    if part.size != content.size_bytes:
        status = 206
        last = part.start + part.size - 1
        headers["Content-Range"] = f"bytes {part.start}-{last}/{content.size_bytes}"
    if request.method == "HEAD":
        return HttpResponse(status=status, headers={**headers, "Content-Length": str(part.size)})
    return BlobResponse(content.blob, part, status=status, headers=headers)


def _part(range_header: str, size: int) -> Part | None:
    """Return the part that a Range header requests; None if the file has no such part.

    Several ranges and other units are answered with the whole file, as RFC 9110 §14.2 allows.
    """
    match = _RANGE.fullmatch(range_header)
    if match is None or match.groups() == ("", ""):
        return Part(0, size)
    first, last = match.groups()
    if not first:
        length = min(int(last), size)
        return Part(size - length, length) if length else None
    start, end = int(first), min(int(last) if last else size - 1, size - 1)
    if last and int(last) < start:
        return Part(0, size)  # not a range
    return Part(start, end - start + 1) if start < size else None


def _headers(content: Content, etag: str) -> dict[str, str]:
    kind = content.mime_type.partition("/")[0]
    inline = content.mime_type in media_types.IMAGE_FORMATS.values() or kind in _INLINE_KINDS
    is_shown = inline or content.mime_type in _PLAIN_TYPES
    mime_type = content.mime_type if is_shown else media_types.DEFAULT_MIME
    name = content.filename or str(content.pk)
    disposition = content_disposition_header(as_attachment=not inline, filename=name)
    return {
        "Content-Type": "text/plain; charset=utf-8" if mime_type == "text/plain" else mime_type,
        "Content-Disposition": disposition or "inline",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": POLICY,
        "Accept-Ranges": "bytes",
        "ETag": etag,
        **(AI_HEADERS if content.is_made_by_agent else {}),
    }
