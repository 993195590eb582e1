"""REST: sending a message to a chat, as over a socket (docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.db.models import Exists, OuterRef, Q, Sum
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import responses
from agents_app.rest.views import caller
from chat_app.rest.edge import check_member
from chat_app.rest.messages.conversation import MessageView
from chat_app.rest.messages.history import MessagesView
from chat_app.rest.messages.message_filters import has_item
from chat_app.rest.messages.message_serializers import MessageSerializer, message_data
from payments_app.money import DEFAULT_ASSET, Money
from payments_app.reporting import answer_costs
from sessions_app.rest.chats.failures import failures_of
from sessions_app.rest.chats.receipts import receipts_of
from sessions_app.rest_turns.bodies import NewMessageSerializer, input_events
from sessions_app.rest_turns.reading import (
    ResponseSerializer,
    called_tools,
    of_session,
    responses_data,
)
from sessions_app.rest_turns.requests import (
    HEADER,
    key_of,
    principal_of,
    send,
    sender_of,
    session_in,
)
from sessions_app.rest_turns.waiting import (
    EVENT_STREAM,
    SECONDS_MAX,
    send_and_wait,
    wants_events,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpResponseBase
    from rest_framework.request import Request

    from sessions_app.rest_turns.requests import RequestKey, RequestOutcome, RestSession

IDEMPOTENCY_KEY = OpenApiParameter(
    HEADER,
    location="header",
    required=False,
    description="1 to 128 characters. A repeated request has no further effect; a different"
    " request with the same key is refused (409).",
)


class UnansweredSerializer(serializers.Serializer[Any]):
    """Why agents do not answer a message addressed to them: a protocol code and a message."""

    code = serializers.CharField()
    message = serializers.CharField()


class SentMessageSerializer(serializers.Serializer[Any]):
    """A sent message and the answers that it started.

    A queued message has neither yet.
    """

    message = MessageSerializer(allow_null=True)
    responses = ResponseSerializer(many=True)
    queued = serializers.BooleanField()
    unanswered = UnansweredSerializer(allow_null=True)


class SentMessagesView(MessagesView):
    """The messages of a chat."""

    answers_repeats = True
    write_scope = "messages:write"
    methods_storing_text: ClassVar = ()  # the handler counts the text, as on a socket

    def conditions(self, query: dict[str, Any], chat_id: str) -> Q:
        """Return the filter conditions, including those on responses and payments."""
        condition = super().conditions(query, chat_id)
        has = query.get("has", "").split(",")
        if "tool" in has:
            condition &= called_tools() | has_item("tool_call")
        if "payment" in has:
            condition &= Q(Exists(answer_costs.charges(OuterRef("response_id"))))
        if "cost_min" in query:
            charged = answer_costs.charges(OuterRef("response_id"), asset=DEFAULT_ASSET)
            total = charged.order_by().values("response_id").annotate(total=Sum("amount"))
            least = Money.parse(query["cost_min"]).amount
            condition &= Q(Exists(total.filter(total__gte=least)))
        if "session" in query:
            condition &= of_session(query["session"], principal_of(self.request))
        return condition

    def expand(self, data: list[dict[str, Any]], query: dict[str, Any], reader: int) -> None:
        """Add the parts named in `expand` to the messages."""
        super().expand(data, query, reader)
        expand_answers(data, query, reader)

    @extend_schema(
        operation_id="create_message",
        parameters=[IDEMPOTENCY_KEY, LOCATION],
        request=NewMessageSerializer,
        responses={
            (201, "application/json"): SentMessageSerializer,
            (201, EVENT_STREAM): str,
            202: SentMessageSerializer,
            **responses(400, 403, 404, 409, 413, 415, 429, 503),
        },
    )
    def post(self, request: Request, chat_id: str) -> HttpResponseBase:
        """Send a message; members see it and its answers live. Status 202 if it is queued.

        The answers continue after this request: read them, or follow `…/events` as a stream. With
        `wait` the reply comes when they have ended, and with `Accept: text/event-stream` it is the
        stream of their events.
        """
        check_member(request, chat_id)
        body = NewMessageSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values: dict[str, Any] = body.validated_data
        key = key_of(request)
        inputs = input_events(values, sender=sender_of(request), chat_id=chat_id)
        create = {"type": "response.create", "queue": values.get("queue", False)}
        if "agents" in values:
            create["agents"] = values["agents"]
        return turn_response(request, session_in(chat_id), [*inputs, create], values, key=key)


class AnsweredMessageView(MessageView):
    """One message."""

    def expand(self, data: list[dict[str, Any]], query: dict[str, Any], reader: int) -> None:
        """Add the parts named in `expand` to the message."""
        super().expand(data, query, reader)
        expand_answers(data, query, reader)


def expand_answers(data: list[dict[str, Any]], query: dict[str, Any], reader: int) -> None:
    """Add to messages of one chat the parts of their answers that `expand` names, or null."""
    names = query.get("expand", "").split(",")
    ids = [row["response_id"] for row in data if row["response_id"]]
    if "payment" in names:
        rows = receipts_of(data[0]["chat_id"], reader, response_ids=ids) if ids else []
        receipts = {receipt["response_id"]: receipt for receipt in rows}
        for row in data:
            row["payment"] = receipts.get(row["response_id"])
    if "failed_answers" in names:
        failures = failures_of([row["id"] for row in data])
        for row in data:
            row["failed_answers"] = failures.get(row["id"], [])
    if "response" in names:
        answers = {response["id"]: response for response in responses_data(ids)}
        for row in data:
            row["response"] = answers.get(row["response_id"])


def turn_response(
    request: Request,
    session: RestSession,
    events: Sequence[Mapping[str, Any]],
    values: Mapping[str, Any],
    *,
    key: RequestKey,
) -> HttpResponseBase:
    """Send the events of a turn and return its reply: at once, or when its answers have ended.

    `values` is the body of the request. With `Accept: text/event-stream`, the reply is a stream of
    the turn's events.
    """

    def reply_of(sent: RequestOutcome) -> Response:
        return sent_response(request, sent, queue=values.get("queue", False))

    seconds = values.get("wait", SECONDS_MAX if wants_events(request) else 0)
    if not seconds:
        return reply_of(send(request, session, events, key=key))
    return send_and_wait(request, session, events, key=key, seconds=seconds, reply_of=reply_of)


def sent_response(request: Request, sent: RequestOutcome, *, queue: bool = False) -> Response:
    """Return the reply to a turn, with the current state of its message and responses."""
    message, why = None, sent.unanswered
    headers = {"Idempotency-Replayed": "true"} if sent.repeated else {}
    if sent.message_id is not None:
        message = message_data(sent.message_id, reader=caller(request).pk)
        headers["Location"] = f"/api/v1/messages/{sent.message_id}"
    data = {
        "message": message,
        "responses": responses_data(sent.response_ids),
        # In a mirror every message is queued (ADR 66).
        "queued": message is None and (queue or not (sent.response_ids or why)),
        "unanswered": None if why is None else {"code": why.code, "message": why.message},
    }
    return Response(data, status=202 if data["queued"] else 201, headers=headers)
