"""UAMP without a socket: HTTP + SSE (§13.2).

It shares the sockets' handlers. `POST /events` accepts one event and returns 202; what follows is
sent on `GET /events/stream`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

import uamp
from agents_app.rest.rights import ANY
from chat_app.log import fanout
from sessions_app.handlers.sessions import attach_session, find_session, hold_session
from sessions_app.process import registry
from sessions_app.transports.http_exchange import (
    HttpExchange,
    count_events,
    principal_of,
    problem,
    protocol_view,
    with_heartbeat,
)
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.codec.single_lines import single_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from sessions_app.connection.outgoing_queue import Outgoing
    from sessions_app.records import OpenSession


@protocol_view("POST")
async def post_event(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """`POST /events`: one client event. Returns 202 with direct replies; the rest is streamed."""
    del name
    principal = await principal_of(request, protocol="uamp", scope=ANY)
    await count_events(request, principal)
    exchange = HttpExchange(request, principal, "sse")
    try:
        session_id = request.headers.get("X-Session-ID", "")
        if session_id:
            await exchange.attach_known(session_id)
        errors: list[RemoteProtocolError] = []
        exchange.connection.on_error = errors.append
        rows = _rows_of(exchange)
        await exchange.take(request.body)
        replies = exchange.connection.outgoing.take_replies()
        if errors:
            # The error is in the reply, but remaining rate limits also concern the streams.
            limits = [r for r in replies if json.loads(r.text)["type"] == "rate_limit"]
            await _send_to_streams(limits, {**rows, **_rows_of(exchange)})
            return problem(errors[0], instance=request.path)
        opened = next(iter(exchange.connection.sessions), session_id)
        await _send_to_streams(replies, {**rows, **_rows_of(exchange)})
    finally:
        await exchange.close()
    body = {"session_id": opened, "events": [json.loads(reply.text) for reply in replies]}
    response = HttpResponse(msgspec.json.encode(body), status=202, content_type="application/json")
    response["X-Session-ID"] = opened
    return response


def _rows_of(exchange: HttpExchange) -> dict[str, str]:
    """Return the row ids of an exchange's sessions by their ids on the wire."""
    return {
        wire_id: attached.session.id for wire_id, attached in exchange.connection.sessions.items()
    }


async def _send_to_streams(replies: list[Outgoing], rows: Mapping[str, str]) -> None:
    """Also send the replies to the session's streams, where §13.2 puts them.

    The group is named after the row, since ids on the wire are unique only per principal.
    """
    for reply in replies:
        if (row_id := rows.get(reply.session_id)) is not None:
            await fanout.send(
                fanout.session_group(row_id),
                {
                    "type": "session.frame",
                    "row": row_id,
                    "session": reply.session_id,
                    "frame": reply.text,
                },
            )


@protocol_view("GET")
async def stream_events(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """`GET /events/stream`: a session's server events, starting after `Last-Event-ID`."""
    del name
    session_id = request.headers.get("X-Session-ID") or request.GET.get("session_id", "")
    principal = await principal_of(request, protocol="uamp", scope="chats:read")
    await count_events(request, principal)
    exchange = HttpExchange(request, principal, "sse")
    session = await find_session(session_id, exchange.connection.principal) if session_id else None
    if session is None:
        raise RemoteProtocolError(
            ErrorCode.UNKNOWN_SESSION,
            "Specify one of your sessions in X-Session-ID; "
            "POST /events with session.create opens one.",
        )
    if not registry.current().followers.has_room_for(exchange.connection.principal):
        raise RemoteProtocolError(
            ErrorCode.RATE_LIMITED, "You have too many open connections. Close one first."
        )
    place = place_after(request.headers.get("Last-Event-ID", ""), session, after=session.opened_seq)
    try:
        return await follow(exchange, session, place)
    except BaseException:
        await exchange.close()
        raise


async def follow(
    exchange: HttpExchange, session: OpenSession, place: uamp.Resume
) -> HttpResponseBase:
    """Return a session's stream, with heartbeats, from a position in its chat's log.

    The exchange must not have attached the session; closing the stream closes the exchange. Raises
    RemoteProtocolError.
    """
    exchange.stay()
    await exchange.join(fanout.session_group(session.id))
    await hold_session(exchange.connection, session.id)
    await attach_session(exchange.connection, session, ev.SessionCreate(resume=place))
    await exchange.arrive()
    return exchange.answer(_sse(exchange, session.epoch))


def place_after(last_event_id: str, session: OpenSession, *, after: int | None) -> uamp.Resume:
    """Return the position of a stream's start: its `Last-Event-ID`, else `after`, else now.

    An invalid `Last-Event-ID` becomes a position that no log has, which is answered with `resync`.
    """
    if last_event_id:
        epoch, seq = _last_event_id(last_event_id)
    else:
        epoch, seq = session.epoch, session.last_seq if after is None else after
    return uamp.Resume(session_id=session.wire_id, epoch=epoch, after=seq)


def _last_event_id(value: str) -> tuple[str, int]:
    """Parse `<epoch>:<seq>`; invalid values yield the empty epoch, which no log has.

    Python refuses to parse numbers with thousands of digits; 18 digits exceed any log.
    """
    epoch, _, seq = value.partition(":")
    is_place = epoch and seq.isascii() and seq.isdigit()
    return (epoch, int(seq[:18])) if is_place else ("", 0)


async def _sse(exchange: HttpExchange, epoch: str) -> AsyncIterator[bytes]:
    try:
        yield b": stream open\n\n"
        async for outgoing in with_heartbeat(exchange.connection.outgoing):
            if outgoing is None:
                yield b": keep-alive\n\n"
            elif outgoing.seq is None:
                yield single_lines(f"data: {outgoing.text}\n\n".encode())
            else:
                # Only durable events are numbered; a returning client names the last one.
                frame = f"id: {epoch}:{outgoing.seq}\ndata: {outgoing.text}\n\n"
                yield single_lines(frame.encode())
    finally:
        await exchange.close()
