"""REST: requesting, reading, cancelling and regenerating agents' answers (docs/rest.md)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, ClassVar

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response as Answer

from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import Problem, responses
from chat_app.conversation.versions import answers_of
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.paging import ListQuery, list_of, list_response, read_query, time_page
from chat_app.rest.serializers import NoQuery
from sessions_app.models import Response
from sessions_app.rest_turns.bodies import NewResponseSerializer, RetrySerializer, input_events
from sessions_app.rest_turns.messages import (
    IDEMPOTENCY_KEY,
    SentMessageSerializer,
    turn_response,
)
from sessions_app.rest_turns.reading import (
    STATES,
    ResponseSerializer,
    response_for,
    responses_data,
)
from sessions_app.rest_turns.requests import (
    TRANSPORT,
    RestSession,
    key_of,
    send,
    sender_of,
    session_in,
)
from sessions_app.rest_turns.waiting import EVENT_STREAM

if TYPE_CHECKING:
    from django.http import HttpResponseBase
    from rest_framework.request import Request


class ResponsesQuery(ListQuery):
    """The query parameters of GET /api/v1/chats/{id}/responses."""

    status = serializers.ChoiceField(
        choices=STATES, required=False, help_text="Only responses in this state."
    )
    agent = serializers.CharField(
        required=False, max_length=100, help_text="Only responses of the agent with this name."
    )


class ChatResponsesView(RestView):
    """The answers of a chat."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="list_responses",
        parameters=[ResponsesQuery],
        responses={200: list_of(ResponseSerializer), **responses(400, 404, 429)},
    )
    def get(self, request: Request, chat_id: str) -> Answer:
        """Return a page of a chat's answers, newest first."""
        query = read_query(request, ResponsesQuery)
        check_member(request, chat_id)
        rows = Response.objects.filter(chat_id=chat_id).only("created_at")
        if "status" in query:
            rows = rows.filter(status=query["status"])
        if "agent" in query:
            rows = rows.filter(agent__name__iexact=query["agent"])
        page = time_page(rows, request, query, field="created_at")
        data = responses_data([row.pk for row in page.rows])
        return list_response(request, data, next_cursor=page.next_cursor)


class ResponsesView(RestView):
    """Answers that the caller requests from one agent."""

    answers_repeats = True
    write_scope = "messages:write"
    takes_restricted_keys = True

    methods_storing_text: ClassVar = ()

    @extend_schema(
        operation_id="create_response",
        parameters=[IDEMPOTENCY_KEY, LOCATION],
        request=NewResponseSerializer,
        responses={
            (201, "application/json"): SentMessageSerializer,
            (201, EVENT_STREAM): str,
            202: SentMessageSerializer,
            **responses(400, 402, 403, 404, 409, 413, 415, 429, 503),
        },
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Ask an agent, in a chat that it is a member of or in a new private chat.

        `responses[0].chat_id` is the chat in which to ask the next question.
        """
        body = NewResponseSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values: dict[str, Any] = body.validated_data
        key = key_of(request)
        agent = values["agent"]
        if "chat" in values:
            check_member(request, values["chat"])
            session = session_in(values["chat"], agent)
        elif key.is_given:
            # Derive the session from the key, so that a repeat finds it.
            digest = hashlib.sha256(key.event_id.encode()).hexdigest()
            session = RestSession(agent=agent, name=f"{TRANSPORT}-{digest[:40]}")
        else:
            session = RestSession(agent=agent)
        sender, chat_id = sender_of(request), values.get("chat", "")
        inputs = input_events(values, sender=sender, chat_id=chat_id)
        create: dict[str, Any] = {"type": "response.create", "queue": values.get("queue", False)}
        for name in ("response", "response_format"):
            if name in values:
                create[name] = values[name]
        return turn_response(request, session, [*inputs, create], values, key=key)


class ResponseView(RestView):
    """One agent's answer."""

    read_scope = "chats:read"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="get_response",
        responses={200: ResponseSerializer, **responses(400, 404, 429)},
    )
    def get(self, request: Request, response_id: str) -> Answer:
        """Return an answer in one of the caller's chats, running or ended."""
        read_query(request, NoQuery)
        row = response_for(request, response_id)
        return Answer(responses_data([row.pk])[0])


class CancelView(RestView):
    """The cancellation of an answer."""

    write_scope = "messages:write"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="cancel_response",
        request=None,
        responses={202: ResponseSerializer, **responses(403, 404, 409, 413, 429, 503)},
    )
    def post(self, request: Request, response_id: str) -> Answer:
        """Cancel a running answer, in whichever process it runs; usage so far is charged.

        If it has already ended, the request is refused (409, `nothing_to_cancel`).
        """
        row = response_for(request, response_id)
        cancel = {"type": "response.cancel", "response_id": row.pk}
        send(request, session_in(row.chat_id), [cancel])
        return Answer(responses_data([row.pk])[0], status=202)

    def repeated(self, request: Request, response_id: str) -> Answer:
        """Return the current answer, to callers who may still read it."""
        row = response_for(request, response_id)
        return Answer(responses_data([row.pk])[0], status=202)


class RetryView(RestView):
    """An answer that replaces another."""

    answers_repeats = True
    write_scope = "messages:write"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="retry_response",
        parameters=[IDEMPOTENCY_KEY, LOCATION],
        request=RetrySerializer,
        responses={
            (201, "application/json"): SentMessageSerializer,
            (201, EVENT_STREAM): str,
            **responses(400, 402, 403, 404, 409, 413, 415, 429, 503),
        },
    )
    def post(self, request: Request, response_id: str) -> HttpResponseBase:
        """Regenerate an answer. Allowed for the person who asked, and for owners of the chat.

        The previous answer is kept as a version of the message.
        """
        row = response_for(request, response_id)
        body = RetrySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        key = key_of(request)
        answer_id = answers_of([row.pk]).get(row.pk)
        if answer_id is None:
            if row.finished_at is None:
                raise Problem("response_running", "The answer has not ended. Cancel it first.")
            raise Http404
        create: dict[str, Any] = {"type": "response.create", "replaces": answer_id}
        if "response" in body.validated_data:
            create["response"] = body.validated_data["response"]
        session = session_in(row.chat_id)
        return turn_response(request, session, [create], body.validated_data, key=key)
