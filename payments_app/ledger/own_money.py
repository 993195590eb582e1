"""Operators may not decide about their own money: another one has to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from agents_app.models import Agent
from payments_app.ledger.outcomes import OwnMoney
from payments_app.models import Account

if TYPE_CHECKING:
    from collections.abc import Iterable


def refuse_own(account_ids: Iterable[int], by: int | None) -> None:
    """Raise OwnMoney if one of the accounts belongs to the operator, or to an agent of theirs.

    `by` is None for decisions by the server or at its command line.
    """
    if by is None:
        return
    agents = Agent.objects.filter(owner_id=by).values("pk")
    mine = Q(owner_id=by) | Q(agent_id__in=agents)
    if Account.objects.filter(mine, pk__in=list(account_ids)).exists():
        raise OwnMoney("This is money of your own: another operator has to decide.")
