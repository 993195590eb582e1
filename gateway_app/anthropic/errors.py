"""Errors in the format of Anthropic's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uamp import ErrorCode
from uamp.errors.http_status import http_status

if TYPE_CHECKING:
    from uamp import RemoteProtocolError
    from uamp.events.server import ErrorDetail

_SERVER_FAILED: Final = 500
_KINDS: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def error_body(error: RemoteProtocolError | ErrorDetail) -> dict[str, Any]:
    """Convert an error to Anthropic's format; `code` is an addition, the code of UAMP.

    The message begins with the place of the mistake, for which the format has no member.
    """
    place = (error.details or {}).get("param")
    status = http_status(ErrorCode(error.code))
    fallback = "api_error" if status >= _SERVER_FAILED else "invalid_request_error"
    return {
        "type": "error",
        "error": {
            "type": _KINDS.get(status, fallback),
            "message": f"{place}: {error.message}" if place else error.message,
            "code": str(error.code),
        },
    }
