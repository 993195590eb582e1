"""The state of a response as a text for its webhooks, different for each new request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import (
    Case,
    CharField,
    F,
    IntegerField,
    Max,
    OuterRef,
    Q,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce, Concat

from sessions_app.models import PaymentRequest, ToolCall, ToolCallKind
from sessions_app.states import ToolCallState
from uamp import ResponseState

if TYPE_CHECKING:
    from django.db.models import QuerySet

ENDED: Final = (
    ResponseState.COMPLETED.value,
    ResponseState.CANCELLED.value,
    ResponseState.FAILED.value,
)
_WAITS: Final = Q(kind=ToolCallKind.CLIENT, status=ToolCallState.WAITING) | Q(
    status=ToolCallState.ASKING
)


def with_state(webhooks: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate webhooks with the `state` of their response.

    The state is `queued`, `working`, `tool:<id>` or `payment:<id>` for the newest request to the
    client, or the response's final state.
    """
    calls = ToolCall.objects.filter(_WAITS, response=OuterRef("response"), finished_at=None)
    # An agent that the response delegated to also asks its client, in the same chat.
    below = ToolCall.objects.filter(
        asked_in=OuterRef("response__chat"), status=ToolCallState.ASKING, finished_at=None
    )
    unpaid = PaymentRequest.objects.filter(response=OuterRef("response"), decided_at=None)
    unpaid_below = PaymentRequest.objects.filter(
        asked_in=OuterRef("response__chat"), decided_at=None
    )
    result: QuerySet[Any] = webhooks.annotate(
        call=Coalesce(_newest(calls), _newest(below, "asked_in")),
        payment=Coalesce(_newest(unpaid), _newest(unpaid_below, "asked_in")),
        state=Case(
            When(response__finished_at__isnull=False, then=F("response__status")),
            When(payment__isnull=False, then=_named("payment:", "payment")),
            When(call__isnull=False, then=_named("tool:", "call")),
            When(response__status=ResponseState.QUEUED.value, then=Value("queued")),
            default=Value("working"),
            output_field=CharField(),
        ),
    )
    return result


def _newest(rows: QuerySet[Any], group: str = "response") -> Subquery:
    grouped = rows.order_by().values(group).annotate(newest=Max("id")).values("newest")
    return Subquery(grouped, output_field=IntegerField())


def _named(prefix: str, field: str) -> Concat:
    return Concat(Value(prefix), Cast(field, CharField()))
