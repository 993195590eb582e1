"""REST: the threads that the caller follows in all of their chats (docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from agents_app.rest.problems import responses
from agents_app.rest.views import caller
from chat_app.conversation.thread_lists import (
    ThreadPlace,
    followed_threads,
    place_of,
    unread_of,
)
from chat_app.rest.edge import RestView
from chat_app.rest.messages.message_serializers import FaceSerializer
from chat_app.rest.overview import PREVIEW_CHARS
from chat_app.rest.paging import ListQuery, cut, list_of, list_response, place_before, read_query

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response

    from chat_app.models import ThreadFollower

LIMIT_MAX: Final = 50


class ThreadsQuery(ListQuery):
    """The query parameters of GET /api/v1/threads."""

    limit = serializers.IntegerField(
        min_value=1, max_value=LIMIT_MAX, default=20, help_text="Threads per page."
    )


class FollowedThreadSerializer(serializers.Serializer[Any]):
    """A thread that the caller follows; its id is that of its first message."""

    id = serializers.CharField()
    chat_id = serializers.CharField()
    chat_title = serializers.CharField()
    name = serializers.CharField(help_text="Who wrote the message.")
    sender_kind = serializers.CharField(help_text="user or agent")
    content = serializers.CharField(help_text="The beginning of the message; empty once deleted.")
    replies = serializers.IntegerField()
    unread = serializers.IntegerField(help_text="Replies new to the caller, counted up to 100.")
    last_at = serializers.DateTimeField()
    last_seq = serializers.IntegerField()
    participants = FaceSerializer(many=True, help_text="The five members who replied last.")


class ThreadsView(RestView):
    """The threads of the caller."""

    read_scope = "chats:read"

    throttle_scope = "searches"

    @extend_schema(
        operation_id="list_threads",
        parameters=[ThreadsQuery],
        responses={200: list_of(FollowedThreadSerializer), **responses(400)},
    )
    def get(self, request: Request) -> Response:
        """Return a page of the caller's threads: those with news first, then by last reply."""
        query = read_query(request, ThreadsQuery)
        after = place_before(request, query, ThreadPlace.read)
        limit = query["limit"]
        threads = followed_threads(caller(request).pk, after=after, limit=limit + 1)
        page = cut(threads, request, limit, lambda row: str(place_of(row)))
        unread = unread_of(page.rows)
        data = [_thread_data(row, unread.get(row.thread_id, 0)) for row in page.rows]
        return list_response(request, data, next_cursor=page.next_cursor)


def _thread_data(row: ThreadFollower, unread: int) -> dict[str, Any]:
    thread, root = row.thread, row.thread.root
    return {
        "id": root.pk,
        "chat_id": thread.chat_id,
        "chat_title": thread.chat.title,
        "name": root.name,
        "sender_kind": root.sender_kind,
        "content": root.content[:PREVIEW_CHARS],
        "replies": thread.replies,
        "unread": unread,
        "last_at": thread.last_at,
        "last_seq": thread.last_seq,
        "participants": thread.faces,
    }
