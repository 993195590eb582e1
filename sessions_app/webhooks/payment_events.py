"""Payments of a chat's answers as events of its webhooks.

Money has no entries in the log. The transaction that writes the end of an answer also charges it,
so for a webhook an end that was charged is followed by PAID, with what members may see of the
payment (`GET /api/v1/chats/{id}/payments`). A refund comes later: its own transaction queues
REFUNDED for the webhooks of the chat (`refunds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from chat_app.log.log_pages import ENDS
from payments_app.reporting.answer_costs import costs_of, refund_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chat_app.log.log_pages import LogPlace

PAID: Final = "payment.settled"
REFUNDED: Final = "payment.refunded"


def log_types(types: Sequence[str]) -> list[str]:
    """Return the types of log entries to read for a webhook of these types; [] means all."""
    logged = {name for name in types if name not in {PAID, REFUNDED}}
    # Refunds have no log entries: a webhook of refunds alone reads the ends, and sends none.
    return sorted(logged if logged and PAID not in types else logged | set(ENDS)) if types else []


def with_payments(places: Sequence[LogPlace], types: Sequence[str]) -> list[tuple[int, str]]:
    """Return the deliveries of log entries as (seq, type), with the payments of ended answers.

    No types means all.
    """
    ended = [place.response_id for place in places if place.type in ENDS]
    charged = costs_of(ended) if not types or PAID in types else {}
    due: list[tuple[int, str]] = []
    for place in places:
        if not types or place.type in types:
            due.append((place.seq, place.type))
        if place.type in ENDS and place.response_id in charged:
            due.append((place.seq, PAID))
    return due


def refund_event(
    transfer_id: str, reader_id: int | None
) -> tuple[datetime, str, dict[str, Any]] | None:
    """Return the time, the event id and the data of a refund; None if there is no such refund.

    The data is that of the payment, with the amount of this refund.
    """
    refund = refund_of(transfer_id)
    paid = None if refund is None else payment_of(refund.response_id, reader_id)
    if refund is None or paid is None:
        return None
    return refund.at, f"refunded_{transfer_id}", {**paid, "refund": str(refund.amount)}


def payment_of(response_id: str, reader_id: int | None) -> dict[str, Any] | None:
    """Return the part of an answer's payment that a person may see; None if it cost nothing."""
    cost = costs_of([response_id]).get(response_id)
    if cost is None:
        return None
    mine = reader_id in cost.payers
    return {
        "response_id": response_id,
        "amount": str(cost.charged),
        "refunded": str(cost.refunded),
        "fee": str(cost.fee),
        "currency": cost.charged.asset,
        "paid_by": "pool" if "pool" in cost.kinds else "you" if mine else "other",
        "paid_at": cost.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "transfers": list(cost.transfer_ids) if mine else [],
    }
