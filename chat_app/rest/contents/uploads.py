"""REST: files in parts with tus 1.0 and its creation, expiration and termination extensions.

A client that lost its connection asks how much has arrived (HEAD) and resumes from there.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import Http404
from django.utils.http import http_date
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import Problem, responses
from agents_app.rest.views import caller
from chat_app.contents import uploads
from chat_app.contents.media_types import InvalidMedia
from chat_app.contents.quota import ContentOwner, QuotaExceeded, largest_file
from chat_app.models import Upload
from chat_app.rest.edge import RestView
from chat_app.rest.paging import read_query
from chat_app.rest.serializers import ContentSerializer, NoQuery, content_data
from uamp.types.inline_media import decode_base64

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from rest_framework.request import Request

VERSION: Final = "1.0.0"
PART_TYPE: Final = "application/offset+octet-stream"
_DIGITS: Final = 18
_METADATA_CHARS: Final = 4_000


class PartParser(BaseParser):
    """The bytes of a part, at most UAMP_BODY_BYTES."""

    media_type = PART_TYPE

    def parse(  # type: ignore[override]  # a part is bytes, and no mapping
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002 required by the interface
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002 required by the interface
    ) -> bytes:
        """Return the bytes; raises Problem content_too_large."""
        size = settings.UAMP_BODY_BYTES
        data: bytes = stream.read(size + 1)
        if len(data) > size:
            raise Problem("content_too_large", f"A part may have at most {size} bytes.")
        return data


class UploadedSerializer(serializers.Serializer[Any]):
    """An upload; `content` is the file, once it is complete."""

    id = serializers.CharField()
    length = serializers.IntegerField()
    offset = serializers.IntegerField(help_text="The number of bytes received.")
    expires_at = serializers.DateTimeField()
    content = ContentSerializer(allow_null=True)


def _header(name: str, description: str, *, required: bool = True) -> OpenApiParameter:
    return OpenApiParameter(
        name, location="header", required=required, description=description, type=str
    )


_RESUMABLE: Final = _header("Tus-Resumable", f"{VERSION}, the version of tus.")


class TusView(RestView):
    """A path of tus: each response names its version."""

    read_scope = "chats:read"
    write_scope = "messages:write"
    throttle_scope = "uploads"
    takes_restricted_keys = True
    parser_classes = (PartParser,)
    _largest: int | None = None
    """The caller's limit; None if the request was refused before the caller was known."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Read the caller's limit, once the request is admitted."""
        super().initial(request, *args, **kwargs)
        self._largest = largest_file(ContentOwner(user_id=caller(request).pk))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add the version and the limit, which is the server's if the request was refused."""
        done = super().finalize_response(request, response, *args, **kwargs)
        done["Tus-Resumable"], done["Tus-Version"] = VERSION, VERSION
        done["Tus-Extension"] = "creation,expiration,termination"
        largest = settings.UAMP_UPLOAD_BYTES if self._largest is None else self._largest
        done["Tus-Max-Size"] = str(largest)
        return done


class UploadsView(TusView):
    """The files that the caller sends in parts."""

    @extend_schema(
        operation_id="create_upload",
        parameters=[
            _RESUMABLE,
            _header("Upload-Length", "The size of the whole file, in bytes."),
            _header(
                "Upload-Metadata",
                "`filename` and `filetype`, each with its value in base64, separated by a comma.",
                required=False,
            ),
            LOCATION,
        ],
        request=None,
        responses={201: UploadedSerializer, **responses(400, 403, 412, 413, 415, 422)},
    )
    def post(self, request: Request) -> Response:
        """Start an upload; its address is in `Location`."""
        _check_version(request)
        length = _number(request, "Upload-Length")
        metadata = _metadata(request.headers.get("Upload-Metadata", ""))
        try:
            upload = uploads.begin(
                user_id=caller(request).pk,
                length=length,
                filename=metadata.get("filename", ""),
                mime_type=metadata.get("filetype", "")[:127],
            )
        except InvalidMedia as error:
            raise _refusal(error) from error
        location = f"/api/v1/uploads/{upload.pk}"
        return Response(_data(upload), status=201, headers={**_place(upload), "Location": location})


