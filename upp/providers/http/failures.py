"""Failures between this library and a model server, as UPPError (UPP-1.3 §4.4).

A server's own error code takes precedence over its HTTP status, and no message contains the key.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from upp.errors import ErrorCode, UPPError, code_for_status
from upp.providers.http.connections import HeaderError
from upp.providers.http.sse import EventTooLongError

MAX_RETRY_AFTER = 3600.0
# OpenAI and most others, Anthropic, Azure.
_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "apim-request-id")
_REQUEST_ID = re.compile(r"[!-~]{1,100}")
_MESSAGE_CHARS = 500

# The codes of OpenAI (`code`), Anthropic (`type`) and Google (`status`, `reason`) do not collide.
_CODES = {
    "context_length_exceeded": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "exceed_context_size_error": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "insufficient_quota": ErrorCode.QUOTA_EXCEEDED,
    "model_not_found": ErrorCode.MODEL_NOT_FOUND,
    "content_filter": ErrorCode.CONTENT_FILTERED,
    "content_policy_violation": ErrorCode.CONTENT_FILTERED,
    "rate_limit_exceeded": ErrorCode.RATE_LIMITED,
    "invalid_api_key": ErrorCode.AUTHENTICATION_FAILED,
    "authentication_error": ErrorCode.AUTHENTICATION_FAILED,
    "permission_error": ErrorCode.AUTHENTICATION_FAILED,
    "billing_error": ErrorCode.QUOTA_EXCEEDED,
    "not_found_error": ErrorCode.MODEL_NOT_FOUND,
    "request_too_large": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "rate_limit_error": ErrorCode.RATE_LIMITED,
    "timeout_error": ErrorCode.TIMEOUT,
    "API_KEY_INVALID": ErrorCode.AUTHENTICATION_FAILED,
    "UNAUTHENTICATED": ErrorCode.AUTHENTICATION_FAILED,
    "PERMISSION_DENIED": ErrorCode.AUTHENTICATION_FAILED,
    "NOT_FOUND": ErrorCode.MODEL_NOT_FOUND,
    "RESOURCE_EXHAUSTED": ErrorCode.RATE_LIMITED,
    "DEADLINE_EXCEEDED": ErrorCode.TIMEOUT,
}
# Servers without a code for these report invalid requests and explain in the text.
_SAYINGS = {
    "prompt is too long": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "maximum context length": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "exceed context limit": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "available context size": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "exceeds the maximum number of tokens": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "credit balance is too low": ErrorCode.QUOTA_EXCEEDED,
}

# Errors whose numbers are not system error numbers.
_OTHER_NUMBERS = (aiohttp.ClientConnectorDNSError, aiohttp.ClientConnectorSSLError)
# The possible beginnings of an event stream.
_LINES = (b":", b"data", b"event", b"id", b"retry")


@dataclass(frozen=True, kw_only=True)
class Failures:
    """Creates the errors of one request; `url` is its address."""

    provider: str
    key: str | None = field(default=None, repr=False)
    url: str = field(default="", repr=False)

    def error(
        self,
        message: str,
        code: ErrorCode,
        *,
        status_code: int | None = None,
        retry_after: float | None = None,
    ) -> UPPError:
        """Return an error without the key and with at most 500 characters."""
        if self.key:
            message = message.replace(self.key, "***")
        return UPPError(
            message[:_MESSAGE_CHARS],
            code=code,
            provider=self.provider,
            status_code=status_code,
            retry_after=retry_after,
        )

    def of_stream(self, facts: Any) -> UPPError:
        """Return the error that a server sent in the middle of its stream."""
        message, words, retry_after = _parse(facts)
        return self.error(message, _code(message, words, _status(words)), retry_after=retry_after)

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> UPPError:
        """Return the error of a failed response, with its request id and Retry-After."""
        facts = _facts(body)
        if isinstance(facts, list) and facts:
            facts = facts[0]
        if isinstance(facts, dict):
            facts = facts.get("error") or facts
        message, words, retry_after = _parse(facts)
        header_delay = _retry_after(headers)
        error = self.error(
            f"HTTP {status}: {message}",
            _code(message, words, status),
            status_code=status,
            retry_after=retry_after if header_delay is None else header_delay,
        )
        error.request_id = request_id_of(headers)
        return error

    def no_stream(self, body: bytes) -> UPPError:
        """Return the error of a successful response without events: a page, JSON or nothing."""
        if not body.strip() or body.lstrip().startswith(_LINES):
            message = "The answer was cut off before its end."
            return self.error(message, ErrorCode.NETWORK_ERROR)
        facts = _facts(body)
        if isinstance(facts, dict) and facts.get("error"):
            return self.of_stream(facts["error"])
        text = body.decode(errors="replace")
        message = f"The server did not stream an answer but sent: {text}"
        return self.error(message, ErrorCode.INVALID_RESPONSE)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Convert errors of the transport and the decoders to UPPError."""
        try:
            yield
        except Exception as error:
            self.raise_for(error)
            raise

    def raise_for(self, error: Exception) -> None:
        """Raise a UPPError for errors of the transport and the decoders; return for others."""
        match error:
            case HeaderError():
                # Headers contain keys.
                message = "A header of the request has invalid characters."
                raise self.error(message, ErrorCode.INVALID_REQUEST) from None
            case TimeoutError():
                message = (
                    f"The server{_at(self.url)} was silent for too long: {type(error).__name__}"
                )
                raise self.error(message, ErrorCode.TIMEOUT) from error
            case aiohttp.ClientError() | OSError():
                message = f"The connection to the server{_at(self.url)} failed: {_reason(error)}"
                raise self.error(message, ErrorCode.NETWORK_ERROR) from error
            case EventTooLongError():
                message = "The server sent an event without an end."
                raise self.error(message, ErrorCode.INVALID_RESPONSE) from error
            case msgspec.DecodeError() | UnicodeDecodeError() | RecursionError():
                message = f"The server sent an invalid piece of an answer: {error}"
                raise self.error(message, ErrorCode.INVALID_RESPONSE) from error


