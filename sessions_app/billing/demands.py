"""The demands and charges of an answer, with those of the work that it delegated. Synchronous.

A demand of delegated work is one of the requested answer: its client decides, in its own chat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from payments_app.reporting import answer_costs
from sessions_app import selectors
from sessions_app.billing import requests
from sessions_app.billing.events import required
from sessions_app.models import PaymentRequest, Response, ToolCall
from sessions_app.states import PaymentState, ToolCallState
from sessions_app.tools.approvals import delegated_questions
from sessions_app.tools.delegated_calls import works_for

if TYPE_CHECKING:
    from payments_app.money import Money
    from sessions_app.records import OpenSession
    from uamp import events as ev


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerCharges:
    """The charges for an answer and for all work that it delegated, by currency.

    `is_final` is whether all of it has ended.
    """

    amounts: tuple[Money, ...]
    is_final: bool


def demands_below(
    session: OpenSession, response_id: str
) -> list[ev.ToolApprovalRequired | ev.PaymentRequired]:
    """Return the open questions about work that a response delegated, for a session's client.

    Payments are those that the session's person or visitor may make.
    """
    payments = [
        demand
        for demand in payable_demands(session, response_id)
        if demand.response_id != response_id
    ]
    return [*delegated_questions(session.chat_id, response_id), *payments]


def payable_demands(session: OpenSession, response_id: str) -> list[ev.PaymentRequired]:
    """Return the demands for a response or its delegated work that a session may pay, in order."""
    return [
        required(row, row.response.agent.name)
        for row in requests.waiting_payments(session)
        if row.response_id == response_id or works_for(row.response_id, response_id)
    ]


def open_payments(response_id: str) -> list[PaymentRequest]:
    """Return the open payment requests of a response and of its delegated work, oldest first."""
    rows = PaymentRequest.objects.filter(
        response_id__in=_family(response_id),
        status=PaymentState.WAITING,
        decided_at__isnull=True,
    )
    return list(rows.select_related("payer", "response__agent").order_by("id"))


def is_demanding(response_id: str) -> bool:
    """Return whether a response, or work that it delegated, lacks a payment or an approval.

    A payment that was not made in time ends its own response. An answer that had delegated the work
    continues without it, and no longer lacks that payment.
    """
    family = _family(response_id)
    unpaid = PaymentRequest.objects.filter(
        Q(response_id__in=family, status=PaymentState.WAITING)
        | Q(response_id=response_id, status=PaymentState.EXPIRED)
    )
    asking = ToolCall.objects.filter(response_id__in=family, status=ToolCallState.ASKING)
    return unpaid.exists() or asking.exists()


def charges_of(response_id: str) -> AnswerCharges:
    """Return the charges for a response and for its delegated work."""
    family = _family(response_id)
    running = Response.objects.filter(pk__in=family, finished_at__isnull=True)
    # Read before the charges, which the end of an answer commits.
    is_final = not running.exists()
    totals: dict[str, Money] = {}
    for cost in answer_costs.costs_of(family).values():
        charged = cost.charged
        if charged.amount:
            before = totals.get(charged.asset)
            totals[charged.asset] = charged if before is None else before + charged
    return AnswerCharges(
        amounts=tuple(totals[asset] for asset in sorted(totals)), is_final=is_final
    )


def _family(response_id: str) -> list[str]:
    below = selectors.delegated_responses([response_id]).get(response_id, [])
    return [response_id, *(row.pk for row in below)]
