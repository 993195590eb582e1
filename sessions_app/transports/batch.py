"""Batches: an array of client events in one HTTP request.

`POST /uamp` returns an array of server events, `POST /uamp/stream` a stream. If payment is needed
first, the reply is a 402 (x402), and the same request with a payment succeeds. If an earlier turn
of the batch has started, its events are returned, and the demand is a response.error among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

import uamp
from agents_app.rest.rights import ANY
from sessions_app.transports import batch_repeats
from sessions_app.transports.http_exchange import (
    HttpExchange,
    count_events,
    principal_of,
    protocol_view,
    retry_after,
    with_heartbeat,
)
from sessions_app.transports.http_payment import HttpPayment
from sessions_app.transports.request_defaults import defaults_of
from uamp import ErrorCode, RemoteProtocolError
from uamp.codec.single_lines import single_lines
from uamp.digital_source import AI_HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BATCH_EVENTS: Final = 100


@protocol_view("POST")
async def batch(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """`POST /uamp`: an array of client events in, an array of server events out."""
    del name
    exchange, events = await _batch_of(request)
    refusals = _BatchRefusals(request, exchange)
    try:
        await _take(exchange, events, refusals)
        if refusals.whole is not None:
            return refusals.whole
        exchange.end_with_process()
        frames = [outgoing.text async for outgoing in exchange.connection.outgoing.frames()]
    finally:
        await exchange.close()
    return HttpResponse(
        f"[{','.join(frames)}]", content_type="application/json", headers=refusals.headers
    )


@protocol_view("POST")
async def batch_stream(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """`POST /uamp/stream`: an array of client events in, a stream of server events out."""
    del name
    exchange, events = await _batch_of(request)
    refusals = _BatchRefusals(request, exchange)
    try:
        await _take(exchange, events, refusals)
    except BaseException:
        await exchange.close()
        raise
    if refusals.whole is not None:
        await exchange.close()
        return refusals.whole

    async def stream() -> AsyncIterator[bytes]:
        try:
            async for outgoing in with_heartbeat(exchange.connection.outgoing):
                if outgoing is None:
                    yield b": keep-alive\n\n"
                else:
                    yield single_lines(f"data: {outgoing.text}\n\n".encode())
            yield b"data: [DONE]\n\n"
        finally:
            await exchange.close()

    response = exchange.answer(stream())
    for header, value in refusals.headers.items():
        response[header] = value
    return response


class _BatchRefusals:
    """The refusals of a batch: of individual events, or of the whole batch.

    `whole` is the 402 for a batch of which no turn has started, or the 409 for a batch sent twice
    at the same time.
    """

    def __init__(self, request: HttpRequest, exchange: HttpExchange) -> None:
        self.payment = HttpPayment(request, exchange.connection)
        self._path = request.path
        self._principal = exchange.connection.principal
        self._refused: list[RemoteProtocolError] = []
        self._in_use: HttpResponse | None = None
        exchange.connection.on_error = self._refused.append

    @property
    def whole(self) -> HttpResponse | None:
        """The refusal of the whole batch, or None."""
        return self._in_use or self.payment.refusal

    @property
    def headers(self) -> dict[str, str]:
        """The reply's mark of AI and payment headers, and when refused events may be sent again."""
        waits = [wait for error in self._refused if (wait := retry_after(error)) is not None]
        return {
            **AI_HEADERS,
            **self.payment.headers,
            **({"Retry-After": str(max(waits))} if waits else {}),
        }

    async def check_repeat(self, event: dict[str, Any]) -> None:
        """Refuse the batch if a concurrent copy of it has opened its session."""
        lost = any(error.code == ErrorCode.SESSION_EXISTS for error in self._refused)
        if lost and await batch_repeats.is_begun(event, self._principal):
            self._in_use = batch_repeats.key_in_use_response(self._path)


async def _batch_of(request: HttpRequest) -> tuple[HttpExchange, list[dict[str, Any]]]:
    """Return an exchange with the existing sessions that the events name, and the events."""
    principal = await principal_of(request, protocol="uamp", scope=ANY)
    events = _events_of(request.body, uamp.DEFAULT_LIMITS)
    await count_events(request, principal, max(1, len(events)))
    defaults = defaults_of(request)
    names = (defaults.agent or "", defaults.chat or "")
    principal, events = await batch_repeats.under_key(request, principal, events, names=names)
    exchange = HttpExchange(request, principal, "batch")
    named = {str(event["session_id"]) for event in events if event.get("session_id")}
    named -= {_opened_by(event) for event in events}
    try:
        for session_id in named:
            await exchange.attach_known(session_id)
            await exchange.follow_running(session_id)
    except BaseException:
        await exchange.close()
        raise
    return exchange, events


def _opened_by(event: dict[str, Any]) -> str:
    """Return the id of the session that a session.create opens, or ""."""
    resume, session = event.get("resume"), event.get("session")
    if event.get("type") == "session.create":
        if isinstance(resume, dict) and resume.get("session_id"):
            return str(resume["session_id"])
        if isinstance(session, dict) and session.get("id"):
            return str(session["id"])
    return ""


def _events_of(body: bytes, limits: uamp.Limits) -> list[dict[str, Any]]:
    events = uamp.load_json(body, limits)
    if isinstance(events, dict):
        events = [events]
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, "The body must be an array of events.")
    if len(events) > BATCH_EVENTS:
        raise RemoteProtocolError(
            ErrorCode.TOO_MANY_ITEMS, f"A batch may have at most {BATCH_EVENTS} events."
        )
    return events


async def _take(
    exchange: HttpExchange, events: list[dict[str, Any]], refusals: _BatchRefusals
) -> None:
    session_ids: list[str] = []
    for event in events:
        await exchange.take(msgspec.json.encode(event))
        await refusals.check_repeat(event)
        if refusals.whole is not None:
            # The whole batch will be sent again with a payment, so no later turn may start.
            return
        resumed = _opened_by(event) if event.get("resume") else ""
        if resumed in exchange.connection.sessions:
            session_ids.append(resumed)
            await exchange.follow_running(resumed)
    if not exchange.connection.is_busy():
        # A concurrent copy of the batch may have started turns after its session was followed.
        for session_id in session_ids:
            await exchange.follow_running(session_id)
    exchange.end_when_idle()
