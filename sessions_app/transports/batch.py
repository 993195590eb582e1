"""Batches: an array of client events in one HTTP request.

`POST /uamp` answers with an array of server events, `POST /uamp/stream` with a stream. What has to
be paid first is a 402 (x402), and the same request with a payment goes through. Where an earlier
turn of the batch has begun, its events are the answer, and the demand is a response.error in it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

import uamp
from payments_app import x402
from sessions_app import database, services
from sessions_app.billing import payers
from sessions_app.transports import batch_repeats
from sessions_app.transports.http_exchange import (
    HttpExchange,
    count_events,
    defaults_of,
    principal_of,
    protocol_view,
    retry_after,
    with_heartbeat,
)
from uamp import ErrorCode, PaymentErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agents_app.selectors import AgentSpec
    from payments_app.money import Money
    from sessions_app.records import OpenSession

BATCH_EVENTS: Final = 100
PAYMENT_REQUIRED: Final = "payment_required"


@protocol_view("POST")
async def batch(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """`POST /uamp`: an array of client events in, an array of server events out."""
    del name
    exchange, events = await _batch_of(request)
    payment = _BatchPayment(request, exchange)
    try:
        await _take(exchange, events, payment)
        if payment.demand is not None:
            return payment.demand
        exchange.end_with_process()
        frames = [outgoing.text async for outgoing in exchange.connection.outgoing.frames()]
    finally:
        await exchange.close()
    return HttpResponse(
        f"[{','.join(frames)}]", content_type="application/json", headers=payment.headers
    )


@protocol_view("POST")
async def batch_stream(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """`POST /uamp/stream`: an array of client events in, a stream of server events out."""
    del name
    exchange, events = await _batch_of(request)
    payment = _BatchPayment(request, exchange)
    try:
        await _take(exchange, events, payment)
    except BaseException:
        await exchange.close()
        raise
    if payment.demand is not None:
        await exchange.close()
        return payment.demand

    async def stream() -> AsyncIterator[bytes]:
        try:
            async for outgoing in with_heartbeat(exchange.connection.outgoing.frames()):
                if outgoing is None:
                    yield b": keep-alive\n\n"
                else:
                    yield f"data: {outgoing.text}\n\n".encode()
            yield b"data: [DONE]\n\n"
        finally:
            await exchange.close()

    response = exchange.answer(stream())
    for header, value in payment.headers.items():
        response[header] = value
    return response


class _BatchPayment:
    """Has the turns of a batch paid by its headers, or demands that (x402).

    `demand` is the 402 of a batch of which no turn has begun, or the 409 of one that is taken twice
    at a time.
    """

    def __init__(self, request: HttpRequest, exchange: HttpExchange) -> None:
        self.demand: HttpResponse | None = None
        self.path = request.path
        self._payment_headers: dict[str, str] = {}
        self._refused: list[RemoteProtocolError] = []
        self._request = request
        self._connection = exchange.connection
        # Of the payment on a chain that this request brought: it pays the later turns too.
        self._secret = ""
        exchange.connection.pay = self._pay
        exchange.connection.on_error = self._refused.append

    @property
    def lost(self) -> bool:
        """Whether a session that the batch was to open is there already."""
        return any(error.code == ErrorCode.SESSION_EXISTS for error in self._refused)

    @property
    def headers(self) -> dict[str, str]:
        """The payment headers of the answer, and when refused events may be sent again."""
        waits = [wait for error in self._refused if (wait := retry_after(error)) is not None]
        return {**self._payment_headers, **({"Retry-After": str(max(waits))} if waits else {})}

    async def _pay(self, session: OpenSession, spec: AgentSpec, amount: Money) -> payers.Source:
        body = x402.requirements(
            amount,
            resource_url=self._request.build_absolute_uri(),
            description=spec.description or f"An answer of {spec.name}",
            agent=spec.name,
        )
        try:
            # It may ask a facilitator: not on the threads that read all clients' rows.
            paid = await asyncio.to_thread(
                database.scoped,
                partial(
                    x402.accept,
                    dict(self._request.headers),
                    body,
                    user_id=session.principal.user_id,
                    visitor=self._connection.principal.counted_as,
                    secret=self._secret,
                ),
            )
        except x402.PaymentNotTaken as error:
            raise self._demanded(body, str(error), error.code) from error
        if paid is None:
            raise self._demanded(body, "This has to be paid first.", PAYMENT_REQUIRED)
        self._payment_headers.update(paid.response_headers)
        self._secret = paid.secret
        session.payment_token_id = paid.token_id
        await database.run(services.keep_payment_token, session.id, paid.token_id)
        source = await database.run(payers.by_token, paid.token_id, spec.name)
        if source is None:
            raise self._demanded(
                body, "The payment ended in the meantime.", PaymentErrorCode.TOKEN_INVALID
            )
        return source

    def _demanded(self, body: dict[str, Any], message: str, code: str) -> RemoteProtocolError:
        demand = {**body, "code": code, "message": message}
        if self._connection.has_begun:
            return RemoteProtocolError(
                ErrorCode.PAYMENT_REQUIRED, message, details={"payment": demand}
            )
        self.demand = HttpResponse(
            msgspec.json.encode(demand),
            status=402,
            content_type="application/json",
            headers=x402.required_headers(body),
        )
        return RemoteProtocolError(ErrorCode.PAYMENT_REQUIRED, message)


async def _batch_of(request: HttpRequest) -> tuple[HttpExchange, list[dict[str, Any]]]:
    """Return an exchange with the standing sessions that the events name, and the events."""
    principal = await principal_of(request)
    events = _events_of(request.body, uamp.DEFAULT_LIMITS)
    await count_events(request, principal, max(1, len(events)))
    defaults = defaults_of(request, "batch")
    asked = (defaults.agent or "", defaults.chat or "")
    principal, events = await batch_repeats.under_key(request, principal, events, asked=asked)
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
    """Return the id of the session that a session.create opens, or ''."""
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
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, "The body is an array of events.")
    if len(events) > BATCH_EVENTS:
        raise RemoteProtocolError(
            ErrorCode.TOO_MANY_ITEMS, f"A batch has at most {BATCH_EVENTS} events."
        )
    return events


async def _take(
    exchange: HttpExchange, events: list[dict[str, Any]], payment: _BatchPayment
) -> None:
    known: list[str] = []
    for event in events:
        await exchange.take(msgspec.json.encode(event))
        if payment.lost and await batch_repeats.is_begun(event, exchange.connection.principal):
            payment.demand = batch_repeats.in_use(payment.path)
        if payment.demand is not None:
            # The whole batch is sent again with a payment: no later turn may begin before.
            return
        resumed = _opened_by(event) if event.get("resume") else ""
        if resumed in exchange.connection.sessions:
            known.append(resumed)
            await exchange.follow_running(resumed)
    if not exchange.connection.is_busy():
        # The same batch, sent at the same time, may have begun after its session was followed.
        for session_id in known:
            await exchange.follow_running(session_id)
    exchange.end_when_idle()
