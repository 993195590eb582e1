"""`/responses`: responses of OpenAI's API, whole, streamed and in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from gateway_app.backend.exchange import Exchange
from gateway_app.backend.input_tokens import input_tokens as estimated_tokens
from gateway_app.backend.responses import ResponseReader
from gateway_app.http import KEEP_ALIVE, data_frame, dialect_view, read_body, read_query
from gateway_app.openai.errors import refused, unsupported
from gateway_app.openai.refusals import demand, refusal, whole_answer
from gateway_app.openai_responses.compaction import compacted, summary_request
from gateway_app.openai_responses.read import EXTENSION, ResponsesRequest, check
from gateway_app.openai_responses.service import TRANSPORT, ResponsesService
from gateway_app.types.appended_text import TextReplacedError
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from django.http import StreamingHttpResponse

    from gateway_app.openai_responses.output import JsonObject
    from gateway_app.openai_responses.write import ResponseWriter
    from gateway_app.types.stored_response import StoredResponse
    from uamp.events import Event

_Place: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=100)]


class RetrieveQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query parameters for retrieving a response."""

    stream: bool = False
    starting_after: _Place | None = None


class InputItemsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query parameters for a page of input items."""

    limit: _Size = 20
    order: Literal["asc", "desc"] = "desc"
    after: Annotated[str, msgspec.Meta(max_length=128)] = ""


def _service(request: HttpRequest, exchange: Exchange, agent: str) -> ResponsesService:
    reader = ResponseReader(
        request.build_absolute_uri(),
        exchange.principal,
        transport=TRANSPORT,
        agent=agent,
        extension=EXTENSION,
        scope=request.scope,  # type: ignore[attr-defined]  # an ASGIRequest
    )
    return ResponsesService(reader, agent)


@dialect_view(refusal, "POST", protocol=TRANSPORT)
async def create(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Begin a response and return it: at its end, as a stream, or at once."""
    body = read_body(request, ResponsesRequest)
    check(body)
    chat = body.chat or request.headers.get("X-Chat-Id")
    # With a key, a client that lost its connection can ask for the whole answer again.
    is_kept = chat or body.background or ("Idempotency-Key" in request.headers and not body.stream)
    exchange = await Exchange.of(
        request, TRANSPORT, demand_body=demand, leaving="continue" if is_kept else "cancel"
    )
    try:
        service = _service(request, exchange, name)
        await exchange.begin(await service.turn(body, chat))
        if body.stream:
            writer = await service.writer_of_started(exchange.response_id)
            return exchange.stream(_frames(exchange, writer))
        if body.background:
            response = await service.response_object(await service.find(exchange.response_id))
        else:
            writer = await service.writer_of_started(exchange.response_id)
            response = await _whole(exchange, writer)
        headers = exchange.headers
    except RemoteProtocolError as error:
        return await exchange.refuse(refusal(request, error))
    except BaseException:
        await exchange.close()
        raise
    await exchange.close()
    return _json(response, headers)


