"""Receipts for a chat's answers, as shown to its members (docs/money.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count

from payments_app.reporting import answer_costs
from payments_app.spending.onward import onward_id
from sessions_app import selectors
from sessions_app.models import Response
from sessions_app.rest.chats.receipt_documents import paid_answers, signed_receipt

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    _Costs = Mapping[str, answer_costs.AnswerCost]

ANSWERS_MAX: Final = 100
"""The most answers considered in one call."""


def receipts_of(
    chat_id: str, user_id: int, *, response_ids: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """Return receipts of answers that cost something, newest first, in REST format.

    Covers those of `response_ids` in the chat or, without ids, its newest answers, up to
    ANSWERS_MAX. The caller has checked that `user_id` is a member.
    """
    rows = Response.objects.filter(chat_id=chat_id).annotate(calls=Count("tool_calls"))
    if response_ids is not None:
        rows = rows.filter(pk__in=response_ids)
    newest = rows.select_related("agent").only("usage", "chat", "created_at", "agent__name")
    responses = list(newest.order_by("-created_at")[:ANSWERS_MAX])
    work = selectors.delegated_responses(row.pk for row in responses)
    every = [*responses, *(row for rows in work.values() for row in rows)]
    costs = answer_costs.costs_of(row.pk for row in every)
    onward = answer_costs.costs_of(onward_id(row.pk) for row in every)
    has_receipt = {row.pk for row in every if row.pk in costs or onward_id(row.pk) in onward}
    answers = paid_answers([row for row in every if row.pk in has_receipt or row.pk in work])
    receipts = []
    for row in responses:
        delegated = [
            _receipt(done, costs[done.pk], user_id, onward)
            for done in work.get(row.pk, ())
            if done.pk in costs
        ]
        if row.pk in costs:
            receipt = _receipt(row, costs[row.pk], user_id, onward)
        elif delegated:
            receipt = _of_free(row, delegated[0], onward)
        elif onward_id(row.pk) in onward:
            receipt = _of_free(
                row, _receipt(row, onward[onward_id(row.pk)], user_id, onward), onward
            )
        else:
            continue
        signed = [signed_receipt(part, answers, chat_id=chat_id) for part in (receipt, *delegated)]
        receipts.append({**signed[0], "delegated": signed[1:]})
    return receipts


def _of_free(row: Any, first: dict[str, Any], onward: _Costs) -> dict[str, Any]:
    """Return the receipt of an answer that was free except for work that it passed on."""
    nothing = {"amount": "0", "refunded": "0", "fee": "0", "transfers": []}
    return {**first, **_of_work(row), **nothing, "paid_onward": _paid_onward(row, onward)}


def _paid_onward(row: Any, onward: _Costs) -> str | None:
    paid = onward.get(onward_id(row.pk))
    return None if paid is None else str(paid.charged)


def _receipt(
    row: Any,
    cost: answer_costs.AnswerCost,
    user_id: int,
    onward: _Costs,
) -> dict[str, Any]:
    mine = user_id in cost.payers
    return {
        **_of_work(row),
        "amount": str(cost.charged),
        "refunded": str(cost.refunded),
        "fee": str(cost.fee),
        "currency": cost.charged.asset,
        "paid_by": "pool" if "pool" in cost.kinds else "you" if mine else "other",
        "paid_at": cost.at,
        "transfers": list(cost.transfer_ids) if mine else [],
        "paid_onward": _paid_onward(row, onward),
    }


def _of_work(row: Any) -> dict[str, Any]:
    usage = row.usage or {}
    return {
        "response_id": row.pk,
        "agent": row.agent.name,
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "tools": row.calls,
        "unfinished": (usage.get("cost") or {}).get("unfinished"),
    }
