"""REST: a chat's log as a page, or as a continuing stream of server-sent events.

The stream belongs to a session, like `GET /events/stream` (UAMP §13.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers

from agents_app.rest.problems import Problem, responses
from chat_app.rest.edge import check_member
from chat_app.rest.messages.event_serializers import EventSerializer, EventsQuery
from chat_app.rest.messages.history import EventsView
from chat_app.rest.paging import SEQ_MAX, list_of, read_query
from sessions_app.process import registry
from sessions_app.rest_turns.requests import (
    TRANSPORT,
    opened,
    principal_of,
    problem_of,
    session_in,
)
from sessions_app.transports import sse
from sessions_app.transports.http_exchange import HttpExchange
from uamp import RemoteProtocolError

if TYPE_CHECKING:
    from django.http import HttpResponseBase
    from rest_framework.request import Request
    from rest_framework.response import Response

    from sessions_app.access.principal import Principal

EVENT_STREAM = "text/event-stream"


class TailQuery(serializers.Serializer[Any]):
    """The query parameters of the stream."""

    after = serializers.IntegerField(min_value=0, max_value=SEQ_MAX, required=False)


class TailedEventsView(EventsView):
    """The log of a chat."""

    @extend_schema(
        operation_id="list_events",
        parameters=[
            EventsQuery,
            OpenApiParameter(
                "Last-Event-ID",
                location="header",
                required=False,
                description="`<epoch>:<seq>`, of a stream: the last `id` that the client has.",
            ),
        ],
        responses={
            (200, "application/json"): list_of(EventSerializer),
            (200, EVENT_STREAM): str,
            **responses(400, 404, 429),
        },
    )
    def get(self, request: Request, chat_id: str) -> Response | HttpResponseBase:  # type: ignore[override] # a stream is also a valid reply
        """Return a page of the log, oldest first unless `order=desc`.

        With `Accept: text/event-stream`, return a stream instead: the log after `Last-Event-ID` or
        `after` (or, without either, from now on), then the text of running answers, then all events
        as they occur.
        """
        if EVENT_STREAM not in request.headers.get("Accept", ""):
            return super().get(request, chat_id)
        query = read_query(request, TailQuery)
        check_member(request, chat_id)
        return async_to_sync(_stream)(
            request, principal_of(request), chat_id, after=query.get("after")
        )


async def _stream(
    request: Request, principal: Principal, chat_id: str, *, after: int | None
) -> HttpResponseBase:
    if not registry.current().followers.has_room_for(principal):
        raise Problem("rate_limit_exceeded", "You have too many open connections. Close one first.")
    session = await opened(request, principal, session_in(chat_id))
    exchange = HttpExchange(request._request, principal, TRANSPORT)  # noqa: SLF001 the public request has no scope
    place = sse.place_after(request.headers.get("Last-Event-ID", ""), session, after=after)
    try:
        return await sse.follow(exchange, session, place)
    except RemoteProtocolError as error:
        await exchange.close()
        raise problem_of(error) from error
    except BaseException:
        await exchange.close()
        raise
