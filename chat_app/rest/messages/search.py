"""REST: searching the messages of the caller's chats (docs/rest.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers

from agents_app.rest.problems import Problem, responses
from agents_app.rest.views import caller
from chat_app.conversation.finding import find_messages
from chat_app.rest.edge import RestView
from chat_app.rest.messages.message_serializers import MessageSerializer, messages_data
from chat_app.rest.paging import list_response, make_cursor, place_before, read_query
from chat_app.search.filters import InvalidSearch, parse_search

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response

LIMIT_MAX = 50
QUERY_CHARS = 500


class SearchQuery(serializers.Serializer[Any]):
    """The query parameters of GET /api/v1/search."""

    q = serializers.CharField(
        max_length=QUERY_CHARS,
        help_text="Words that a message has, and from:, agent:, in:, has:file, before:, after:.",
    )
    limit = serializers.IntegerField(min_value=1, max_value=LIMIT_MAX, default=20)
    cursor = serializers.CharField(
        required=False, help_text="The `next_cursor` of the previous page, unchanged."
    )


class FoundMessageSerializer(MessageSerializer):
    """A search hit, with the title of its chat."""

    chat_title = serializers.CharField()


# Hits, newest first; `searched_chats` of the `chats` that the caller may search were covered.
# `unknown_filters` look like filters, and were searched as words.
FOUND = inline_serializer(
    "Found",
    {
        "object": serializers.CharField(default="list"),
        "first_id": serializers.CharField(allow_null=True),
        "last_id": serializers.CharField(allow_null=True),
        "data": FoundMessageSerializer(many=True),
        "has_more": serializers.BooleanField(),
        "next_cursor": serializers.CharField(allow_null=True),
        "searched_chats": serializers.IntegerField(),
        "chats": serializers.IntegerField(),
        "unknown_filters": serializers.ListField(child=serializers.CharField()),
    },
)


class SearchView(RestView):
    """The messages of the caller's chats."""

    read_scope = "chats:read"

    throttle_scope = "searches"

    @extend_schema(
        operation_id="search_messages",
        parameters=[SearchQuery],
        responses={200: FOUND, **responses(400)},
    )
    def get(self, request: Request) -> Response:
        """Return a page of messages that contain all words and match all filters, newest first."""
        query = read_query(request, SearchQuery)
        reader = caller(request).pk
        try:
            terms = parse_search(query["q"])
            result = find_messages(
                terms,
                user_id=reader,
                limit=query["limit"],
                places=place_before(request, query, _places),
            )
        except InvalidSearch as error:
            detail = str(error)
            raise Problem(
                "invalid", detail, errors=[{"parameter": "q", "detail": detail}]
            ) from error
        data = messages_data(result.messages, html=False, reader=reader)
        following = make_cursor(request, json.dumps(result.places)) if result.places else None
        page = list_response(
            request,
            [{**row, "chat_title": result.titles[row["chat_id"]]} for row in data],
            next_cursor=following,
        )
        page.data |= {
            "searched_chats": result.searched,
            "chats": result.chats,
            "unknown_filters": terms.unknown,
        }
        return page


def _places(place: str) -> dict[str, int]:
    places: dict[str, int] = json.loads(place)
    return places
