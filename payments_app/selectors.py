"""Reads of the ledger: balances, statements, spending.

Every figure comes from the ledger's own rows, so usage, cost and balance agree. Spending is what
captures took, less refunds of captures.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db.models import Count, F, Q
from django.db.models.functions import TruncDate

from payments_app.ledger.outcomes import UnknownAccount
from payments_app.ledger.sums import Total
from payments_app.models import Account, Entry, Hold, HoldState, LedgerState, Transfer
from payments_app.money import Money

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import date, datetime

    from django.db.models import QuerySet

PAGE: Final = 50
PAGE_MAX: Final = 500

Dimension = Literal["response", "agent", "user", "person", "chat", "protocol", "kind", "day"]
"""`user` is the payer, `person` the asker."""
COLUMNS: Final[dict[Dimension, str]] = {
    "response": "transfer__response_id",
    "agent": "transfer__agent_id",
    "user": "account__owner_id",
    "person": "transfer__hold__asker_id",
    "chat": "transfer__chat_id",
    "protocol": "transfer__protocol",
    "kind": "transfer__kind",
    "day": "day",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """The balance of an account: `available` is `posted` less `held`."""

    available: Money
    held: Money
    posted: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRow:
    """One entry of an account; `entry_id` is the cursor for the next page."""

    entry_id: int
    transfer_id: str
    at: datetime
    kind: str
    amount: Money
    memo: str
    response_id: str
    chat_id: str
    agent_id: str
    protocol: str
    reverses_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The spending of one day, agent, chat, …; `name` is its id, "" if there was none.

    `amount` is less refunds, which `charges` does not count.
    """

    name: str
    amount: Money
    charges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRow:
    """The current state of a hold."""

    hold_id: str
    account_id: int
    amount: Money
    captured: Money
    state: str
    response_id: str
    extends_id: str | None
    expires_at: datetime
    credential: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerHealth:
    """The results of the last audits; `checked_at` and `whole_at` are None before the first."""

    checked_at: datetime | None
    whole_at: datetime | None
    frozen_at: datetime | None
    reason: str
    mismatches: Sequence[tuple[str, str, int]]


def balance(account_id: int) -> Balance:
    """Return the balance of an account; raises UnknownAccount."""
    row = Account.objects.filter(pk=account_id).values_list("asset", "posted", "held").first()
    if row is None:
        raise UnknownAccount(f"There is no account {account_id}.")
    return _balance(*row)


def _balance(asset: str, posted: int, held: int) -> Balance:
    return Balance(
        available=Money(posted - held, asset), held=Money(held, asset), posted=Money(posted, asset)
    )


def balance_behind(response_id: str) -> Money | None:
    """Return the available balance of the account that last paid for a response, if any did."""
    row = (
        Hold.objects.filter(response_id=response_id)
        .exclude(response_id="")
        .order_by("-created_at", "-pk")
        .values_list("account__asset", "account__posted", "account__held")
        .first()
    )
    return None if row is None else _balance(*row).available


def holds_of_response(response_id: str) -> list[HoldRow]:
    """Return the holds of a response, the oldest first."""
    return _holds(Q(response_id=response_id)) if response_id else []


def committed_total(response_ids: Collection[str], *, agent_id: str, asset: str) -> Money:
    """Return the sum charged or still held for an agent's answers to these responses."""
    holds = Hold.objects.filter(
        response_id__in=response_ids, agent_id=agent_id, account__asset=asset
    ).values_list("state", "amount", "captured")
    amounts = (
        amount if state == HoldState.ACTIVE else captured for state, amount, captured in holds
    )
    return Money(sum(amounts), asset)


def people_behind(response_ids: Collection[str]) -> set[int]:
    """Return the people whose accounts and tokens have money reserved for these responses."""
    holds = Hold.objects.filter(response_id__in=response_ids, account__owner__isnull=False)
    return {owner for owner in holds.values_list("account__owner", flat=True) if owner}


def only_payer(response_id: str) -> int | None:
    """Return the person whose accounts and tokens hold all the money of a response, if one does."""
    owners = set(
        Hold.objects.filter(response_id=response_id).values_list("account__owner", flat=True)
    )
    return owners.pop() if len(owners) == 1 else None


def with_money(response_ids: Collection[str]) -> set[str]:
    """Filter responses to those with a hold or a transfer in the ledger."""
    named = Q(response_id__in=response_ids) & ~Q(response_id="")
    holds = Hold.objects.filter(named).values_list("response_id", flat=True)
    return {*holds, *Transfer.objects.filter(named).values_list("response_id", flat=True)}


def with_pool(chat_ids: Collection[str]) -> set[str]:
    """Filter chats to those with a pool."""
    codes = Account.objects.filter(kind="pool").filter(
        reduce(or_, (Q(code__startswith=f"pool:{chat_id}:") for chat_id in chat_ids), Q(pk=None))
    )
    return {code.split(":")[1] for code in codes.values_list("code", flat=True)}


