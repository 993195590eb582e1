"""The answers that one question led to: the requested one, and the work that agents passed on.

What a person lets an agent take without asking is for a question. Otherwise an agent without a
price could have a priced one work any number of times for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_app import selectors as ledger_rows
from payments_app.money import Money
from sessions_app import selectors
from sessions_app.models import Response
from sessions_app.tools.delegated_calls import requested_answer

if TYPE_CHECKING:
    from sessions_app.billing.payers import Purchase


def lock_question(purchase: Purchase) -> str:
    """Lock the requested answer of a purchase until the transaction ends; return its id.

    So concurrent answers count each other. "" for an answer that no agent asked for.
    """
    if not purchase.asked_by:
        return ""
    requested = requested_answer(purchase.asked_by)
    list(Response.objects.select_for_update(no_key=True).filter(pk=requested).values_list("pk"))
    return requested


def taken_for_question(requested: str, purchase: Purchase, response_id: str) -> Money:
    """Return the sums that an agent took, or holds, for other answers of the question."""
    if not requested:
        return Money.zero(purchase.asset)
    work = selectors.delegated_responses([requested]).get(requested, [])
    answers = {requested, *(row.pk for row in work)} - {response_id}
    return ledger_rows.committed_total(answers, agent_id=purchase.agent_id, asset=purchase.asset)