def request_id_of(headers: Mapping[str, str]) -> str:
    """Return the id that a server gave a request, or "" if it sent none that can be stored."""
    values = (headers.get(name, "") for name in _REQUEST_ID_HEADERS)
    return next((value for value in values if _REQUEST_ID.fullmatch(value)), "")


def _at(url: str) -> str:
    """Return ` at <scheme>://<host>:<port>`; the rest of a URL may contain a key."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return ""
    if not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f" at {parts.scheme}://{host}" + (f":{port}" if port else "")


def _reason(error: Exception) -> str:
    """Return the class of an error and the system's message for it.

    aiohttp's own messages contain addresses and headers, which may be internal or contain keys.
    """
    kind = type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"{kind}: {error.certificate_error}"
    if not isinstance(error, OSError) or not error.errno:
        return kind
    text = error.strerror if isinstance(error, _OTHER_NUMBERS) else os.strerror(error.errno)
    return f"{kind}: {text}"


def _parse(facts: Any) -> tuple[str, list[str], float | None]:
    """Return an error's message, codes and retry time, in all formats that servers use."""
    if not isinstance(facts, dict):
        return str(facts), [], None
    message = str(facts.get("message") or facts.get("detail") or "no message")
    words = [facts.get("code"), facts.get("type"), facts.get("status")]
    retry_after = None
    details = facts.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            words.insert(0, detail.get("reason"))
            delay = str(detail.get("retryDelay", ""))
            if delay.endswith("s"):
                retry_after = _seconds(delay[:-1])
    return message, [str(word) for word in words if isinstance(word, str | int)], retry_after


def _facts(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body.decode(errors="replace")


def _code(message: str, words: list[str], status: int | None) -> ErrorCode:
    code = next((_CODES[word] for word in words if word in _CODES), None)
    if code is None:
        code = ErrorCode.PROVIDER_ERROR if status is None else code_for_status(status)
    if code == ErrorCode.INVALID_REQUEST:
        return next((_SAYINGS[saying] for saying in _SAYINGS if saying in message), code)
    return code


def _status(words: list[str]) -> int | None:
    """Return the HTTP status that an error without a status implies, if any."""
    if "invalid_request_error" in words:
        return 400
    return next((int(word) for word in words if re.fullmatch(r"[45]\d\d", word)), None)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return Retry-After, a number or a date, in seconds, capped at one hour."""
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _seconds(value)
    if seconds is not None:
        return seconds
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    try:
        # Use the server's clock if it sends the time, since ours may be wrong.
        now = parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        now = datetime.now(UTC)
    return _seconds((_in_utc(at) - _in_utc(now)).total_seconds())


def _in_utc(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _seconds(value: str | float) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER) if math.isfinite(seconds) else None
