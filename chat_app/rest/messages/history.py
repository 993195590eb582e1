"""REST history: a chat's messages and its log, in the order of `seq`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import SAFE_METHODS

from agents_app.rest.problems import responses
from agents_app.rest.views import caller
from chat_app.markdown import PAGE_SECONDS
from chat_app.models import Chat, ChatEvent, Message
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.messages.event_serializers import EventSerializer, EventsQuery, events_data
from chat_app.rest.messages.message_filters import (
    FILTERS,
    MessagesQuery,
    conditions,
    expand,
    selected_fields,
)
from chat_app.rest.messages.message_serializers import (
    MessageSerializer,
    messages_data,
)
from chat_app.rest.paging import (
    SEQ_MAX,
    list_of,
    list_response,
    read_query,
    search_page,
    seq_page,
    window_page,
)
from chat_app.search.search import search_messages

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.response import Response

    from chat_app.rest.paging import Page


class MessagesView(RestView):
    """The messages of a chat."""

    read_scope = "chats:read"

    @property
    def throttle_scope(self) -> str | None:
        """Count a request with `q` as a search."""
        is_search = self.request.method in SAFE_METHODS and "q" in self.request.query_params
        return "searches" if is_search else None

    @extend_schema(
        operation_id="list_messages",
        parameters=[MessagesQuery],
        responses={200: list_of(MessageSerializer), **responses(400, 404, 429)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return a page of current messages, the newest first unless `order=asc`.

        With filters a page may have few messages or none, and still `has_more`: each page scans a
        limited number of log entries. With `q` it has the newest messages that contain all words.
        """
        query = read_query(request, MessagesQuery)
        check_member(request, chat_id)
        page = self._page(request, query, chat_id)
        html = query.get("render") == "html"
        reader, until = caller(request).pk, time.monotonic() + PAGE_SECONDS
        data = messages_data(page.rows, html=html, reader=reader, until=until)
        self.expand(data, query, reader)
        return list_response(request, selected_fields(data, query), next_cursor=page.next_cursor)

    def _page(self, request: Request, query: dict[str, Any], chat_id: str) -> Page[Any]:
        shown_there = _in_thread(chat_id, query.get("thread"))
        messages = Message.objects.filter(shown_there, chat_id=chat_id, replaced_by__isnull=True)
        condition = self.conditions(query, chat_id)
        if "words" in query:
            return search_page(
                request,
                query,
                lambda bounds, limit: search_messages(
                    chat_id,
                    query["words"],
                    limit=limit,
                    filters=condition & bounds & shown_there,
                ),
            )
        if FILTERS.intersection(query):
            last = Chat.objects.values_list("last_seq", flat=True).get(pk=chat_id)
            return window_page(messages.filter(condition), request, query, last=last)
        if (around := query.get("around")) is not None:
            query["around"] = _place_of(around, messages)
        return seq_page(messages, request, query)

    def conditions(self, query: dict[str, Any], chat_id: str) -> Q:
        """Return the condition for the filters of a query."""
        return conditions(query, chat_id)

    def expand(self, data: list[dict[str, Any]], query: dict[str, Any], reader: int) -> None:
        """Add the parts named by `expand` to messages."""
        expand(data, query, reader)


class EventsView(RestView):
    """The log of a chat."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="list_events",
        parameters=[EventsQuery],
        responses={200: list_of(EventSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return a page of the log, oldest first unless `order=desc`."""
        query = read_query(request, EventsQuery)
        check_member(request, chat_id)
        log = ChatEvent.objects.filter(chat_id=chat_id)
        if "types" in query:
            log = log.filter(type__in=query["types"])
        page = seq_page(log, request, query)
        data = events_data(page.rows)
        return list_response(request, data, next_cursor=page.next_cursor, key="seq")


def _in_thread(chat_id: str, thread: str | None) -> Q:
    """Return the condition for the messages of one thread, or for those outside threads.

    Raises Http404 if the chat does not have the thread's root.
    """
    if thread is None:
        return Q()
    if thread == "none":
        return Q(thread_only__isnull=True)
    root = Message.objects.filter(pk=thread, chat_id=chat_id).first()
    if root is None:
        raise Http404
    return Q(thread=root.version_of or root.pk)


def _place_of(around: str, messages: QuerySet[Message]) -> int:
    """Return `around` as a `seq`, or the `seq` of the message it names; raises Http404."""
    if around.isdecimal():
        return min(int(around), SEQ_MAX)
    seq = messages.filter(pk=around).values_list("seq", flat=True).first()
    if seq is None:
        raise Http404
    return seq
