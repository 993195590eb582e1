"""`POST /chat/completions`, whole and streamed, and the agents as OpenAI's models."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from gateway_app.backend.agents.agent_directory import agents_for
from gateway_app.backend.exchange import Exchange
from gateway_app.completions.read import CompletionRequest, turn_of
from gateway_app.completions.write import CompletionWriter
from gateway_app.http import KEEP_ALIVE, data_frame, dialect_view, read_body
from gateway_app.openai.errors import error_body
from gateway_app.openai.refusals import demand, refusal, whole_answer
from gateway_app.types.appended_text import TextReplacedError
from gateway_app.types.charged_errors import with_charges
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway_app.types.listed_agent import ListedAgent

TRANSPORT: Final = "completions"
DONE: Final = b"data: [DONE]\n\n"


@dialect_view(refusal, "POST", protocol=TRANSPORT)
async def completions(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Answer a conversation, or a message sent to a chat."""
    body = read_body(request, CompletionRequest)
    chat = body.chat or request.headers.get("X-Chat-Id")
    turn = turn_of(body, agent=name or None, chat=chat)
    # With a key, a client that lost its connection can ask for the whole answer again.
    is_kept = chat or ("Idempotency-Key" in request.headers and not body.stream)
    exchange = await Exchange.of(
        request, TRANSPORT, demand_body=demand, leaving="continue" if is_kept else "cancel"
    )
    try:
        await exchange.begin(turn)
        writer = _writer_of(exchange, body, name)
        if body.stream:
            return exchange.stream(_chunks(exchange, writer))
        return await _whole(exchange, writer)
    except RemoteProtocolError as error:
        return await exchange.refuse(refusal(request, error))
    except BaseException:
        await exchange.close()
        raise


def _writer_of(exchange: Exchange, body: CompletionRequest, name: str) -> CompletionWriter:
    """Return the writer of the answer."""
    return CompletionWriter(
        response_id=exchange.response_id,
        model=body.model or name,
        created=int(time.time()),
        link=exchange.link,
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
        is_older=body.functions is not None,
    )


async def _chunks(exchange: Exchange, writer: CompletionWriter) -> AsyncIterator[bytes]:
    yield data_frame(writer.begin())
    try:
        async for events in exchange.events():
            frames = [data_frame(chunk) for event in events for chunk in writer.feed(event)]
            yield b"".join(frames) if events else KEEP_ALIVE
        if not exchange.has_ended:
            raise await exchange.give_up()
    except TextReplacedError:
        again = RemoteProtocolError(ErrorCode.INTERRUPTED, "The answer was rewritten.")
        yield data_frame(error_body(again))
    except RemoteProtocolError as error:
        yield data_frame(with_charges(error_body(error), error))
    yield DONE
    if writer.signature is not None:
        yield b"event: response_signature\n" + data_frame(writer.signature)


async def _whole(exchange: Exchange, writer: CompletionWriter) -> HttpResponse:
    """Return the answer as one object; raises RemoteProtocolError if it failed."""
    end = await whole_answer(exchange)
    body = msgspec.json.encode(writer.whole(end))
    headers = exchange.headers
    await exchange.close()
    return HttpResponse(body, content_type="application/json", headers=headers)


@dialect_view(refusal, "GET", "HEAD")
async def models(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """List the agents that the caller may use as models, or only the agent of the path.

    The list and its models have the members of OpenAI's API and those of Anthropic's.
    """
    listed = await agents_for(request, name, protocol="completions")
    data = [_model(agent) for agent in listed]
    page = {
        "has_more": False,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }
    return _json({"object": "list", "data": data, **page})


@dialect_view(refusal, "GET", "HEAD", protocol=TRANSPORT)
async def model(request: HttpRequest, model_id: str, name: str = "") -> HttpResponseBase:
    """Return one agent as a model."""
    if name and name != model_id:
        raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, f"The one model here is {name!r}.")
    return _json(_model((await agents_for(request, model_id, protocol="completions"))[0]))


def _json(value: object) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(value), content_type="application/json")


def _model(agent: ListedAgent) -> dict[str, object]:
    return {
        "id": agent.name,
        "object": "model",
        "created": agent.created,
        "owned_by": agent.owned_by,
        "type": "model",
        "lifecycle": "active",
        "display_name": agent.name,
        "created_at": datetime.fromtimestamp(agent.created, UTC).isoformat(),
    }
