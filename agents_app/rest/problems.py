"""Problem documents (RFC 9457): the error responses of all JSON routes.

Every error has one of the codes below and reveals nothing of the server's internals. Programs
branch on `code`; `title` and `detail` are for people.
"""

from __future__ import annotations

import errno
import logging
import math
import re
import uuid
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from agents_app.rest.error_details import flatten
from agents_app.rest.problem_kinds import PROBLEMS
from agents_app.rest.rights import MissingRight
from telemetry import log_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest
    from rest_framework.request import Request

    from agents_app.rest.problem_kinds import ProblemKind

logger = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "/docs/problems#"
UNAVAILABLE_SECONDS: Final = 30
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def document(
    code: str, *, detail: str, instance: str, kind: ProblemKind | None = None, **members: Any
) -> dict[str, Any]:
    """Return a problem document (RFC 9457), the format of every error over HTTP.

    `kind` is looked up in PROBLEMS unless the code comes from another table.
    """
    kind = kind or PROBLEMS[code]
    return {
        "type": f"{TYPE_PREFIX}{code}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail or _remedy(kind, members.get("retry_after")),
        "instance": instance,
        "code": code,
        **members,
    }


def _remedy(kind: ProblemKind, retry_after: object) -> str:
    """Return the remedy for a problem, with the seconds to wait if they are known."""
    if retry_after is None:
        return kind.remedy
    seconds = "1 second" if retry_after == 1 else f"{retry_after} seconds"
    return kind.remedy.replace("`retry_after` seconds", seconds)


def refusal(
    code: str,
    *,
    instance: str,
    detail: str = "",
    kind: ProblemKind | None = None,
    retry_after: int | None = None,
    **members: Any,
) -> HttpResponse:
    """Return a problem as a response, outside the views of Django REST framework."""
    if retry_after is not None:
        members["retry_after"] = retry_after
    members.setdefault("request_id", log_fields.current().request_id or uuid.uuid4().hex)
    body = document(code, detail=detail, instance=instance, kind=kind, **members)
    response = HttpResponse(
        msgspec.json.encode(body), status=body["status"], content_type=MEDIA_TYPE
    )
    response["Cache-Control"] = "no-store"
    response["X-Request-ID"] = body["request_id"]
    if retry_after is not None:
        response["Retry-After"] = str(retry_after)
    if body["status"] == 401:  # noqa: PLR2004 the number names the status
        response["WWW-Authenticate"] = "Bearer"
    return response


def wrong_method(request: HttpRequest, *allowed: str, hint: str = "") -> HttpResponse:
    """Return the 405 of a path that is not a view of Django REST framework."""
    detail = f"This path takes {' and '.join(allowed)}, not {request.method}. {hint}".rstrip()
    response = refusal("method_not_allowed", instance=request.path, detail=detail)
    response["Allow"] = ", ".join(allowed)
    return response


class Problem(exceptions.APIException):
    """A refusal with a code of PROBLEMS; `errors` are `{pointer, parameter or header, detail}`.

    `kind` is for protocol codes that are not in PROBLEMS. `status` overrides the code's status;
    `members` are extension members of the document (RFC 9457 §3.2).
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        status: int | None = None,
        kind: ProblemKind | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        self.kind = kind or PROBLEMS[code]
        self.status_code = self.kind.status if status is None else status
        super().__init__(detail, code)
        self.code = code
        self.errors = errors
        self.members = members or {}


class UnknownPath(Problem):
    """There is no such path, whatever rows there are."""

    def __init__(self) -> None:
        super().__init__(
            "not_found", "No such path. The paths are in /api/schema, without a slash at the end."
        )


class ProblemErrorSerializer(serializers.Serializer[Any]):
    """One place that is wrong: a JSON pointer into the body, a query parameter, or a header."""

    pointer = serializers.CharField(required=False)
    parameter = serializers.CharField(required=False)
    header = serializers.CharField(required=False)
    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """A problem document (RFC 9457)."""

    def get_fields(self) -> dict[str, Any]:
        """Add `errors`, which as a class attribute would hide the serializer's own property."""
        return {
            **super().get_fields(),
            "errors": ProblemErrorSerializer(many=True, required=False),
        }

    type = serializers.CharField(help_text="/docs/problems#<code>")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    instance = serializers.CharField(help_text="The requested path.")
    code = serializers.CharField()
    request_id = serializers.CharField()
    retry_after = serializers.IntegerField(required=False, help_text="Seconds.")
    scope = serializers.CharField(
        required=False, help_text="With `forbidden`, the scope that the credential lacks."
    )


def responses(*statuses: int) -> dict[tuple[int, str], type[ProblemSerializer]]:
    """Return the OpenAPI entries of error responses; 401 is always included."""
    return {(code, MEDIA_TYPE): ProblemSerializer for code in (401, *statuses)}


