"""REST turns whose request stays open until their answers have ended, or until a time has passed.

The body is sent at the end: as one JSON object, or as the events of the turn while they happen.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import async_to_sync
from rest_framework.renderers import JSONRenderer

from sessions_app import database
from sessions_app.rest_turns.requests import open_exchange, outcome_of, principal_of
from sessions_app.transports.http_exchange import HEARTBEAT_SECONDS
from uamp.codec.single_lines import single_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from django.http import StreamingHttpResponse
    from rest_framework.request import Request
    from rest_framework.response import Response

    from sessions_app.rest_turns.requests import RequestKey, RequestOutcome, RestSession
    from sessions_app.transports.http_exchange import HttpExchange

SECONDS_MAX: Final = 300
"""The longest time for which a request may wait."""
EVENT_STREAM: Final = "text/event-stream"
# JSON may begin with white space, which keeps proxies from closing a silent connection.
KEEP_ALIVE: Final = b" "
KEPT_HEADERS: Final = ("Location", "Idempotency-Replayed")


def wants_events(request: Request) -> bool:
    """Return whether a client accepts the events of its turn as server-sent events."""
    return EVENT_STREAM in request.headers.get("Accept", "")


def send_and_wait(
    request: Request,
    session: RestSession,
    events: Sequence[Mapping[str, Any]],
    *,
    key: RequestKey,
    seconds: int,
    reply_of: Callable[[RequestOutcome], Response],
) -> StreamingHttpResponse:
    """Send events like `requests.send`; return a response whose body follows later.

    `reply_of` returns the reply to an outcome in its current state; its status and headers are sent
    at once. Answers that still run after `seconds`, or wait for someone, continue without the
    client.
    """
    principal = principal_of(request)
    exchange, row_id = async_to_sync(open_exchange)(
        request, principal, session, events, key, receives=True
    )
    connection = exchange.connection
    try:
        sent = outcome_of(
            row_id, key, repeated=connection.has_repeated, unanswered=connection.unanswered
        )
        first = reply_of(sent)
    except BaseException:
        async_to_sync(exchange.close)()
        raise

    def body() -> bytes:
        # Without the session, its person has left the chat, or the credential has ended.
        now = reply_of(sent) if row_id in connection.session_ids else first
        data: bytes = JSONRenderer().render(now.data)
        return data

    streams = wants_events(request)
    frames = _events(exchange, seconds) if streams else _whole(exchange, seconds, body)
    response = async_to_sync(_answer)(exchange, frames)
    response.status_code = first.status_code
    for name in KEPT_HEADERS:
        if name in first:
            response[name] = first[name]
    if not streams:
        response["Content-Type"] = "application/json"
    return response


async def _answer(exchange: HttpExchange, frames: AsyncIterator[bytes]) -> StreamingHttpResponse:
    exchange.end_when_idle()
    return exchange.answer(frames)


async def _whole(
    exchange: HttpExchange, seconds: int, body: Callable[[], bytes]
) -> AsyncIterator[bytes]:
    try:
        async for frames in _batches(exchange, seconds):
            if not frames:
                yield KEEP_ALIVE
        yield await database.run(body)
    finally:
        await exchange.close()


async def _events(exchange: HttpExchange, seconds: int) -> AsyncIterator[bytes]:
    try:
        async for frames in _batches(exchange, seconds):
            data = "".join(f"data: {frame}\n\n" for frame in frames).encode()
            yield single_lines(data) or b": keep-alive\n\n"
        yield b"data: [DONE]\n\n"
    finally:
        await exchange.close()


async def _batches(exchange: HttpExchange, seconds: int) -> AsyncIterator[list[str]]:
    """Yield the frames of a turn as they come, and an empty list after a silence."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + seconds
    while (remaining := ends_at - loop.time()) > 0:
        batch = await exchange.connection.outgoing.batch(min(HEARTBEAT_SECONDS, remaining))
        if batch is None:
            return
        yield [outgoing.text for outgoing in batch]