@dialect_view(refusal, "POST", protocol=TRANSPORT)
async def input_tokens(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Estimate the tokens of a request's input, without asking the agent."""
    body = read_body(request, ResponsesRequest)
    check(body)
    if body.chat or request.headers.get("X-Chat-Id"):
        raise unsupported(
            "conversation",
            "The messages of a chat are not counted. Leave it and X-Chat-Id out.",
        )
    exchange = await Exchange.of(request, TRANSPORT)
    try:
        turn = await _service(request, exchange, name).turn(body, None)
        tokens = await estimated_tokens(exchange.principal, turn)
    finally:
        await exchange.close()
    return _json({"object": "response.input_tokens", "input_tokens": tokens})


@dialect_view(refusal, "POST", protocol=TRANSPORT)
async def compact(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Have the agent summarise a conversation, and return the items that stand for it."""
    body = read_body(request, ResponsesRequest)
    check(body)
    # Only a request with a key can ask for the summary again.
    is_kept = "Idempotency-Key" in request.headers
    exchange = await Exchange.of(
        request, TRANSPORT, demand_body=demand, leaving="continue" if is_kept else "cancel"
    )
    try:
        service = _service(request, exchange, name)
        questions = await service.questions(body)
        summary = summary_request(body, chat=body.chat or request.headers.get("X-Chat-Id") or None)
        await exchange.begin(await service.turn(summary, None))
        end = await whole_answer(exchange)
        compaction = compacted(exchange.response_id, end, questions=questions, owner=service.owner)
        headers = exchange.headers
    except RemoteProtocolError as error:
        return await exchange.refuse(refusal(request, error))
    except BaseException:
        await exchange.close()
        raise
    await exchange.close()
    return _json(compaction, headers)


@dialect_view(refusal, "GET", "HEAD", "DELETE", protocol=TRANSPORT)
async def response(request: HttpRequest, response_id: str, name: str = "") -> HttpResponseBase:
    """Return a response in its current state, or stream it from a given position."""
    if request.method == "DELETE":
        return _undeletable(request)
    query = read_query(request, RetrieveQuery)
    exchange = await Exchange.of(request, TRANSPORT)
    try:
        service = _service(request, exchange, name)
        stored = await service.find(response_id)
        if query.stream:
            answer = await _stream_again(service, exchange, stored, query.starting_after)
        else:
            answer = _json(await service.response_object(stored))
    except BaseException:
        await exchange.close()
        raise
    if not answer.streaming:
        await exchange.close()
    return answer


async def _stream_again(
    service: ResponsesService, exchange: Exchange, stored: StoredResponse, after: int | None
) -> HttpResponse | StreamingHttpResponse:
    """Stream a response from its beginning, or from a position on."""
    writer = service.writer_of_stored(stored, after=-1 if after is None else after)
    if stored.has_ended:
        end = await service.end_of(stored)
        events = [*writer.begin(), *writer.rest_of_output(stored.output), *writer.feed(end)]
        return HttpResponse(_joined(events), content_type="text/event-stream")
    state = await exchange.join(stored.id)
    _check_place(state, after)
    return exchange.stream(_frames(exchange, writer, state))


def _undeletable(request: HttpRequest) -> HttpResponse:
    message = "A response is part of its chat's log. Use `store` false for one that is not kept."
    answer = refusal(request, RemoteProtocolError(ErrorCode.INVALID_EVENT, message))
    answer.status_code = 405
    answer["Allow"] = "GET, HEAD"
    return answer


def _check_place(state: Sequence[Event], after: int | None) -> None:
    """Refuse a position in a running answer whose thoughts and text alternate in unknown order."""
    has_thought = any(isinstance(event, ev.Thinking) for event in state)
    has_text = any(isinstance(event, ev.ResponseDelta) for event in state)
    if after is not None and has_thought and has_text:
        raise refused(
            "starting_after",
            "An answer with thoughts can be streamed from a place when it has ended. Leave it out.",
        )


@dialect_view(refusal, "POST", protocol=TRANSPORT)
async def cancel(request: HttpRequest, response_id: str, name: str = "") -> HttpResponseBase:
    """Cancel a response, unless it has ended, and return it."""
    exchange = await Exchange.of(request, TRANSPORT)
    try:
        service = _service(request, exchange, name)
        return _json(await service.response_object(await service.cancel(exchange, response_id)))
    finally:
        await exchange.close()


@dialect_view(refusal, "GET", "HEAD", protocol=TRANSPORT)
async def items(request: HttpRequest, response_id: str, name: str = "") -> HttpResponseBase:
    """Return a page of a response's input items."""
    query = read_query(request, InputItemsQuery)
    exchange = await Exchange.of(request, TRANSPORT)
    try:
        service = _service(request, exchange, name)
        all_items = service.input_items(await service.find(response_id))
    finally:
        await exchange.close()
    if query.order == "desc":
        all_items.reverse()
    ids = [item["id"] for item in all_items]
    if query.after and query.after not in ids:
        raise refused("after", "The response has no input item with this id.")
    first = ids.index(query.after) + 1 if query.after else 0
    page = all_items[first : first + query.limit]
    return _json(
        {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": len(all_items) > first + query.limit,
        }
    )


async def _frames(
    exchange: Exchange, writer: ResponseWriter, state: Sequence[Event] = ()
) -> AsyncIterator[bytes]:
    try:
        yield _joined(
            [*writer.begin(), *(frame for event in state for frame in writer.feed(event))]
        )
        if not writer.has_ended:
            async for events in exchange.events():
                made = _joined(frame for event in events for frame in writer.feed(event))
                if made or not events:
                    yield made or KEEP_ALIVE
        if not writer.has_ended:
            raise await exchange.give_up()
    except TextReplacedError:
        again = RemoteProtocolError(ErrorCode.INTERRUPTED, "The answer was rewritten.")
        yield _joined(writer.fail(again))
    except RemoteProtocolError as error:
        yield _joined(writer.fail(error))


async def _whole(exchange: Exchange, writer: ResponseWriter) -> JsonObject:
    """Return the answer as one object; raises RemoteProtocolError if it failed."""
    return writer.whole(await whole_answer(exchange))


def _joined(events: Iterable[JsonObject]) -> bytes:
    return b"".join(
        b"event: " + event["type"].encode() + b"\n" + data_frame(event) for event in events
    )


def _json(value: JsonObject, headers: dict[str, str] | None = None) -> HttpResponse:
    return HttpResponse(
        msgspec.json.encode(value), content_type="application/json", headers=headers
    )
