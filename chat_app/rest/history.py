"""REST history: a chat's messages and its log, in the order of `seq`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.http import Http404
from drf_spectacular.utils import extend_schema

from agents_app.rest.problems import responses
from agents_app.rest.views import caller
from chat_app.markdown import PAGE_SECONDS
from chat_app.models import ChatEvent, Message
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.message_serializers import (
    EventSerializer,
    EventsQuery,
    MessageSerializer,
    MessagesQuery,
    events_data,
    messages_data,
)
from chat_app.rest.paging import SEQ_MAX, list_of, list_response, read_query, seq_page

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.response import Response


class MessagesView(RestView):
    """The messages of a chat."""

    @extend_schema(
        operation_id="list_messages",
        parameters=[MessagesQuery],
        responses={200: list_of(MessageSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return a page of current messages, the newest first unless `order=asc`."""
        query = read_query(request, MessagesQuery)
        check_member(request, chat_id)
        messages = _shown(chat_id, query.get("thread"))
        if (around := query.get("around")) is not None:
            query["around"] = _place_of(around, messages)
        page = seq_page(messages, request, query)
        html = query.get("render") == "html"
        reader, until = caller(request).pk, time.monotonic() + PAGE_SECONDS
        data = messages_data(page.rows, html=html, reader=reader, until=until)
        return list_response(request, data, next_cursor=page.next_cursor)


class EventsView(RestView):
    """The log of a chat."""

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


def _shown(chat_id: str, thread: str | None) -> QuerySet[Message]:
    """Return the current messages of a chat, or those of one thread, or those outside of threads.

    Raises Http404 for a thread of a message that the chat does not have.
    """
    messages = Message.objects.filter(chat_id=chat_id, replaced_by__isnull=True)
    if thread is None:
        return messages
    if thread == "none":
        return messages.filter(thread_only__isnull=True)
    root = Message.objects.filter(pk=thread, chat_id=chat_id).first()
    if root is None:
        raise Http404
    return messages.filter(thread=root.version_of or root.pk)


def _place_of(around: str, messages: QuerySet[Message]) -> int:
    """Return the `seq` that `around` is, or that its message has; raises Http404."""
    if around.isdecimal():
        return min(int(around), SEQ_MAX)
    seq = messages.filter(pk=around).values_list("seq", flat=True).first()
    if seq is None:
        raise Http404
    return seq
