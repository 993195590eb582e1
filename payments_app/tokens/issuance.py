"""Payment tokens: issuing them to people and delegating them to agents.

A token is an account. Issuing transfers money from its owner's account, delegating from the
parent's: a token can spend only its own balance, which the ledger guards. A child has no more
rights than its parent: it expires no later and pays no others.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Q

from payments_app.ledger import balances, sql
from payments_app.ledger.accounts import account_of_user, ensure_account
from payments_app.ledger.outcomes import IdempotencyConflict
from payments_app.ledger.transfers import transfer
from payments_app.models import PaymentToken, SpendingLimit, SpendingPeriod
from payments_app.money import AssetMismatch, Money
from payments_app.spending import audiences
from payments_app.tokens import secret_forms
from payments_app.tokens.lookup import TokenRefused, by_id, foreign, resolve, with_accounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


MAX_AUDIENCE: Final = 50
NAME_CHARS: Final = 100
AGENT_CHARS: Final = 150
MAX_SECONDS: Final = 10 * 366 * 86_400.0
MAX_CHILDREN: Final = 500
"""Open tokens that are made out of one: a revocation and a check of its limits read them all."""


class ImpossibleToken(ValueError):
    """The form, name, audience or lifetime of a token is invalid; the message is for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """A new token; `token` is the secret, which is not stored."""

    token: str
    id: str
    account_id: int
    amount: Money
    available: Money
    expires_at: datetime | None
    audience: tuple[str, ...]
    depth: int
    replayed: bool = False


# --- Make ---


def issue(
    *,
    key: str,
    user_id: int,
    amount: Money,
    expires_in: float | None,
    name: str = "",
    audience: Sequence[str] = (),
    per_use: Money | None = None,
    limits: Mapping[str, Money] | None = None,
    form: str = "opaque",
) -> IssuedToken:
    """Create a person's token and move `amount` of theirs into it; `expires_in` is in seconds.

    `limits` bounds its spending by period: day, week, month. Repeating the key returns the same
    token and secret, `replayed`. Raises InsufficientFunds and the errors of transfer,
    ImpossibleToken for an invalid form, name, audience or lifetime.
    """
    owner = account_of_user(user_id, amount.asset)
    return _make(
        _TokenRequest(
            key=key,
            scope=f"token:user:{user_id}",
            payer_id=owner.id,
            owner_id=user_id,
            parent_id=None,
            depth=0,
            amount=amount,
            expires_in=expires_in,
            expires_at=_later(expires_in),
            name=name,
            audience=_audience(audience),
            per_use=_same_asset(per_use, amount),
            limits=tuple(
                (SpendingPeriod(period).value, _same_asset(limit, amount) or limit)
                for period, limit in sorted((limits or {}).items())
            ),
            form=form,
        )
    )


