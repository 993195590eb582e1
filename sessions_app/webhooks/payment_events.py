"""Payments of a chat's answers as events of its webhooks.

Money has no entries in the log. The transaction that writes the end of an answer also charges it,
so for a webhook an end that was charged is followed by PAID, with what members may see of the
payment (`GET /api/v1/chats/{id}/payments`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from chat_app.log.log_pages import ENDS
from payments_app.reporting.answer_costs import costs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.log.log_pages import LogPlace

PAID: Final = "payment.settled"


def log_types(types: Sequence[str]) -> list[str]:
    """Return the types of log entries that a webhook of these types needs to read."""
    needed = {name for name in types if name != PAID}
    return sorted(needed | set(ENDS) if PAID in types else needed)


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


def payment_of(response_id: str, reader_id: int | None) -> dict[str, Any] | None:
    """Return what a person may see of an answer's payment; None if it cost nothing."""
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
