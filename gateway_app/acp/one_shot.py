"""A POST that names no connection: a request of webagents' dialect, answered directly.

The answer is JSON, except that a prompt is answered with an event stream if the client accepts one:
notifications, then the response. Errors are JSON-RPC errors with status 200.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

import uamp
from gateway_app.acp import methods, read, write
from gateway_app.acp.posted import answers_of, cancel
from gateway_app.acp.prompts import Prompt
from gateway_app.backend.exchange import Exchange
from gateway_app.backend.streamed_connection import PostedEvents
from gateway_app.backend.turn_outcomes import PaymentDemanded
from gateway_app.http import KEEP_ALIVE, data_frame
from gateway_app.types.client_turn import ClientTurn
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from gateway_app.acp.read import Rpc, RpcId
    from uamp.events import Event

EVENT_STREAM: Final = "text/event-stream"
PROMPTS: Final = frozenset({"session/prompt", "prompt/submit", "chat/submit"})


async def one_shot(request: HttpRequest, message: Rpc) -> HttpResponseBase:
    """Answer a request; accept any other message with 202."""
    request_id: RpcId = None if message.id is msgspec.UNSET else message.id
    try:
        if message.method in PROMPTS:
            return await _answer_prompt(request, message, request_id)
        return await _answer(request, message)
    except (read.RpcError, RemoteProtocolError) as error:
        refused = error if isinstance(error, read.RpcError) else read.RpcError.of(error)
        return _json(write.failure(request_id, refused.body()))


async def _answer(request: HttpRequest, message: Rpc) -> HttpResponseBase:
    posted = await PostedEvents.of(request, methods.TRANSPORT)
    try:
        if message.method is None:
            if (decision := methods.decision_of(message)) is not None:
                await posted.send(decision)
            return accepted()
        if message.id is msgspec.UNSET:
            if message.method == "session/cancel":
                await cancel(posted, message)
            return accepted()
        *updates, answer = await answers_of(posted, message)
    finally:
        await posted.close()
    if updates and _takes_stream(request):
        frames = b"".join(map(data_frame, [*updates, answer]))
        return HttpResponse(frames, content_type=EVENT_STREAM)
    if updates:
        answer["result"]["updates"] = [notification["params"]["update"] for notification in updates]
    return _json(answer)


def accepted() -> HttpResponse:
    """Return a 202 without body and content type."""
    answer = HttpResponse(status=202)
    del answer["Content-Type"]
    return answer


def _json(message: Any, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(
        msgspec.json.encode(message), content_type="application/json", headers=headers
    )


def _takes_stream(request: HttpRequest) -> bool:
    return EVENT_STREAM in request.headers.get("Accept", "")


async def _answer_prompt(request: HttpRequest, message: Rpc, request_id: RpcId) -> HttpResponseBase:
    """Answer a prompt, in a session or as a whole conversation."""
    # Only a prompt of a session can be returned to.
    is_kept = message.method == "session/prompt"
    exchange = await Exchange.of(
        request,
        methods.TRANSPORT,
        demand_body=partial(_demand, request_id),
        leaving="continue" if is_kept else "cancel",
    )
    streams = _takes_stream(request)
    try:
        prompt = await _begun(request, exchange, message, request_id, is_whole=not streams)
        if streams:
            return exchange.stream(_frames(exchange, prompt))
        answer = [m async for m in _messages(exchange, prompt) if m is not None][-1]
        await exchange.close()
    except PaymentDemanded as demanded:
        await exchange.close()
        demanded.response.status_code = 200
        return demanded.response
    except BaseException:
        await exchange.close()
        raise
    return _json(answer, exchange.headers)


def _demand(request_id: RpcId, body: Mapping[str, Any]) -> bytes:
    """Encode the refusal of an unpaid prompt, with the offers of x402."""
    error = {"code": read.PAYMENT_REQUIRED, "message": "Payment token required", "data": body}
    return msgspec.json.encode(write.failure(request_id, error))


async def _begun(
    request: HttpRequest, exchange: Exchange, message: Rpc, request_id: RpcId, *, is_whole: bool
) -> Prompt:
    """Begin the turn of a prompt, or pay for the waiting one; raises the error that refuses it."""
    prompt = Prompt(
        "",
        request_id=request_id,
        is_submitted=message.method != "session/prompt",
        is_whole=is_whole,
        link=exchange.link,
    )
    if prompt.is_submitted:
        submitted = methods.params_of(message, read.SubmitParams)
        config = uamp.ResponseConfig(messages=submitted.messages)
        await exchange.begin(
            ClientTurn(
                session=ev.SessionCreate(payment_token=submitted.token),
                response=ev.ResponseCreate(response=config),
            )
        )
    else:
        await _begin_prompt(
            request, exchange, methods.params_of(message, read.PromptParams), prompt
        )
    prompt.session_id, prompt.response_id = exchange.session_id, exchange.response_id
    return prompt


async def _begin_prompt(
    request: HttpRequest, exchange: Exchange, params: read.PromptParams, prompt: Prompt
) -> None:
    session_id = params.session_id
    posted = await PostedEvents.of(request, methods.TRANSPORT)
    unpaid = await posted.unpaid(session_id)
    if params.token is not None and unpaid:
        response_id, answer_id = next(iter(unpaid.items()))
        for event in await exchange.join(answer_id):
            prompt.expect_payment(event)
        await exchange.send(methods.payment_of(session_id, response_id, params.token))
        return
    inputs = read.inputs_of(params.prompt, session_id)
    if params.token is not None:
        inputs = _paid(inputs, params.token)
    await exchange.begin(
        ClientTurn(
            session=ev.SessionCreate(),
            inputs=tuple(inputs),
            response=ev.ResponseCreate(),
            session_id=session_id,
        )
    )


def _paid(inputs: list[uamp.InputEvent], token: str) -> list[uamp.InputEvent]:
    """Return the inputs with the token on the first text, adding an empty text if there is none."""
    for index, event in enumerate(inputs):
        if isinstance(event, ev.InputText):
            paid = msgspec.structs.replace(event, payment_token=token)
            return [*inputs[:index], paid, *inputs[index + 1 :]]
    return [ev.InputText(text="", payment_token=token), *inputs]


async def _messages(exchange: Exchange, prompt: Prompt) -> AsyncIterator[dict[str, Any] | None]:
    """Yield the messages of a prompt, the answer last, and None after a period of silence."""
    if prompt.is_submitted:
        yield write.notification("prompt/started", {"requestId": str(prompt.request_id)})
    try:
        async for events in exchange.events():
            for message in _fed(prompt, events):
                yield message
            if not events:
                yield None
    except RemoteProtocolError as error:
        for message in prompt.fail(error):
            yield message
    if not prompt.is_answered:
        for message in prompt.fail(await _blocked(exchange)):
            yield message


def _fed(prompt: Prompt, events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    """Yield the messages for events; an answer without a session cannot be paid later."""
    for event in events:
        if not (prompt.is_submitted and isinstance(event, ev.PaymentRequired)):
            yield from prompt.feed(event)


async def _blocked(exchange: Exchange) -> RemoteProtocolError:
    """Return the refusal of a prompt whose answer waits for someone, with what it has cost."""
    error = await exchange.give_up()
    if error.code == ErrorCode.FORBIDDEN:
        error.message = "A person has to allow a call first. The answer then continues."
    return error


async def _frames(exchange: Exchange, prompt: Prompt) -> AsyncIterator[bytes]:
    async for message in _messages(exchange, prompt):
        yield KEEP_ALIVE if message is None else data_frame(message)