class UploadView(TusView):
    """One upload."""

    @extend_schema(
        operation_id="get_upload",
        responses={200: UploadedSerializer, **responses(400, 404)},
    )
    def get(self, request: Request, upload_id: uuid.UUID) -> Response:
        """Return the progress; HEAD returns only `Upload-Offset` and `Upload-Length`."""
        read_query(request, NoQuery)
        upload = _upload_of(request, upload_id)
        return Response(_data(upload), headers={**_place(upload), "Cache-Control": "no-store"})

    def head(self, request: Request, upload_id: uuid.UUID) -> Response:
        """Return the offset at which to resume."""
        return self.get(request, upload_id)

    @extend_schema(
        operation_id="continue_upload",
        parameters=[_RESUMABLE, _header("Upload-Offset", "The offset of the first byte.")],
        request={PART_TYPE: OpenApiTypes.BINARY},
        responses={204: None, **responses(400, 403, 404, 409, 412, 413, 415, 422)},
    )
    def patch(self, request: Request, upload_id: uuid.UUID) -> Response:
        """Append bytes; the last ones complete the content, whose id is in `X-Content-Id`."""
        _upload_of(request, upload_id)
        _check_version(request)
        offset = _number(request, "Upload-Offset")
        # An empty body has no type by which to choose a parser.
        data: Any = request.data or b""
        try:
            upload = uploads.add_part(upload_id, offset=offset, data=data)
        except uploads.WrongOffset as error:
            raise Problem("wrong_offset", str(error), members={"offset": error.offset}) from error
        except InvalidMedia as error:
            raise _refusal(error) from error
        except Upload.DoesNotExist as error:
            raise Http404 from error
        headers = _place(upload)
        if upload.content_id is not None:
            headers["X-Content-Id"] = str(upload.content_id)
        return Response(status=204, headers=headers)

    @extend_schema(
        operation_id="cancel_upload",
        parameters=[_RESUMABLE],
        responses={204: None, **responses(403, 404, 412)},
    )
    def delete(self, request: Request, upload_id: uuid.UUID) -> Response:
        """Delete the parts that have arrived; a completed file stays."""
        upload = _upload_of(request, upload_id)
        _check_version(request)
        uploads.delete(upload.pk)
        return Response(status=204)


def _upload_of(request: Request, upload_id: uuid.UUID) -> Upload:
    upload = uploads.find(upload_id, user_id=caller(request).pk)
    if upload is None:
        raise Http404
    return upload


def _check_version(request: Request) -> None:
    """Refuse other versions of tus."""
    if request.headers.get("Tus-Resumable") != VERSION:
        raise Problem("precondition_failed", f"Send `Tus-Resumable: {VERSION}`.")


def _number(request: Request, name: str) -> int:
    text = request.headers.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise ValidationError({name: "This header must be a number of bytes."})
    return int(text)


def _metadata(text: str) -> dict[str, str]:
    """Return the pairs of `Upload-Metadata`; raises ValidationError."""
    if len(text) > _METADATA_CHARS:
        raise ValidationError({"Upload-Metadata": f"At most {_METADATA_CHARS} characters."})
    pairs = {}
    try:
        for pair in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = pair.partition(" ")
            pairs[name] = decode_base64(value).decode()
    except ValueError as error:
        raise ValidationError({"Upload-Metadata": "Names and values in base64."}) from error
    return pairs


def _refusal(error: InvalidMedia) -> Problem:
    code = "quota_exceeded" if isinstance(error, QuotaExceeded) else "invalid_media"
    return Problem(code, str(error))


def _place(upload: Upload) -> dict[str, str]:
    return {
        "Upload-Offset": str(upload.offset),
        "Upload-Length": str(upload.length),
        "Upload-Expires": http_date(upload.expires_at.timestamp()),
    }


def _data(upload: Upload) -> dict[str, Any]:
    content = upload.content
    return {
        "id": str(upload.pk),
        "length": upload.length,
        "offset": upload.offset,
        "expires_at": upload.expires_at,
        "content": content and content_data(content, user_id=upload.owner_id),
    }
