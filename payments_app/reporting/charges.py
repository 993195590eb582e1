"""Charges in a time range, and the number of top-ups waiting for an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import F, Min

from payments_app.ledger.sums import Total
from payments_app.models import (
    AdjustmentRequest,
    AdjustmentState,
    Entry,
    TopUpRequest,
    TopUpRequestState,
    Transfer,
)
from payments_app.money import Money

if TYPE_CHECKING:
    from datetime import datetime


MANUAL: Final = "manual"
"""The provider of top-ups that an operator grants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges:
    """Charges for one agent over one protocol, less refunds; both names may be empty."""

    agent_id: str
    protocol: str
    amount: Money


def charges_between(start: datetime, end: datetime) -> list[Charges]:
    """Return charges from `start` until before `end`, reading the transfers in between."""
    rows = (
        Entry.objects.filter(
            transfer__created_at__gte=start,
            transfer__created_at__lt=end,
            transfer__hold__isnull=False,
            account_id=F("transfer__hold__account_id"),
        )
        .values("transfer__agent_id", "transfer__protocol", "transfer__asset")
        .annotate(total=Total("amount"))
        .order_by()
    )
    return [
        Charges(
            agent_id=row["transfer__agent_id"],
            protocol=row["transfer__protocol"],
            amount=Money.capped(-row["total"], row["transfer__asset"]),
        )
        for row in rows
    ]


def has_transfers(start: datetime, end: datetime) -> bool:
    """Return whether there is a transfer from `start` until before `end`."""
    return Transfer.objects.filter(created_at__gte=start, created_at__lt=end).exists()


def first_transfer_at(since: datetime) -> datetime | None:
    """Return the time of the first transfer at or after `since`."""
    first: datetime | None = Transfer.objects.filter(created_at__gte=since).aggregate(
        first=Min("created_at")
    )["first"]
    return first


def undecided_adjustments(limit: int) -> int:
    """Return the number of adjustments that wait for a second operator, up to `limit`."""
    rows = AdjustmentRequest.objects.filter(state=AdjustmentState.OPEN)
    return rows.order_by().values("pk")[:limit].count()


def undecided_top_ups(limit: int) -> int:
    """Return the number of top-up requests that an operator has to decide, up to `limit`."""
    rows = TopUpRequest.objects.filter(state=TopUpRequestState.OPEN, provider=MANUAL)
    return rows.order_by().values("pk")[:limit].count()
