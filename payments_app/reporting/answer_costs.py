"""Costs of answers as far as their chat may know them: charges, refunds, the server's fee.

Amounts only. The paying account is reduced to an id and a kind, without its balance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from payments_app.models import AccountKind, Entry, Transfer
from payments_app.money import Money

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.db.models import OuterRef, QuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCost:
    """The cost of one response: `charged` by captures, of which some was `refunded`.

    `fee` is the server's part. `payers` are the people whose money it was, including their tokens;
    `kinds` are the kinds of the accounts: user, token, pool. `at` is the time of the first charge.
    """

    response_id: str
    charged: Money
    refunded: Money
    fee: Money
    at: datetime
    transfer_ids: tuple[str, ...]
    payers: frozenset[int]
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedRefund:
    """The amount of one refund of an answer, and its time."""

    response_id: str
    amount: Money
    at: datetime


def charges(response_id: OuterRef, *, asset: str | None = None) -> QuerySet[Transfer]:
    """Return the charges for the response of an outer query, for use in its condition."""
    rows = Transfer.objects.filter(
        ~Q(response_id=""), response_id=response_id, hold__isnull=False, reverses__isnull=True
    )
    return rows if asset is None else rows.filter(asset=asset)


def costs_of(response_ids: Iterable[str]) -> dict[str, AnswerCost]:
    """Return the cost of each of these responses; free ones are left out."""
    ids = [response_id for response_id in response_ids if response_id]
    by_response: dict[str, list[Entry]] = {}
    entries = Entry.objects.filter(
        transfer__response_id__in=ids, transfer__hold__isnull=False
    ).select_related("transfer__hold", "account")
    for entry in entries.order_by("pk"):
        by_response.setdefault(entry.transfer.response_id, []).append(entry)
    return {response_id: _cost(response_id, rows) for response_id, rows in by_response.items()}


def refund_of(transfer_id: str) -> DatedRefund | None:
    """Return one refund of an answer; None if there is no such transfer."""
    row = Transfer.objects.filter(pk=transfer_id, reverses__isnull=False).first()
    if row is None:
        return None
    amount = Money(row.amount, row.asset)
    return DatedRefund(response_id=row.response_id, amount=amount, at=row.created_at)


def _cost(response_id: str, rows: list[Entry]) -> AnswerCost:
    """Add up the entries of a response's captures and refunds."""
    asset = rows[0].transfer.asset
    paid = [
        row for row in rows if row.transfer.hold and row.account_id == row.transfer.hold.account_id
    ]
    charged = sum(-row.amount for row in paid if row.transfer.reverses_id is None)
    refunded = sum(row.amount for row in paid if row.transfer.reverses_id is not None)
    fee = sum(row.amount for row in rows if row.account.kind == AccountKind.PLATFORM)
    return AnswerCost(
        response_id=response_id,
        charged=Money(charged, asset),
        refunded=Money(refunded, asset),
        fee=Money(fee, asset),
        at=min(row.transfer.created_at for row in paid),
        transfer_ids=tuple(
            dict.fromkeys(row.transfer_id for row in paid if row.transfer.reverses_id is None)
        ),
        payers=frozenset(row.account.owner_id for row in paid if row.account.owner_id is not None),
        kinds=frozenset(row.account.kind for row in paid),
    )
