"""Responses and tool calls in REST, for members of their chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q
from django.http import Http404
from rest_framework import serializers

from agents_app.rest.views import rights_of
from chat_app.conversation.versions import answers_of
from chat_app.log.deletions import has_deleted_answer
from chat_app.rest.edge import visible_chats
from chat_app.rest.uamp_types import ErrorSerializer, UampField
from payments_app.money import Money
from sessions_app.models import PaymentRequest, Response, ToolCall, ToolCallKind
from sessions_app.selectors import delegated_responses, sessions_named
from sessions_app.states import PaymentState, ToolCallState
from sessions_app.tools.approvals import asker_id
from uamp import ResponseState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from rest_framework.request import Request

    from sessions_app.access.principal import Principal

STATES = [state.value for state in ResponseState]


class WaitingSerializer(serializers.Serializer[Any]):
    """A wait of a response, until a deadline; the amount is that of a payment.

    Work that it delegated may wait for it too.
    """

    kind = serializers.CharField(help_text="payment, approval or tool_result")
    deadline = serializers.DateTimeField()
    amount = serializers.CharField(required=False, help_text="A decimal string.")
    currency = serializers.CharField(required=False)
    call_id = serializers.CharField(
        required=False, help_text="The REST id of the tool call, for a decision or a result."
    )
    response_id = serializers.CharField(
        required=False, help_text="The response of delegated work that waits, if it is not this."
    )
    agent = serializers.CharField(required=False, help_text="The agent that does this work.")


class ResponseSerializer(serializers.Serializer[Any]):
    """An agent's answer, running or ended."""

    id = serializers.CharField()
    chat_id = serializers.CharField()
    agent = serializers.CharField()
    status = serializers.ChoiceField(choices=STATES)
    question_id = serializers.CharField(allow_null=True, help_text="The message that it answers.")
    message_id = serializers.CharField(
        allow_null=True, help_text="The message that it produced, once it has ended."
    )
    text = serializers.CharField(
        help_text="The answer; while it is running, the part stored so far."
    )
    output = serializers.ListField(
        child=UampField("ContentItem"), help_text="Its content items, once it has ended."
    )
    usage = UampField(
        "UsageStats",
        allow_null=True,
        help_text="Tokens and prices as in `response.done`; for exact amounts read `…/payments`.",
    )
    error = ErrorSerializer(allow_null=True)
    waiting_for = WaitingSerializer(
        many=True,
        help_text="The payments, decisions and client tool results that a `waiting` response needs,"
        " including those of work that it delegated.",
    )
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class ToolCallSerializer(serializers.Serializer[Any]):
    """A tool call of an answer."""

    id = serializers.CharField()
    call_id = serializers.CharField(help_text="Its id in the events of its response.")
    response_id = serializers.CharField()
    kind = serializers.CharField(help_text="Who executes it: client, long (a worker) or agent.")
    name = serializers.CharField()
    arguments = serializers.CharField(help_text="JSON text.")
    status = serializers.CharField(
        help_text="asking, waiting, queued, running, done, failed, cancelled or unknown"
    )
    result = serializers.CharField()
    is_error = serializers.BooleanField()
    content_items = serializers.ListField(child=UampField("ContentItem"))
    progress = UampField(
        "ToolProgress", allow_null=True, help_text="The latest progress that the tool reported."
    )
    asked_user_id = serializers.CharField(
        allow_null=True, help_text="Who asked for the work and may allow it, besides owners."
    )
    decided_by = serializers.CharField(allow_null=True)
    decided_at = serializers.DateTimeField(allow_null=True)
    deadline = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


def responses_for(request: Request) -> QuerySet[Any]:
    """Return the responses in the caller's chats."""
    return Response.objects.filter(chat__in=visible_chats(request))


def response_for(request: Request, response_id: str) -> Response:
    """Return a response in one of the caller's chats; raises Http404."""
    row: Response | None = responses_for(request).filter(pk=response_id).first()
    if row is None:
        raise Http404
    return row


def annotate_visibility(request: Request, rows: QuerySet[ToolCall]) -> QuerySet[Any]:
    """Annotate tool calls with what `call_data` may show of them to the caller.

    `is_read`: all. `is_open`: the question, which members of the chat see where it was asked, until
    it is decided; the work itself may be delegated, and is then read only in its own chat. A
    credential that may not read chats is shown neither.
    """
    chats = visible_chats(request)
    is_read = Q(response__chat__in=chats) & ~Q(has_deleted_answer("response_id"))
    is_open = Q(asked_in__in=chats.values("pk"), status=ToolCallState.ASKING)
    if not rights_of(request).has("chats:read"):
        is_read = is_open = Q(pk__isnull=True)
    return rows.annotate(
        is_read=ExpressionWrapper(is_read, BooleanField()),
        is_open=ExpressionWrapper(is_open, BooleanField()),
    ).select_related("response__session")


