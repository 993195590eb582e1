"""`POST /v1/messages` of Anthropic's API, whole and streamed, and `…/count_tokens`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from gateway_app.anthropic.errors import error_body
from gateway_app.anthropic.read import CountRequest, MessagesRequest, turn_of
from gateway_app.anthropic.write import MessagesWriter
from gateway_app.backend.exchange import Exchange
from gateway_app.backend.input_tokens import input_tokens
from gateway_app.http import data_frame, dialect_view, json_refusal, read_body
from gateway_app.openai.refusals import whole_answer
from gateway_app.types.appended_text import TextReplacedError
from gateway_app.types.charged_errors import with_charges
from telemetry import log_fields
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from gateway_app.anthropic.write import Frame

TRANSPORT: Final = "anthropic"
PING: Final[Frame] = {"type": "ping"}


def refusal(request: HttpRequest, error: RemoteProtocolError) -> HttpResponse:
    """Return an error in Anthropic's format."""
    del request
    request_id = log_fields.current().request_id
    body = error_body(error) | ({"request_id": request_id} if request_id else {})
    return json_refusal(body, error)


def _demand(body: Mapping[str, Any]) -> bytes:
    """Encode the body of a 402: x402's fields beside an error of Anthropic's."""
    unpaid = RemoteProtocolError(ErrorCode.PAYMENT_REQUIRED, "Payment required")
    return msgspec.json.encode({**body, **error_body(unpaid)})


@dialect_view(refusal, "POST", protocol=TRANSPORT)
async def messages(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Answer a conversation, or a message sent to a chat."""
    body = read_body(request, MessagesRequest)
    chat = request.headers.get("X-Chat-Id")
    turn = turn_of(body, agent=name or None, chat=chat)
    # With a key, a client that lost its connection can ask for the whole answer again.
    is_kept = chat or ("Idempotency-Key" in request.headers and not body.stream)
    exchange = await Exchange.of(
        request, TRANSPORT, demand_body=_demand, leaving="continue" if is_kept else "cancel"
    )
    try:
        await exchange.begin(turn)
        writer = MessagesWriter(
            response_id=exchange.response_id,
            model=body.model,
            link=exchange.link,
            shows_thoughts=body.shows_thoughts,
        )
        if body.stream:
            return exchange.stream(_frames(exchange, writer))
        return await _whole(exchange, writer)
    except RemoteProtocolError as error:
        return await exchange.refuse(refusal(request, error))
    except BaseException:
        await exchange.close()
        raise


@dialect_view(refusal, "POST", protocol=TRANSPORT)
async def count_tokens(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Estimate the tokens of a request's input, without asking the agent."""
    turn = turn_of(read_body(request, CountRequest), agent=name or None, chat=None)
    exchange = await Exchange.of(request, TRANSPORT)
    try:
        return _json({"input_tokens": await input_tokens(exchange.principal, turn)})
    finally:
        await exchange.close()


async def _frames(exchange: Exchange, writer: MessagesWriter) -> AsyncIterator[bytes]:
    yield _joined([writer.begin()])
    try:
        async for events in exchange.events():
            frames = [frame for event in events for frame in writer.feed(event)]
            yield _joined(frames if events else [PING])
        if not writer.has_ended:
            raise await exchange.give_up()
    except TextReplacedError:
        again = RemoteProtocolError(ErrorCode.INTERRUPTED, "The answer was rewritten.")
        yield _joined([error_body(again)])
    except RemoteProtocolError as error:
        yield _joined([with_charges(error_body(error), error)])


async def _whole(exchange: Exchange, writer: MessagesWriter) -> HttpResponse:
    """Return the answer as one message; raises RemoteProtocolError if it failed."""
    end = await whole_answer(exchange)
    response = _json(writer.whole(end), exchange.headers)
    await exchange.close()
    return response


def _joined(frames: Iterable[Frame]) -> bytes:
    return b"".join(
        b"event: " + frame["type"].encode() + b"\n" + data_frame(frame) for frame in frames
    )


def _json(value: Frame, headers: dict[str, str] | None = None) -> HttpResponse:
    return HttpResponse(
        msgspec.json.encode(value), content_type="application/json", headers=headers
    )
