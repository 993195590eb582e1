"""The cost of a chat's answers: charged since a time, and currently reserved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import F

from payments_app.ledger.sums import Total
from payments_app.models import Hold, HoldState, Transfer
from payments_app.money import Money
from payments_app.spending.periods import database_now, period_of

if TYPE_CHECKING:
    from datetime import datetime


def day_begins() -> datetime:
    """Return the start of the current day, in UTC."""
    return period_of("day", database_now())[0]


def charged(chat_id: str, agent_id: str, asset: str, *, since: datetime | None) -> Money:
    """Return the charges for an agent's answers in a chat, or for all agents' without an id.

    Amounts refunded since then are included.
    """
    rows = Transfer.objects.filter(chat_id=chat_id, asset=asset, kind="answer")
    if agent_id:
        rows = rows.filter(agent_id=agent_id)
    if since is not None:
        rows = rows.filter(created_at__gte=since)
    return Money.capped(rows.aggregate(total=Total("amount", default=0))["total"], asset)


def reserved(chat_id: str, agent_id: str, asset: str) -> Money:
    """Return the reservations for an agent's running answers in a chat, or for all agents'."""
    rows = Hold.objects.filter(chat_id=chat_id, state=HoldState.ACTIVE, account__asset=asset)
    if agent_id:
        rows = rows.filter(agent_id=agent_id)
    total = rows.aggregate(total=Total(F("amount") - F("captured"), default=0))["total"]
    return Money.capped(total, asset)
