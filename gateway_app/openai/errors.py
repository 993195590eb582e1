"""Errors in the format of OpenAI's API, shared by all of its dialects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from uamp import ErrorCode, RemoteProtocolError
from uamp.errors.http_status import http_status

if TYPE_CHECKING:
    from uamp.events.server import ErrorDetail

_SERVER_FAILED: Final = 500
_KINDS: Final = {
    401: "authentication_error",
    402: "payment_required",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class OpenAIError(msgspec.Struct, frozen=True, kw_only=True):
    """An error: `param` names the place in the request, `code` is UAMP's or OpenAI's."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a refusal, and the data that ends a broken stream."""

    error: OpenAIError


def refused(param: str, message: str, code: ErrorCode = ErrorCode.INVALID_EVENT) -> Exception:
    """Return the refusal of one part of a request, such as `messages[0].content`."""
    return RemoteProtocolError(code, message, details={"param": param})


def unsupported(param: str, message: str) -> Exception:
    """Return the refusal of a parameter that no agent of this server supports."""
    return refused(param, message, ErrorCode.UNSUPPORTED_PARAMETER)


def error_body(error: RemoteProtocolError | ErrorDetail) -> ErrorBody:
    """Convert an error to OpenAI's format.

    `openai_code` in its details overrides the code, for clients that look for one of OpenAI's.
    """
    details = error.details or {}
    status = http_status(ErrorCode(error.code))
    fallback = "server_error" if status >= _SERVER_FAILED else "invalid_request_error"
    return ErrorBody(
        error=OpenAIError(
            message=error.message,
            type=_KINDS.get(status, fallback),
            param=_param_of(details),
            code=str(details.get("openai_code") or error.code),
        )
    )


def failed(error: ErrorDetail) -> RemoteProtocolError:
    """Convert the failure of a response to the error that answers its request."""
    return RemoteProtocolError(ErrorCode(error.code), error.message, details=error.details)


def _param_of(details: dict[str, Any]) -> str | None:
    """Return the request parameter that an error names, or the first of several."""
    named = details.get("param") or next(iter(details.get("parameters") or ()), None)
    return None if named is None else str(named)