def problem_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """Convert an exception of a view to a problem document (the exception hook of DRF).

    An unknown exception is logged with its request id and answered with `internal_error` (500).
    """
    request: Request = context["request"]
    request_id = _request_id(request)
    code = _code(error)
    if isinstance(error, Problem):
        kind = error.kind._replace(status=error.status_code)
        wait = error.members.get("retry_after")
    else:
        kind = PROBLEMS[code]
        wait = getattr(error, "wait", None)
    if code == "unavailable" and not isinstance(error, Problem):
        logger.error(
            "storage unavailable for request %s to %s", request_id, request.path, exc_info=error
        )
        wait = UNAVAILABLE_SECONDS
    if code == "internal_error":
        logger.error("request %s of %s failed", request_id, request.path, exc_info=error)
    members = dict(_members(error))
    if wait is not None:
        members["retry_after"] = math.ceil(wait)
    body = document(
        code,
        kind=kind,
        detail=_detail(error, code, request),
        instance=request.path,
        request_id=request_id,
        **members,
    )
    headers = {"X-Request-ID": request_id, "Cache-Control": "no-store"}
    if errors := _errors(error):
        body["errors"] = errors
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if isinstance(error, exceptions.MethodNotAllowed):
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    if wait is not None:
        headers["Retry-After"] = str(members["retry_after"])
    return Response(body, status=kind.status, headers=headers, content_type=MEDIA_TYPE)


def _members(error: Exception) -> Mapping[str, Any]:
    if isinstance(error, Problem):
        return error.members
    # The missing scope, so that a program can request it.
    return {"scope": error.scope} if isinstance(error, MissingRight) and error.scope else {}


def _request_id(request: Request) -> str:
    """Return the id of the request in the log.

    If no server has set one, it is the client's id or a new one.
    """
    if logged_id := log_fields.current().request_id:
        return logged_id
    header = str(request.headers.get("X-Request-ID", ""))
    return header if _REQUEST_ID.fullmatch(header) else uuid.uuid4().hex


def _code(error: Exception) -> str:
    if isinstance(error, Problem):
        return error.code
    if isinstance(error, exceptions.AuthenticationFailed) and error.get_codes() == "token_expired":
        return "token_expired"
    if is_out_of_space(error):
        return "unavailable"
    return next((code for kind, code in _CODES if isinstance(error, kind)), "internal_error")


def is_out_of_space(error: Exception) -> bool:
    """Return whether storage failed: a disk that is full, read-only or broken, or a bucket."""
    return isinstance(error, OSError) and error.errno in _NO_SPACE


def _detail(error: Exception, code: str, request: Request) -> str:
    """Return the framework's message if it helps, otherwise the remedy."""
    if isinstance(error, exceptions.NotAuthenticated) and "Authorization" in request.headers:
        return "Use the Bearer scheme: `Authorization: Bearer <API key>`."
    if isinstance(error, MissingRight):
        return str(error)
    if isinstance(error, UnknownPath):
        return str(error.detail)
    if isinstance(error, exceptions.APIException) and code not in _OWN_WORDS:
        return str(error.detail)
    return PROBLEMS[code].remedy


_CODES: Final[Sequence[tuple[type[Exception], str]]] = (
    (exceptions.ValidationError, "invalid"),
    (exceptions.ParseError, "malformed_body"),
    (exceptions.NotAuthenticated, "unauthorized"),
    (exceptions.AuthenticationFailed, "unauthorized"),
    (exceptions.PermissionDenied, "forbidden"),
    (MissingRight, "forbidden"),
    (exceptions.NotFound, "not_found"),
    (exceptions.MethodNotAllowed, "method_not_allowed"),
    (exceptions.UnsupportedMediaType, "unsupported_media_type"),
    (exceptions.Throttled, "rate_limit_exceeded"),
    (Http404, "not_found"),
    (DjangoPermissionDenied, "forbidden"),
    (RequestDataTooBig, "content_too_large"),
    (SuspiciousOperation, "malformed_body"),
    # The database is unreachable or full.
    (OperationalError, "unavailable"),
    (InterfaceError, "unavailable"),
)
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
# A 404 must not reveal whether the row is missing or foreign. The other codes give details in
# `errors` or headers.
_OWN_WORDS: Final = {
    "invalid",
    "not_found",
    "rate_limit_exceeded",
    "unavailable",
    "internal_error",
}


def _errors(error: Exception) -> list[Mapping[str, str]]:
    match error:
        case Problem(errors=errors):
            return list(errors)
        case exceptions.ValidationError(detail=detail):
            return [{"pointer": pointer, "detail": message} for pointer, message in flatten(detail)]
    return []