def call_for(request: Request, call_id: str) -> Any:
    """Return a call of a response in the caller's chats by its REST id; raises Http404."""
    return _shown_call(request, call_id, Q(response__chat__in=visible_chats(request)))


def question_for(request: Request, call_id: str, *, is_open: bool = False) -> Any:
    """Return a call that was asked about in the caller's chats, or is one of theirs.

    With `is_open`, only questions that are not decided yet. Raises Http404.
    """
    chats = visible_chats(request)
    is_asked = Q(asked_in__in=chats.values("pk"))
    if is_open:
        is_asked &= Q(status=ToolCallState.ASKING)
    return _shown_call(request, call_id, Q(response__chat__in=chats) | is_asked)


def _shown_call(request: Request, call_id: str, condition: Q) -> Any:
    rows = ToolCall.objects.filter(condition, pk=int(call_id))
    row = annotate_visibility(request, rows).first()
    if row is None:
        raise Http404
    return row


def called_tools() -> Q:
    """Return the condition that a message is the answer of a response that called tools."""
    return Q(Exists(ToolCall.objects.filter(response_id=OuterRef("response_id"))))


def of_session(wire_id: str, principal: Principal) -> Q:
    """Return the condition that a message was sent or answered in a principal's session."""
    rows = Response.objects.filter(session__in=sessions_named(wire_id, principal))
    return Q(response_id__in=rows.values("pk")) | Q(pk__in=rows.values("message_id"))


def responses_data(response_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return responses in the format of ResponseSerializer, in the given order.

    The caller has checked access. The number of queries is constant.
    """
    rows = (
        Response.objects.filter(pk__in=response_ids)
        .annotate(is_withheld=has_deleted_answer())
        .select_related("agent")
        .in_bulk()
    )
    answers = answers_of(response_ids)
    waiting = _waited_for([pk for pk, row in rows.items() if row.status == ResponseState.WAITING])
    return [
        _response_data(rows[response_id], answers.get(response_id), waiting.get(response_id, []))
        for response_id in response_ids
        if response_id in rows
    ]


def _waited_for(response_ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the waits of these responses, or of work that they delegated."""
    by_response: dict[str, list[dict[str, Any]]] = {pk: [] for pk in response_ids}
    if not by_response:
        return by_response
    work = {
        row.pk: (pk, row) for pk, rows in delegated_responses(response_ids).items() for row in rows
    }

    def add(response_id: str, demand: dict[str, Any]) -> None:
        if response_id in by_response:
            by_response[response_id].append(demand)
        else:
            first, row = work[response_id]
            by_response[first].append({**demand, "response_id": row.pk, "agent": row.agent.name})

    waiting = [*response_ids, *work]
    payments = PaymentRequest.objects.filter(
        response__in=waiting, status=PaymentState.WAITING, decided_at__isnull=True
    )
    for payment in payments.order_by("pk"):
        amount = Money(payment.amount, payment.asset)
        demand = {"kind": "payment", "deadline": payment.deadline}
        demand |= {"amount": str(amount), "currency": amount.asset}
        add(payment.response_id, demand)
    is_asking = Q(status=ToolCallState.ASKING)
    is_with_client = Q(kind=ToolCallKind.CLIENT, status=ToolCallState.WAITING)
    calls = ToolCall.objects.filter(is_asking | is_with_client, response__in=waiting)
    for call in calls.order_by("pk"):
        kind = "approval" if call.status == ToolCallState.ASKING else "tool_result"
        add(call.response_id, {"kind": kind, "deadline": call.deadline, "call_id": str(call.pk)})
    return by_response


def _response_data(
    row: Any, answer_id: str | None, waiting_for: list[dict[str, Any]]
) -> dict[str, Any]:
    error = row.error
    return {
        "id": row.pk,
        "chat_id": row.chat_id,
        "agent": row.agent.name,
        "status": row.status,
        "question_id": row.message_id,
        "message_id": answer_id,
        "text": "" if row.is_withheld else row.text,
        "output": [] if row.is_withheld or row.finished_at is None else row.output,
        "usage": row.usage,
        "error": None if error is None else {"code": error["code"], "message": error["message"]},
        "waiting_for": waiting_for,
        "created_at": row.created_at,
        "finished_at": row.finished_at,
    }


def call_data(row: Any) -> dict[str, Any]:
    """Return a tool call of `annotate_visibility` in the format of ToolCallSerializer."""
    return {
        "id": str(row.pk),
        "call_id": row.call_id,
        "response_id": row.response_id,
        "kind": row.kind,
        "name": row.name,
        "arguments": row.arguments if row.is_read or row.is_open else "{}",
        "status": row.status,
        "result": row.result if row.is_read else "",
        "is_error": row.is_error,
        "content_items": row.content_items if row.is_read else [],
        "progress": row.progress if row.is_read else None,
        "asked_user_id": asker_id(row),
        "decided_by": None if row.decided_by_id is None else str(row.decided_by_id),
        "decided_at": row.decided_at,
        "deadline": row.deadline,
        "created_at": row.created_at,
        "finished_at": row.finished_at,
    }
