"""Holds and transfers of responses, row by row, for tracing a payment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from payments_app.models import Entry, Hold, Transfer
from payments_app.money import Money

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAccount:
    """An account of the ledger by its key and its code."""

    id: int
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedMoney:
    """A hold of a response: the reserved amount, and how much of it was captured.

    `ended_at` is None while it is active, and where the time is not known.
    """

    id: str
    response_id: str
    at: datetime
    amount: Money
    captured: Money
    state: str
    account: LedgerAccount
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedMoney:
    """A transfer of a response, with its entries: accounts and amounts received (paid if below 0).

    `reverses` is the transfer that it refunds, "" for none; `hold_id` the hold that it captured.
    """

    id: str
    response_id: str
    at: datetime
    kind: str
    amount: Money
    memo: str
    hold_id: str
    reverses: str
    entries: tuple[tuple[LedgerAccount, Money], ...]


def holds_of(response_ids: Collection[str]) -> list[ReservedMoney]:
    """Return the holds of these responses, the oldest first."""
    rows = Hold.objects.filter(_of(response_ids)).select_related("account")
    return [
        ReservedMoney(
            id=row.pk,
            response_id=row.response_id,
            at=row.created_at,
            amount=Money(row.amount, row.account.asset),
            captured=Money(row.captured, row.account.asset),
            state=row.state,
            account=LedgerAccount(id=row.account_id, code=row.account.code),
            ended_at=row.ended_at,
        )
        for row in rows.order_by("created_at", "pk")
    ]


def transfers_of(response_ids: Collection[str]) -> list[MovedMoney]:
    """Return the transfers of these responses, the oldest first."""
    rows = list(Transfer.objects.filter(_of(response_ids)).order_by("created_at", "pk"))
    sides: dict[str, list[Entry]] = {}
    entries = Entry.objects.filter(transfer__in=[row.pk for row in rows])
    for entry in entries.select_related("account").order_by("pk"):
        sides.setdefault(entry.transfer_id, []).append(entry)
    return [
        MovedMoney(
            id=row.pk,
            response_id=row.response_id,
            at=row.created_at,
            kind=row.kind,
            amount=Money(row.amount, row.asset),
            memo=row.memo,
            hold_id=row.hold_id or "",
            reverses=row.reverses_id or "",
            entries=tuple(
                (
                    LedgerAccount(id=entry.account_id, code=entry.account.code),
                    Money(entry.amount, row.asset),
                )
                for entry in sides.get(row.pk, ())
            ),
        )
        for row in rows
    ]


def _of(response_ids: Collection[str]) -> Q:
    """Return the condition for rows of responses, in the form that their partial indexes need."""
    return Q(response_id__in=list(response_ids)) & ~Q(response_id="")
