"""REST: the chats of the caller as a page, or what happens in them as server-sent events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from asgiref.sync import async_to_sync
from drf_spectacular.utils import extend_schema

from agents_app.rest.problems import Problem, responses
from chat_app.rest.chats import ChatsView
from chat_app.rest.paging import list_of
from chat_app.rest.serializers import ChatSerializer, ChatsQuery
from sessions_app.process import registry
from sessions_app.rest_turns.requests import TRANSPORT, principal_of, problem_of
from sessions_app.rest_turns.tail import EVENT_STREAM
from sessions_app.transports.http_exchange import HttpExchange, with_heartbeat
from uamp.codec.single_lines import single_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from django.http import HttpResponseBase
    from rest_framework.request import Request
    from rest_framework.response import Response

    from sessions_app.access.principal import Principal
    from uamp import RemoteProtocolError

_WATCH = msgspec.json.encode({"type": "chats.watch"})


class WatchedChatsView(ChatsView):
    """The chats of a person."""

    @extend_schema(
        operation_id="list_chats",
        parameters=[ChatsQuery],
        responses={
            (200, "application/json"): list_of(ChatSerializer),
            (200, EVENT_STREAM): str,
            **responses(400, 403, 429),
        },
    )
    def get(self, request: Request) -> Response | HttpResponseBase:  # type: ignore[override] # a stream is also a valid reply
        """Return a page of chats, the most recently active first.

        With `Accept: text/event-stream`, stream what happens in all of them instead:
        `chats.watched` comes first; `chat.activity` names a chat and the place in its log
        (`at_seq`), with the beginning of a new message; `person.changed` says that a chat was added
        or removed. The text of running answers is not sent.
        """
        if EVENT_STREAM not in request.headers.get("Accept", ""):
            return super().get(request)
        return async_to_sync(_stream)(request, principal_of(request))


async def _stream(request: Request, principal: Principal) -> HttpResponseBase:
    if not registry.current().followers.has_room_for(principal):
        raise Problem("rate_limit_exceeded", "You have too many open connections. Close one first.")
    exchange = HttpExchange(request._request, principal, TRANSPORT)  # noqa: SLF001 the public request has no scope
    exchange.stay()
    refused: list[RemoteProtocolError] = []
    exchange.connection.on_error = refused.append
    try:
        await exchange.take(_WATCH)
    except BaseException:
        await exchange.close()
        raise
    if refused:
        await exchange.close()
        raise problem_of(refused[0])
    return exchange.answer(_frames(exchange))


async def _frames(exchange: HttpExchange) -> AsyncIterator[bytes]:
    """Yield events until the client leaves or its token expires."""
    connection = exchange.connection
    try:
        async for outgoing in with_heartbeat(connection.outgoing):
            if connection.principal.is_expired:
                return
            frame = ": keep-alive\n\n" if outgoing is None else f"data: {outgoing.text}\n\n"
            yield single_lines(frame.encode())
    finally:
        await exchange.close()