def delegate(
    *,
    key: str,
    caller_id: int,
    amount: Money,
    delegate_to: str,
    parent_secret: str = "",
    parent_id: str = "",
    expires_in: float | None = None,
    audience: Sequence[str] = (),
) -> IssuedToken:
    """Create a token for an agent with an amount of its parent's.

    The parent is given by its secret or its id. The child ends with its parent at the latest. It
    may also pay others in `audience`, to whom the agent may pass it on. The key belongs to the
    caller: another holder of the parent who uses the same key gets a child of their own. Raises
    TokenRefused, including when the parent may not pay one of them, was already passed on five
    times or has MAX_CHILDREN, InsufficientFunds with the parent's balance, and the errors of issue.
    """
    names = _audience([delegate_to, *audience])
    with transaction.atomic():
        token = resolve(parent_secret) if parent_secret else by_id(parent_id)
        # A revocation of the parent waits for this child, and then finds it.
        row = PaymentToken.objects.select_for_update(no_key=True).get(pk=token.id)
        parent = by_id(token.id)
        if parent.audience and not set(names) <= set(parent.audience):
            raise foreign()
        if parent.depth >= secret_forms.MAX_DEPTH:
            raise TokenRefused(
                "token_invalid",
                f"A payment token can be passed on at most {secret_forms.MAX_DEPTH} times.",
            )
        expires_at = _later(expires_in)
        if expires_at is None or (parent.expires_at and parent.expires_at < expires_at):
            expires_at = parent.expires_at
        if unbound := set(parent.audience).difference(row.audience_ids):
            # A name means the same agent for a token and those that are made of it.
            row.audience_ids.update(audiences.ids_of(unbound))
            row.save(update_fields=["audience_ids"])
        return _make(
            _TokenRequest(
                key=key,
                scope=f"token:parent:{parent.id}:{caller_id}",
                payer_id=parent.account_id,
                owner_id=parent.owner_id,
                parent_id=parent.id,
                depth=parent.depth + 1,
                amount=amount,
                expires_in=expires_in,
                expires_at=expires_at,
                name="",
                audience=names,
                bound=row.audience_ids,
                per_use=parent.per_use,
                form="jwt" if row.form == "jwt" else "opaque",
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TokenRequest:
    key: str
    scope: str
    payer_id: int
    owner_id: int | None
    parent_id: str | None
    depth: int
    amount: Money
    expires_in: float | None
    expires_at: datetime | None
    name: str
    audience: tuple[str, ...]
    per_use: Money | None
    form: str
    limits: tuple[tuple[str, Money], ...] = ()
    # The agents that names of the audience mean already.
    bound: Mapping[str, str] = field(default_factory=dict)


def _make(request: _TokenRequest) -> IssuedToken:
    if request.form not in {"opaque", "jwt"}:
        raise ImpossibleToken("The form of a token must be opaque or jwt.")
    if len(request.name) > NAME_CHARS:
        raise ImpossibleToken(f"A name may have at most {NAME_CHARS} characters.")
    # Derived from the key, so that a retry means the same account and the ledger recognises it.
    digest = hashlib.sha256(f"{request.scope}\0{request.key}".encode()).hexdigest()
    token_id = f"pt_{digest[:32]}"
    with transaction.atomic():
        account = token_account(token_id, request.amount.asset, request.owner_id)
        moved = transfer(
            key=request.key,
            scope=request.scope,
            debit=request.payer_id,
            credit=account,
            amount=request.amount,
            kind="token",
            parts=(
                request.name,
                request.audience,
                request.form,
                request.per_use,
                request.expires_in,
                request.limits,
            ),
            memo=request.name,
            by=request.owner_id,
        )
        if not moved.replayed:
            if request.parent_id is not None:
                _check_children(request.parent_id)
            _insert(token_id, account, request)
        row = with_accounts(Q(pk=token_id)).get()
    return issued(row, moved.amount, replayed=moved.replayed)


def _check_children(parent_id: str) -> None:
    """Refuse another child of a token that has its limit; the caller has locked the token.

    A child counts until its money has been returned. Raises TokenRefused.
    """
    if PaymentToken.objects.filter(parent_id=parent_id, closed_at=None).count() >= MAX_CHILDREN:
        raise TokenRefused(
            "token_invalid",
            f"A payment token may have at most {MAX_CHILDREN} open tokens made out of it."
            " Revoke one, or wait until one has expired.",
        )


def token_account(token_id: str, asset: str, owner_id: int | None) -> int:
    """Return the account of a token, created on first use."""
    return ensure_account(code=f"token:{token_id}", kind="token", asset=asset, owner_id=owner_id).id


def make_for_payer(token_id: str, account_id: int, *, name: str, audience: Sequence[str]) -> None:
    """Create the token for outside money meant for one agent; it has no owner here."""
    _create(
        token_id,
        account_id,
        form="x402",
        name=name[:NAME_CHARS],
        audience=list(audience),
        audience_ids=audiences.ids_of(audience),
    )


def secret_of(token_id: str) -> str:
    """Return the opaque secret of a token that was just created."""
    row = PaymentToken.objects.get(pk=token_id)
    return secret_forms.opaque_secret(row.pk, row.salt)


def _create(token_id: str, account_id: int, *, form: str, **fields: Any) -> None:
    salt = "" if form == "jwt" else secrets.token_hex(32)
    sha256 = secret_forms.hash_of(secret_forms.opaque_secret(token_id, salt)) if salt else ""
    PaymentToken.objects.create(
        id=token_id, account_id=account_id, form=form, salt=salt, sha256=sha256, **fields
    )


def _insert(token_id: str, account_id: int, request: _TokenRequest) -> None:
    _create(
        token_id,
        account_id,
        form=request.form,
        owner_id=request.owner_id,
        parent_id=request.parent_id,
        depth=request.depth,
        name=request.name,
        audience=list(request.audience),
        audience_ids=_bound(request),
        per_use_limit=request.per_use.amount if request.per_use else None,
        expires_at=request.expires_at,
    )
    if request.owner_id is not None:
        SpendingLimit.objects.bulk_create(
            SpendingLimit(
                user_id=request.owner_id,
                token_id=token_id,
                period=period,
                asset=limit.asset,
                amount=limit.amount,
            )
            for period, limit in request.limits
        )


def _bound(request: _TokenRequest) -> dict[str, str]:
    ids = {name: request.bound[name] for name in request.audience if name in request.bound}
    return audiences.ids_of(set(request.audience).difference(ids)) | ids


def issued(row: PaymentToken, amount: Money, *, replayed: bool) -> IssuedToken:
    """Return a token with its secret, for the client that requested it."""
    account = row.account
    available = Money(account.posted - account.held, account.asset)
    if row.form == "jwt":
        secret = secret_forms.sign(
            secret_forms.Claims(
                token_id=row.pk,
                owner_id=row.owner_id,
                audience=row.audience,
                issued_at=row.created_at,
                expires_at=row.expires_at,
                balance=available,
                depth=row.depth,
            )
        )
    else:
        secret = secret_forms.opaque_secret(row.pk, row.salt)
        if secret_forms.hash_of(secret) != row.sha256:
            raise IdempotencyConflict("The token was issued with a different server key.")
    return IssuedToken(
        token=secret,
        id=row.pk,
        account_id=account.pk,
        amount=amount,
        available=available,
        expires_at=row.expires_at,
        audience=tuple(row.audience),
        depth=row.depth,
        replayed=replayed,
    )


def _later(seconds: float | None) -> datetime | None:
    if seconds is None:
        return None
    if not 0 < seconds <= MAX_SECONDS:
        raise ImpossibleToken("The lifetime of a token must be positive, and at most ten years.")
    return sql.moment(sql.rows(f"SELECT {sql.later_sql()}", [seconds])[0][0])


def _audience(names: Sequence[str]) -> tuple[str, ...]:
    if len(names) > MAX_AUDIENCE or any(not 0 < len(name) <= AGENT_CHARS for name in names):
        raise ImpossibleToken(f"An audience may have at most {MAX_AUDIENCE} agents, by name.")
    return tuple(dict.fromkeys(names))


def _same_asset(per_use: Money | None, amount: Money) -> Money | None:
    if per_use is not None:
        balances.positive(per_use)
        if per_use.asset != amount.asset:
            raise AssetMismatch(f"The token is in {amount.asset}, its limit in {per_use.asset}.")
    return per_use