def _holds(which: Q) -> list[HoldRow]:
    rows = Hold.objects.filter(which).select_related("account").order_by("created_at", "pk")
    return [
        HoldRow(
            hold_id=row.pk,
            account_id=row.account_id,
            amount=Money(row.amount, row.account.asset),
            captured=Money(row.captured, row.account.asset),
            state=row.state,
            response_id=row.response_id,
            extends_id=row.extends_id,
            expires_at=row.expires_at,
            credential=row.credential or "",
        )
        for row in rows
    ]


def statement(
    account_id: int, *, before: int | None = None, limit: int = PAGE
) -> list[StatementRow]:
    """Return an account's entries, the newest first, older than the entry `before`.

    At most PAGE_MAX rows. The next page of `limit` rows starts from the last row's `entry_id`.
    """
    entries = Entry.objects.filter(account_id=account_id).select_related("transfer")
    if before is not None:
        entries = entries.filter(pk__lt=before)
    return [
        StatementRow(
            entry_id=entry.pk,
            transfer_id=entry.transfer_id,
            at=entry.transfer.created_at,
            kind=entry.transfer.kind,
            amount=Money(entry.amount, entry.transfer.asset),
            memo=entry.transfer.memo,
            response_id=entry.transfer.response_id,
            chat_id=entry.transfer.chat_id,
            agent_id=entry.transfer.agent_id,
            protocol=entry.transfer.protocol,
            reverses_id=entry.transfer.reverses_id,
        )
        for entry in entries.order_by("-pk")[: max(1, min(limit, PAGE_MAX))]
    ]


# --- Spending ---


def user_spend_by_day(user_id: int, asset: str, since: datetime) -> list[tuple[date, Money]]:
    """Return (UTC day, amount) of a person's spending, tokens included, oldest first.

    Days without spending are left out.
    """
    rows = (
        payer_entries(since)
        .filter(account__owner_id=user_id, transfer__asset=asset)
        .annotate(day=TruncDate("transfer__created_at"))
        .values("day")
        .annotate(total=Total("amount"))
        .order_by("day")
    )
    return [(row["day"], Money.capped(-row["total"], asset)) for row in rows]


CHARGES: Final = Count("transfer_id", filter=Q(transfer__reverses__isnull=True), distinct=True)
"""The number of charges among payers' entries, which also has their refunds."""


def usage_by(
    dimension: Dimension,
    *,
    since: datetime | None = None,
    account_id: int | None = None,
    user_id: int | None = None,
    agent_id: str | None = None,
    chat_id: str | None = None,
    response_id: str | None = None,
    asset: str | None = None,
    limit: int = PAGE_MAX,
) -> list[Spent]:
    """Return spending grouped by one dimension, narrowed by the others.

    The highest comes first; days, which are those of UTC, come in chronological order.
    """
    column = COLUMNS[dimension]
    narrowed = {
        "account_id": account_id,
        "account__owner_id": user_id,
        "transfer__agent_id": agent_id,
        "transfer__chat_id": chat_id,
        "transfer__response_id": response_id,
        "transfer__asset": asset,
    }
    rows: QuerySet[Any, dict[str, Any]] = (
        payer_entries(since)
        .filter(**{name: value for name, value in narrowed.items() if value is not None})
        .annotate(day=TruncDate("transfer__created_at", tzinfo=UTC))
        .values(column, "transfer__asset")
        .annotate(total=Total("amount"), charges=CHARGES)
        .order_by(*([column] if dimension == "day" else ["total", column]))
    )
    return [
        Spent(
            name="" if row[column] is None else str(row[column]),
            amount=Money.capped(-row["total"], row["transfer__asset"]),
            charges=row["charges"],
        )
        for row in rows[:limit]
    ]


def payer_entries(since: datetime | None) -> QuerySet[Entry]:
    """Return the payers' entries of captures and of their refunds."""
    entries = Entry.objects.filter(
        transfer__hold__isnull=False, account_id=F("transfer__hold__account_id")
    )
    return entries.filter(transfer__created_at__gte=since) if since else entries


def ledger_health() -> LedgerHealth:
    """Return the findings of the last audits, and whether payouts are frozen."""
    state = LedgerState.objects.filter(pk=1).first() or LedgerState()
    by_check = {
        (check, name): off_by for check, name, off_by in [*state.whole_report, *state.report]
    }
    return LedgerHealth(
        checked_at=state.checked_at,
        whole_at=state.whole_at,
        frozen_at=state.frozen_at,
        reason=state.reason,
        mismatches=[(*what, off_by) for what, off_by in by_check.items()],
    )
