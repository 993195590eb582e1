"""The ends of tokens, and the state that their owners see.

A token ends with its parent. What is held of it stays held; what is available is returned:
immediately when it is revoked, by the expiry job when it expired or its holds ended later.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from payments_app.ledger import balances
from payments_app.ledger.accounts import account_of_user
from payments_app.ledger.transfers import transfer
from payments_app.models import PaymentToken
from payments_app.money import Money
from payments_app.tokens.lookup import has_expired, owned, with_accounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

BATCH: Final = 100
LISTED: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenState:
    """A token as its owner sees it; only `tree` fills `children`."""

    id: str
    name: str
    form: str
    status: str
    parent_id: str | None
    depth: int
    audience: tuple[str, ...]
    per_use: Money | None
    available: Money
    held: Money
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    children: tuple[TokenState, ...] = ()


# --- See ---


def tokens_of(user_id: int, *, limit: int = LISTED) -> list[TokenState]:
    """Return a person's tokens, including delegated ones, the newest first."""
    rows = with_accounts(Q(owner_id=user_id)).order_by("-created_at", "-pk")
    return [_state(row) for row in rows[: max(1, min(limit, LISTED))]]


def state_of(token_id: str, user_id: int) -> TokenState:
    """Return one token of a person; raises UnknownToken."""
    return _state(owned(token_id, user_id))


def tree(token_id: str, user_id: int) -> TokenState:
    """Return a person's token with all its descendants; raises UnknownToken."""
    root = owned(token_id, user_id)
    tokens = [root]
    level = [root.pk]
    while level:
        rows = list(with_accounts(Q(parent_id__in=level)).order_by("created_at", "pk"))
        tokens += rows
        level = [row.pk for row in rows]
    children: dict[str, list[TokenState]] = {}
    # Found from the root down, so in reverse every child comes before its parent.
    for row in reversed(tokens):
        state = _state(row, reversed(children.get(row.pk, ())))
        children.setdefault(row.parent_id or "", []).append(state)
    return next(s for states in children.values() for s in states if s.id == token_id)


def _state(row: PaymentToken, children: Iterable[TokenState] = ()) -> TokenState:
    account = row.account
    ended = "expired" if has_expired(row) else "active"
    return TokenState(
        id=row.pk,
        name=row.name,
        form=row.form,
        status="revoked" if row.revoked_at else ended,
        parent_id=row.parent_id,
        depth=row.depth,
        audience=tuple(row.audience),
        per_use=None if row.per_use_limit is None else Money(row.per_use_limit, account.asset),
        available=Money(account.posted - account.held, account.asset),
        held=Money(account.held, account.asset),
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        created_at=row.created_at,
        children=tuple(children),
    )


# --- End ---


def revoke(*, token_id: str, user_id: int) -> Money:
    """Revoke a person's token and all its descendants; return the amount returned immediately.

    Revoking again is harmless. Raises UnknownToken.
    """
    with transaction.atomic():
        asset = owned(token_id, user_id).account.asset
        return sum(_give_back(_revoked([token_id])), Money.zero(asset))


def revoke_all(user_id: int) -> None:
    """Revoke all tokens of a person and what was delegated from them; what is free returns."""
    with transaction.atomic():
        roots = PaymentToken.objects.filter(owner_id=user_id, parent__isnull=True)
        _give_back(_revoked(list(roots.values_list("pk", flat=True))))


def _revoked(level: list[str]) -> list[PaymentToken]:
    """Mark tokens and all their descendants as revoked; return them locked."""
    ended: list[PaymentToken] = []
    while level:
        # Locked before its children are read: a concurrent delegation waits, or is found.
        ended += _locked(Q(pk__in=level))
        rows = PaymentToken.objects.filter(pk__in=level)
        rows.filter(revoked_at__isnull=True).update(revoked_at=Now())
        rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now())).update(expires_at=Now())
        level = list(PaymentToken.objects.filter(parent_id__in=level).values_list("pk", flat=True))
    return ended


def return_available(limit: int = BATCH, *, thorough: bool = False) -> int:
    """Return the available money of ended tokens to their heirs; return how many had some.

    `thorough` also visits closed tokens, which a later refund may have reached.
    """
    over = Q(expires_at__lte=Now()) & (Q(owner__isnull=False) | Q(parent__isnull=False))
    has_money = Q(account__posted__gt=F("account__held"))
    which = over & (
        has_money if thorough else Q(closed_at__isnull=True) & (has_money | Q(account__posted=0))
    )
    due = list(PaymentToken.objects.filter(which).values_list("pk", flat=True)[:limit])
    if not due:
        return 0
    with transaction.atomic():
        return len(_give_back(_locked(Q(pk__in=due), skip=True)))


def _locked(which: Q, *, skip: bool = False) -> list[PaymentToken]:
    rows = PaymentToken.objects.filter(which).order_by("pk")
    if connection.vendor == "postgresql":
        rows = rows.select_for_update(no_key=True, skip_locked=skip)
    return list(rows)


def _give_back(ended: Sequence[PaymentToken]) -> list[Money]:
    """Move the available money of ended tokens to their heirs; return the amounts."""
    heirs = _heirs(ended)
    rows = [row for row in ended if row.pk in heirs]
    # Locked together in the order of ids, so that two calls cannot deadlock.
    accounts, _ = balances.lock_accounts({row.account_id for row in rows} | set(heirs.values()))
    amounts = []
    for row in rows:
        account = accounts[row.account_id]
        available = account.posted - account.held
        if available > 0:
            amount = Money(available, account.asset)
            transfer(
                key=uuid.uuid4().hex,
                scope="token:return",
                debit=account.id,
                credit=heirs[row.pk],
                amount=amount,
                kind="token_return",
                memo=row.name,
            )
            amounts.append(amount)
    done = [row.pk for row in rows if accounts[row.account_id].held == 0]
    PaymentToken.objects.filter(pk__in=done, closed_at__isnull=True).update(closed_at=Now())
    return amounts


def _heirs(ended: Sequence[PaymentToken]) -> dict[str, int]:
    """Return the heir of each token: a parent that can still be spent, or the owner."""
    parents = with_accounts(Q(pk__in={row.parent_id for row in ended if row.parent_id}))
    alive = {
        row.pk: row.account_id for row in parents if not row.revoked_at and not has_expired(row)
    }
    heirs = {}
    for row in ended:
        if row.parent_id in alive:
            heirs[row.pk] = alive[row.parent_id]
        elif row.owner_id is not None:
            heirs[row.pk] = account_of_user(row.owner_id, row.account.asset).id
    return heirs
