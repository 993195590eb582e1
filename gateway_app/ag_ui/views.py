"""`POST /agents/{name}/agui` and `…/connect`: an AG-UI run as a stream of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway_app.ag_ui.interrupts import answer_of
from gateway_app.ag_ui.messages import messages_snapshot
from gateway_app.ag_ui.read import InterruptAnswer, RunInput, thread_of, turn_of
from gateway_app.ag_ui.write import RunWriter
from gateway_app.backend.exchange import Exchange
from gateway_app.backend.threads import messages_of, output_of
from gateway_app.http import KEEP_ALIVE, data_frame, dialect_view, json_refusal, read_body
from gateway_app.types.appended_text import TextReplacedError
from uamp import ErrorCode, RemoteProtocolError, events_of_output
from uamp import events as ev
from uamp.shared_state import VersionedState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from django.http import HttpRequest, HttpResponse, HttpResponseBase

    from gateway_app.ag_ui.write import RunEvent

TRANSPORT: Final = "ag-ui"
_PAYMENT_HEADERS: Final = ("X-Payment", "Payment-Signature")
_GOING_ON: Final = ("X-Chat-Id", "Idempotency-Key")


def _refusal(request: HttpRequest, error: RemoteProtocolError) -> HttpResponse:
    del request
    return json_refusal({"error": {"code": error.code, "message": error.message}}, error)


@dialect_view(_refusal, "POST", protocol=TRANSPORT)
async def run(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Run an agent, or resume an interrupted run.

    A pending payment or approval ends the run with the outcome `interrupt`, and the response waits
    for the run that brings the answer. A request that pays by headers is refused with 402 if its
    payment is insufficient. A client that leaves cancels the response, except in a chat or with an
    `Idempotency-Key`.
    """
    body = read_body(request, RunInput)
    pays = any(header in request.headers for header in _PAYMENT_HEADERS)
    goes_on = any(header in request.headers for header in _GOING_ON)
    exchange = await Exchange.of(
        request,
        TRANSPORT,
        demand_body=_demand if pays else None,
        leaving="continue" if goes_on else "cancel",
    )
    writer = RunWriter(body)
    ended: list[RunEvent] = []
    try:
        if body.resume:
            ended = await _resume(exchange, writer, body.resume)
        else:
            await exchange.begin(turn_of(body, agent=name or None, chat=_chat_of(request)))
        state = exchange.state or await exchange.follow_state()
        first = [*writer.begin(state), *ended]
    except BaseException:
        await exchange.close()
        raise
    return exchange.stream(_frames(exchange, writer, first))


@dialect_view(_refusal, "POST", protocol=TRANSPORT)
async def connect(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Return to a thread: its messages, its state, and the running answer from where it is.

    Starts and changes nothing; a client that leaves cancels nothing.
    """
    body = read_body(request, RunInput)
    exchange = await Exchange.of(request, TRANSPORT, leaving="continue")
    writer = RunWriter(body)
    try:
        thread = thread_of(body, agent=name or None, chat=_chat_of(request))
        if await exchange.find(thread):
            first = await _return(exchange, writer, body)
        else:
            first = [*writer.begin(VersionedState()), *writer.finish({"type": "success"})]
    except BaseException:
        await exchange.close()
        raise
    return exchange.stream(_frames(exchange, writer, first))


def _chat_of(request: HttpRequest) -> str | None:
    return request.headers.get("X-Chat-Id")


async def _return(exchange: Exchange, writer: RunWriter, body: RunInput) -> list[RunEvent]:
    """Return the messages and state of a thread, and its running answer so far."""
    state = await exchange.follow_state()
    running = await exchange.running()
    # An answer that ends from here on is in the log, so joining it finds its end.
    messages = await messages_of(exchange.chat_id)
    ended = [message for message in messages if not running or message.response_id != running]
    made = [*writer.begin(state), messages_snapshot(ended, body, link=exchange.link)]
    if not running:
        return [*made, *writer.finish({"type": "success"})]
    joined = await exchange.join(running)
    so_far = events_of_output(running, await output_of(running))
    # The output has the thoughts in place; the state lumps them together.
    after = [event for event in joined if not isinstance(event, ev.Thinking)]
    return made + [run_event for event in (*so_far, *after) for run_event in writer.feed(event)]


def _demand(body: Mapping[str, Any]) -> bytes:
    error = {"code": ErrorCode.PAYMENT_REQUIRED, "message": body["message"]}
    return msgspec.json.encode({**body, "error": error})


async def _resume(
    exchange: Exchange, writer: RunWriter, resume: Iterable[InterruptAnswer]
) -> list[RunEvent]:
    """Pass a run's answers to the one response waiting for them; return its end, if any."""
    answers = [answer_of(answer) for answer in resume]
    if len({response_id for response_id, _ in answers}) != 1:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT, "Answer the interrupts of one run at a time."
        )
    ended = list(writer.resume(await exchange.join(answers[0][0])))
    if not ended:
        for _, event in answers:
            await exchange.send(event)
    return ended


async def _frames(
    exchange: Exchange, writer: RunWriter, first: Sequence[RunEvent]
) -> AsyncIterator[bytes]:
    yield _joined(first)
    if writer.has_ended:
        return
    try:
        async for events in exchange.events():
            made = [frame for event in events for frame in writer.feed(event)]
            if made or not events:
                yield _joined(made) or KEEP_ALIVE
        if not writer.has_ended:
            yield _joined(
                writer.interrupt(exchange.pending_questions.values(), exchange.response_id)
            )
    except TextReplacedError:
        again = RemoteProtocolError(ErrorCode.INTERRUPTED, "The answer was rewritten.")
        yield _joined(writer.fail(again))
    except RemoteProtocolError as error:
        yield _joined(writer.fail(error))


def _joined(events: Iterable[RunEvent]) -> bytes:
    return b"".join(data_frame(event) for event in events)
