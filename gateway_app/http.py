"""The base of the HTTP edges of all dialects: bodies, refusals, frames of event streams."""

from __future__ import annotations

import math
import re
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt

import uamp
from gateway_app.doors.callers import check_credential
from gateway_app.doors.exchange import PaymentDemanded
from uamp import ErrorCode, RemoteProtocolError
from uamp.errors.http_status import http_status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from django.http import HttpRequest, HttpResponseBase

    Refusal: TypeAlias = Callable[[HttpRequest, RemoteProtocolError], HttpResponse]
    View: TypeAlias = Callable[..., Awaitable[HttpResponseBase]]

# Dialects have names of their own for media. UAMP's limits hold when its events are made.
_BODY_LIMITS: Final = msgspec.structs.replace(
    uamp.DEFAULT_LIMITS, string_bytes=uamp.DEFAULT_LIMITS.media_bytes
)
_PLACE: Final = re.compile(r"at `\$\.([^`]+)`")
AGENT_CHARS: Final = 256
KEEP_ALIVE: Final = b": keep-alive\n\n"
_Body = TypeVar("_Body")
_encoder: Final = msgspec.json.Encoder()


def read_body(request: HttpRequest, body_type: type[_Body]) -> _Body:
    """Return the JSON body of a request.

    Raises RemoteProtocolError; its details have the place of a mistake as `param`.
    """
    return _converted(uamp.load_json(request.body, _BODY_LIMITS), body_type)


def _converted(value: Any, body_type: type[_Body], *, strict: bool = True) -> _Body:
    try:
        return msgspec.convert(value, body_type, strict=strict)
    except msgspec.ValidationError as error:
        place = _PLACE.search(str(error))
        details = {"param": place[1]} if place else None
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, f"{error}.", details=details) from None


def read_query(request: HttpRequest, query_type: type[_Body]) -> _Body:
    """Return the parameters of a query.

    Raises RemoteProtocolError; its details have the place of a mistake as `param`.
    """
    return _converted(request.GET.dict(), query_type, strict=False)


def json_refusal(body: Any, error: RemoteProtocolError) -> HttpResponse:
    """Return a refusal with the status of its error, and when the request may come again."""
    response = HttpResponse(
        _encoder.encode(body), status=http_status(error.code), content_type="application/json"
    )
    return with_retry_after(response, error)


def with_retry_after(response: HttpResponse, error: Exception) -> HttpResponse:
    """Return a refusal that says when the request may come again, where the error knows."""
    details = error.details if isinstance(error, RemoteProtocolError) else None
    if (wait := (details or {}).get("retry_after")) is not None:
        response["Retry-After"] = str(math.ceil(float(wait)))
    return response


def data_frame(value: Any) -> bytes:
    """Return one event of an event stream, a line of JSON."""
    return b"data: " + _encoder.encode(value) + b"\n\n"


def _check_address(request: HttpRequest, agent: str) -> None:
    """Raise RemoteProtocolError for what not every database takes in an id.

    That is NUL in path or query, and the name of an agent that none can have.
    """
    if len(agent) > AGENT_CHARS:
        raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, "There is no agent of such a name.")
    if "\x00" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
        raise RemoteProtocolError(ErrorCode.INVALID_TEXT, "The address of the request has NUL.")


def dialect_view(
    refusal: Refusal, *methods: str, protocol: str | None = None, takes_visitors: bool = True
) -> Callable[[View], Any]:
    """Answer these methods, and errors in the words of a dialect.

    With `protocol` the credential of a request is checked for it before its body and its query are
    read; without `takes_visitors` a POST needs one. Programs bring a key, so that no CSRF token is
    asked for. An address with NUL is refused.
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
                _check_address(request, path.get("name", ""))
                if protocol is not None:
                    await check_credential(request, protocol, takes_visitors=takes_visitors)
                return await view(request, **path)
            except PaymentDemanded as demanded:
                return demanded.response
            except RemoteProtocolError as error:
                return with_retry_after(refusal(request, error), error)

        return csrf_exempt(guarded)

    return decorated
