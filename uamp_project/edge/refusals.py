"""Refusals before routing: problem documents, with the event of UAMP on UAMP's paths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agents_app.rest.problems import UNAVAILABLE_SECONDS, refusal
from sessions_app.connection.rate_limit import RateLimited
from sessions_app.transports.http_exchange import problem
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from django.http import HttpResponse

    from sessions_app.access.rates import Quota
    from uamp_project.edge.transports import Message

_PROTOCOL: Final = re.compile(r"/(?:agents/[^/]+/)?(?:events|uamp)(?:/stream)?/?")


def is_protocol(path: str) -> bool:
    """Return whether a path is an HTTP transport of UAMP."""
    return _PROTOCOL.fullmatch(path) is not None


def unread_request(*, is_too_large: bool) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of the response to an unreadable request.

    The status is 400 if it is not HTTP/1.1, and 431 if its URL and headers are too large.
    """
    code = "headers_too_large" if is_too_large else "malformed_request"
    start, content = messages(refusal(code, instance="/"), [])
    return start["status"], start["headers"], content["body"]


def body_too_large(path: str, limit: int) -> HttpResponse:
    """Return a 413 for a body above `limit` bytes."""
    message = f"The body of this request may have at most {limit} bytes."
    if is_protocol(path):
        return problem(RemoteProtocolError(ErrorCode.FRAME_TOO_LARGE, message), instance=path)
    return refusal("content_too_large", detail=message, instance=path)


def too_many_requests(path: str, quota: Quota) -> HttpResponse:
    """Return a 429 for an address that sends too many requests."""
    if is_protocol(path):
        return problem(RateLimited(quota), instance=path)
    return refusal("rate_limit_exceeded", instance=path, retry_after=quota.retry_after)


def too_many_bytes(path: str) -> HttpResponse:
    """Return a 429 for an address whose concurrent bodies are too large."""
    message = "The requests from your address are too large together. Send them one after another."
    if is_protocol(path):
        error = RemoteProtocolError(
            ErrorCode.RATE_LIMITED, message, details={"retry_after": UNAVAILABLE_SECONDS}
        )
        return problem(error, instance=path)
    return refusal(
        "rate_limit_exceeded", detail=message, instance=path, retry_after=UNAVAILABLE_SECONDS
    )


def no_scheme(path: str) -> HttpResponse:
    """Return a 400 for a request whose proxy does not say whether its client used HTTPS."""
    message = (
        "The proxy in front of this server does not send X-Forwarded-Proto, which has to be `https`"
        " for requests over TLS. Its operator has to configure it."
    )
    if is_protocol(path):
        return problem(RemoteProtocolError(ErrorCode.INVALID_EVENT, message), instance=path)
    return refusal("invalid", detail=message, instance=path)


def no_space(path: str) -> HttpResponse:
    """Return a 503 for a request when the disk is full."""
    if is_protocol(path):
        error = RemoteProtocolError(
            ErrorCode.UNAVAILABLE,
            "The server cannot store this now.",
            details={"retry_after": UNAVAILABLE_SECONDS},
        )
        return problem(error, instance=path)
    return refusal("unavailable", instance=path, retry_after=UNAVAILABLE_SECONDS)


def messages(response: HttpResponse, headers: list[tuple[bytes, bytes]]) -> tuple[Message, Message]:
    """Return the two ASGI messages of a response, with additional headers."""
    lines = [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in response.items()]
    lines.append((b"content-length", str(len(response.content)).encode()))
    start = {
        "type": "http.response.start",
        "status": response.status_code,
        "headers": [*lines, *headers],
    }
    return start, {"type": "http.response.body", "body": response.content}
