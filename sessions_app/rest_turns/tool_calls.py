"""REST: tool calls of answers, with their pending decisions and results (docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response as Answer

from agents_app.rest.problems import responses
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.paging import ListQuery, id_page, list_of, list_response, read_query
from chat_app.rest.serializers import NoQuery
from sessions_app.models import ToolCall
from sessions_app.rest_turns.bodies import DecisionSerializer, ToolResultSerializer
from sessions_app.rest_turns.reading import (
    ToolCallSerializer,
    annotate_visibility,
    call_data,
    call_for,
    question_for,
    response_for,
)
from sessions_app.rest_turns.requests import RestSession, principal_of, send, session_in
from sessions_app.states import ToolCallState

if TYPE_CHECKING:
    from rest_framework.request import Request


class ToolCallsView(RestView):
    """The tool calls of an answer."""

    read_scope = "chats:read"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="list_tool_calls",
        parameters=[ListQuery],
        responses={200: list_of(ToolCallSerializer), **responses(400, 404, 429)},
    )
    def get(self, request: Request, response_id: str) -> Answer:
        """Return a page of an answer's calls, oldest first."""
        query = read_query(request, ListQuery)
        row = response_for(request, response_id)
        rows = annotate_visibility(request, ToolCall.objects.filter(response=row))
        page = id_page(rows, request, query)
        data = [call_data(call) for call in page.rows]
        return list_response(request, data, next_cursor=page.next_cursor)


class ToolCallView(RestView):
    """One tool call."""

    read_scope = "chats:read"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="get_tool_call",
        responses={200: ToolCallSerializer, **responses(400, 404, 429)},
    )
    def get(self, request: Request, call_id: str) -> Answer:
        """Return a call, with its last progress, or a question asked in a chat of the caller."""
        read_query(request, NoQuery)
        return Answer(call_data(question_for(request, call_id, is_open=True)))


class OpenDecisionsView(RestView):
    """The tool calls of a chat that await approval."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="list_tool_approvals",
        parameters=[ListQuery],
        responses={200: list_of(ToolCallSerializer), **responses(400, 404, 429)},
    )
    def get(self, request: Request, chat_id: str) -> Answer:
        """Return a page of the calls that await a decision, oldest first."""
        query = read_query(request, ListQuery)
        check_member(request, chat_id)
        rows = ToolCall.objects.filter(
            asked_in=chat_id,
            status=ToolCallState.ASKING,
            finished_at__isnull=True,
            response__finished_at__isnull=True,
        )
        page = id_page(annotate_visibility(request, rows), request, query)
        data = [call_data(call) for call in page.rows]
        return list_response(request, data, next_cursor=page.next_cursor)


class DecisionView(RestView):
    """A person's decision on a tool call."""

    write_scope = "tools:approve"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="decide_tool_call",
        request=DecisionSerializer,
        responses={200: ToolCallSerializer, **responses(400, 403, 404, 413, 415, 429, 503)},
    )
    def post(self, request: Request, call_id: str) -> Answer:
        """Approve or refuse a call. Allowed for the person who asked, and for owners of the chat.

        Status 404 if the call does not await the caller's decision; repeating a decision has no
        effect.
        """
        row = question_for(request, call_id)
        body = DecisionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        if not row.asked_in:
            raise Http404
        approve: dict[str, Any] = {
            "type": "tool.approve",
            "call_id": row.call_id,
            "response_id": row.response_id,
            **body.validated_data,
        }
        send(request, session_in(row.asked_in), [approve])
        return self.repeated(request, call_id)

    def repeated(self, request: Request, call_id: str) -> Answer:
        """Return the call to those who may still see it."""
        return Answer(call_data(question_for(request, call_id)))


class ToolResultView(RestView):
    """The result of a tool run by the client."""

    write_scope = "messages:write"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="give_tool_result",
        request=ToolResultSerializer,
        responses={200: ToolCallSerializer, **responses(400, 403, 404, 413, 415, 429, 503)},
    )
    def post(self, request: Request, call_id: str) -> Answer:
        """Submit the result of a client's tool, in the session that declared the tool.

        Repeating a result has no effect.
        """
        row = call_for(request, call_id)
        body = ToolResultSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        session = row.response.session
        if session is None or session.principal != principal_of(request).key:
            raise Http404
        result = {"type": "tool.result", "call_id": row.call_id, **body.validated_data}
        send(request, RestSession(name=session.wire_id), [result])
        return self.repeated(request, call_id)

    def repeated(self, request: Request, call_id: str) -> Answer:
        """Return the call to those who may still see it."""
        return Answer(call_data(call_for(request, call_id)))
