"""No operator decides about money of their own: another one has to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from agents_app.models import Agent
from payments_app.ledger.outcomes import OwnMoney
from payments_app.models import Account

if TYPE_CHECKING:
    from collections.abc import Iterable


def refuse_own(account_ids: Iterable[int], by: int | None) -> None:
    """Raise OwnMoney where one of the accounts is of the operator, or of an agent of theirs.

    `by` is None for what the server decides, or the person at its command line.
    """
    if by is None:
        return
    agents = Agent.objects.filter(owner_id=by).values("pk")
    mine = Q(owner_id=by) | Q(agent_id__in=agents)
    if Account.objects.filter(mine, pk__in=list(account_ids)).exists():
        raise OwnMoney("This is money of your own: another operator has to decide.")
