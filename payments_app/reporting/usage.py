"""The usage of a payer: spending grouped by several dimensions at once.

A payer sees who asked for what they paid, except for a sponsor: strangers ask the agents that a
sponsor pays for, in chats that the sponsor does not see, so they are counted without a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Final

from django.db.models import Case, F, Q, When
from django.db.models.functions import TruncDate

from payments_app.ledger.sums import Total
from payments_app.money import Money
from payments_app.selectors import CHARGES, COLUMNS, payer_entries
from payments_app.spending.budgets import SPONSOR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from payments_app.selectors import Dimension

ROWS_MAX: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """The spending on one combination; `ids` are in the order of the dimensions, "" for unknown."""

    ids: tuple[str, ...]
    amount: Money
    charges: int


def usage_of_person(
    user_id: int, by: Sequence[Dimension], *, since: datetime, asset: str, limit: int = ROWS_MAX
) -> list[Used]:
    """Return the payments of a person, including those by their tokens; at most `limit` rows."""
    return _usage(Q(account__owner_id=user_id), by, since, asset, limit, reader=user_id)


def usage_of_account(
    account_id: int, by: Sequence[Dimension], *, since: datetime, asset: str, limit: int = ROWS_MAX
) -> list[Used]:
    """Return the payments of an account, such as the pool of a chat; at most `limit` rows."""
    return _usage(Q(account_id=account_id), by, since, asset, limit, reader=None)


def _usage(
    payer: Q, by: Sequence[Dimension], since: datetime, asset: str, limit: int, reader: int | None
) -> list[Used]:
    """Days come in chronological order, and within them the largest amount first."""
    asker = Case(
        When(
            Q(transfer__hold__purpose=SPONSOR) & ~Q(transfer__hold__asker_id=reader),
            then=None,
        ),
        default=F("transfer__hold__asker_id"),
    )
    columns = ["person" if name == "person" else COLUMNS[name] for name in by]
    rows = (
        payer_entries(since)
        .filter(payer, transfer__asset=asset)
        .annotate(day=TruncDate("transfer__created_at", tzinfo=UTC), person=asker)
        .values(*columns)
        .annotate(total=Total("amount"), charges=CHARGES)
        .order_by(*(["day"] if "day" in by else []), "total", *columns)
    )
    return [
        Used(
            ids=tuple("" if row[name] is None else str(row[name]) for name in columns),
            amount=Money.capped(-row["total"], asset),
            charges=row["charges"],
        )
        for row in rows[:limit]
    ]
