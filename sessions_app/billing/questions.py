"""The answers that one question led to: the requested one, and the work that agents passed on.

What a person lets an agent take without asking is for a question. Otherwise an agent without a
price could have a priced one work any number of times for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_app import selectors as ledger_rows
from sessions_app.models import Response

if TYPE_CHECKING:
    from payments_app.money import Money
    from sessions_app.billing.payers import Purchase

_ABOVE = "session__parent_call__response_id"


def lock_question(purchase: Purchase) -> str:
    """Lock the first answer of a purchase's question until the transaction ends; return its id.

    So concurrent answers count each other. "" for an answer that no agent asked for.
    """
    first = purchase.asked_by
    while above := Response.objects.filter(pk=first).values_list(_ABOVE, flat=True).first():
        first = above
    if not first:
        return ""
    list(Response.objects.select_for_update(no_key=True).filter(pk=first).values_list("pk"))
    return first


def taken_beside(first: str, purchase: Purchase, response_id: str) -> Money:
    """Return what an agent took, or holds, for other answers of the question; nothing for ""."""
    answers, level = [first], [first] if first else []
    while level:
        below = Response.objects.filter(**{f"{_ABOVE}__in": level})
        level = list(below.values_list("pk", flat=True))
        answers += level
    return ledger_rows.taken_for(
        [one for one in answers if one != response_id],
        agent_id=purchase.agent_id,
        asset=purchase.asset,
    )
