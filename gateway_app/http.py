"""The base of every dialect's HTTP edge: bodies, refusals and frames of event streams."""

from __future__ import annotations

import hashlib
import math
import re
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec
from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from django.views.decorators.csrf import csrf_exempt

import uamp
from gateway_app.backend.callers import check_credential
from gateway_app.backend.turn_outcomes import PaymentDemanded
from gateway_app.types.charged_errors import with_charges
from uamp import ErrorCode, RemoteProtocolError
from uamp.codec.single_lines import single_lines
from uamp.errors.http_status import http_status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from django.http import HttpRequest, HttpResponseBase

    Refusal: TypeAlias = Callable[[HttpRequest, RemoteProtocolError], HttpResponse]
    View: TypeAlias = Callable[..., Awaitable[HttpResponseBase]]

# Each dialect names media its own way, so UAMP's per-field limits apply only once events are built.
_BODY_LIMITS: Final = msgspec.structs.replace(
    uamp.DEFAULT_LIMITS, string_bytes=uamp.DEFAULT_LIMITS.media_bytes
)
_PLACE: Final = re.compile(r"at `\$\.([^`]+)`")
AGENT_CHARS: Final = 256
KEEP_ALIVE: Final = b": keep-alive\n\n"
_Body = TypeVar("_Body")
_encoder: Final = msgspec.json.Encoder()


def cached_json(request: HttpRequest, value: object, *, seconds: int) -> HttpResponse:
    """Return a JSON response that one client may cache, or 304 if it has it already."""
    body = msgspec.json.encode(value)
    response = HttpResponse(body, content_type="application/json")
    response["ETag"] = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    response["Cache-Control"] = f"private, max-age={seconds}"
    answer = get_conditional_response(request, etag=response["ETag"], response=response)
    # Other conditions, by date, are ignored.
    is_known = answer is not None and answer.status_code == HTTPStatus.NOT_MODIFIED
    return answer if answer is not None and is_known else response


def read_body(request: HttpRequest, body_type: type[_Body]) -> _Body:
    """Parse the JSON body of a request.

    Raises RemoteProtocolError, whose details name the offending place as `param`.
    """
    return body_of(request.body, body_type)


def body_of(raw: bytes, body_type: type[_Body]) -> _Body:
    """Parse JSON like the body of a request; raises RemoteProtocolError."""
    return _converted(uamp.load_json(raw, _BODY_LIMITS), body_type)


def _converted(value: Any, body_type: type[_Body], *, strict: bool = True) -> _Body:
    try:
        return msgspec.convert(value, body_type, strict=strict)
    except msgspec.ValidationError as error:
        place = _PLACE.search(str(error))
        details = {"param": place[1]} if place else None
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, f"{error}.", details=details) from None


def read_query(request: HttpRequest, query_type: type[_Body]) -> _Body:
    """Parse the query parameters of a request.

    Raises RemoteProtocolError, whose details name the offending place as `param`.
    """
    return _converted(request.GET.dict(), query_type, strict=False)


def json_refusal(body: Any, error: RemoteProtocolError) -> HttpResponse:
    """Return a refusal with the status of its error, and with Retry-After if known."""
    response = HttpResponse(
        _encoder.encode(with_charges(body, error)),
        status=http_status(error.code),
        content_type="application/json",
    )
    return with_retry_after(response, error)


def with_retry_after(response: HttpResponse, error: Exception) -> HttpResponse:
    """Set Retry-After on a refusal if its error says when to retry."""
    details = error.details if isinstance(error, RemoteProtocolError) else None
    if (wait := (details or {}).get("retry_after")) is not None:
        response["Retry-After"] = str(math.ceil(float(wait)))
    return response


def data_frame(value: Any) -> bytes:
    """Encode one event of an event stream as a single line of JSON."""
    return b"data: " + single_lines(_encoder.encode(value)) + b"\n\n"


def _check_address(request: HttpRequest, agent: str) -> None:
    """Raise RemoteProtocolError for an address that some databases reject.

    That is one with NUL in its path or query, or an agent name longer than any agent's.
    """
    if len(agent) > AGENT_CHARS:
        raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, "There is no agent with that name.")
    if "\x00" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
        raise RemoteProtocolError(ErrorCode.INVALID_TEXT, "The URL of the request contains NUL.")


def dialect_view(
    refusal: Refusal, *methods: str, protocol: str | None = None, takes_visitors: bool = True
) -> Callable[[View], Any]:
    """Restrict a view to these methods and report its errors through the dialect's `refusal`.

    With `protocol`, the credential is checked for that protocol first; without `takes_visitors`, a
    POST must carry one. Addresses with NUL are refused then, before the body is read. Clients
    authenticate with a key, so the view is exempt from CSRF.
    """

    def decorated(view: View) -> Any:
        @wraps(view)
        async def guarded(request: HttpRequest, **path: str) -> HttpResponseBase:
            if request.method not in methods:
                wrong = RemoteProtocolError(
                    ErrorCode.INVALID_EVENT, f"Use {' or '.join(methods)} here."
                )
                response = refusal(request, wrong)
                response.status_code = 405
                response["Allow"] = ", ".join(methods)
                return response
            try:
                if protocol is not None:
                    await check_credential(request, protocol, takes_visitors=takes_visitors)
                _check_address(request, path.get("name", ""))
                return await view(request, **path)
            except PaymentDemanded as demanded:
                return demanded.response
            except RemoteProtocolError as error:
                return with_retry_after(refusal(request, error), error)

        return csrf_exempt(guarded)

    return decorated
