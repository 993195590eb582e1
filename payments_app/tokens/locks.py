"""Locks on a payment token and their settlement: the agents' side (webagents §5.2).

A caller who presents a good token may lock money of it, and only that caller may take it: into the
account of the agent that the lock is for, or to the platform. A request with a key has one effect,
and its answer is stored and returned again. If more is requested than is locked, everything locked
is taken and reported as `partial`. The spending limits of a token's owner apply here too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction

from payments_app.ledger import accounts, captures, idempotency, sql
from payments_app.ledger.outcomes import (
    Authorization,
    CaptureOutcome,
    LimitReached,
    OverCapture,
    Split,
    UnknownHold,
)
from payments_app.models import Hold, PaymentToken
from payments_app.money import AssetMismatch, Money
from payments_app.spending import authorizations
from payments_app.spending.audiences import NotForAgent
from payments_app.tokens import lookup as token_lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from payments_app.tokens.lookup import ResolvedToken

LOCK_SECONDS: Final = 3600.0
MEMO_CHARS: Final = 500
_OTHER_AGENT: Final = "The lock is not for this agent. Specify the agent in `agent` when you lock."


@dataclass(frozen=True, slots=True, kw_only=True)
class Payee:
    """The person who locks and takes money, with the agents that they own as (id, name)."""

    user_id: int
    agents: tuple[tuple[str, str], ...] = ()

    @property
    def mark(self) -> str:
        """The purpose of their locks."""
        return f"lock:{self.user_id}"

    def agent(self, named: str) -> str | None:
        """Return the id of one of their agents, by id or name; None if they own no such agent."""
        return next((pk for pk, name in self.agents if named in {pk, name}), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The amount to take; without an `agent_id` it goes to the platform."""

    amount: Money
    agent_id: str = ""
    release: bool = False
    memo: str = ""
    chat_id: str = ""
    kind: str = "charge"


def once(
    scope: str, key: str, terms: Mapping[str, Any], work: Callable[[], dict[str, Any]]
) -> tuple[dict[str, Any], bool]:
    """Do work once per key; return the answer and whether it is a stored one.

    The request may contain a secret, so only its hash is stored; the answer must not. A refusal
    stores nothing. Raises IdempotencyConflict for a different request with the same key.
    """
    with transaction.atomic():
        claimed = idempotency.claim(scope, key, (json.dumps(terms, sort_keys=True),))
        if claimed.stored_result is not None:
            stored: dict[str, Any] = json.loads(claimed.stored_result)
            return stored, True
        answer = work()
        sql.run(
            "UPDATE payments_app_idempotency SET outcome = %s WHERE id = %s",
            [json.dumps(answer), claimed.id],
        )
        return answer, False


def spendable(payee: Payee, secret: str) -> ResolvedToken:
    """Return a token that may pay this payee; raises TokenRefused."""
    token = token_lookup.resolve(secret)
    if token.audience and not _meant(payee, token):
        raise token_lookup.TokenRefused(
            "token_invalid", "The payment token is not for your agents."
        )
    return token


def check_audience(payee: Payee, token: ResolvedToken, agent_id: str) -> None:
    """Raise TokenRefused if a token is not for this agent of the payee; "" means no agent."""
    if agent_id and token.audience and agent_id not in _meant(payee, token):
        raise token_lookup.TokenRefused("token_invalid", "The payment token is not for this agent.")


def _meant(payee: Payee, token: ResolvedToken) -> list[str]:
    return [pk for pk, name in payee.agents if token.is_for(pk, name)]


def agent_for(payee: Payee, token: ResolvedToken) -> str:
    """Return the id of the payee's only agent that a token may pay, or ""."""
    meant = _meant(payee, token)
    return meant[0] if len(meant) == 1 else ""


def lock(
    payee: Payee, *, key: str, secret: str, amount: Money, agent_id: str = "", seconds: float = 0
) -> dict[str, Any]:
    """Reserve an amount of a token; raises TokenRefused, InsufficientFunds, LimitReached.

    Only this agent can be paid from the lock. Without an `agent_id` it is the only agent of the
    payee that the token may pay, or the platform.
    """
    with transaction.atomic():
        token = spendable(payee, secret)
        check_audience(payee, token, agent_id)
        agent_id = agent_id or agent_for(payee, token)
        _check(token, amount, amount)
        request = Authorization(
            key=f"{token.id}:{key}",
            scope=f"rest:lock:{payee.user_id}",
            account_id=token.account_id,
            amount=amount,
            purpose=payee.mark,
            agent_id=agent_id,
            expires_in=seconds or LOCK_SECONDS,
            limits_of=token.owner_id,
        )
        try:
            hold = authorizations.authorize(request)
        except NotForAgent as error:
            raise token_lookup.foreign() from error
    return {
        "lock_id": hold.hold_id,
        "token_id": token.id,
        "amount": str(hold.amount),
        "available": str(hold.available),
        "currency": amount.asset,
        "expires_at": hold.expires_at.isoformat(),
    }


def extend(payee: Payee, *, key: str, lock_id: str, amount: Money) -> dict[str, Any]:
    """Lock more; raises UnknownHold for another payee's lock, and the errors of lock."""
    with transaction.atomic():
        first = lock_of(payee, lock_id)
        # Concurrent extensions queue here, so that both count towards one use of the token.
        captures.lock("id = %s", [lock_id])
        row = PaymentToken.objects.get(account_id=first.account_id)
        token = token_lookup.by_id(row.pk)
        before = sum(held.amount for held in _group(first))
        _check(token, amount, amount + Money(before, token.asset))
        authorizations.extend(
            key=key,
            scope=f"rest:extend:{payee.user_id}",
            hold_id=lock_id,
            amount=amount,
            expires_in=LOCK_SECONDS,
            limits_of=token.owner_id,
        )
        group = _group(first)
    return {
        "lock_id": lock_id,
        "amount": str(Money(sum(held.amount for held in group), token.asset)),
        "currency": token.asset,
    }


def _check(token: ResolvedToken, more: Money, total: Money) -> None:
    if token.asset != more.asset:
        raise AssetMismatch(f"The token is in {token.asset}, the amount in {more.asset}.")
    if token.per_use is not None and total > token.per_use:
        raise LimitReached("use of the token", token.per_use, None)


def lock_of(payee: Payee, lock_id: str) -> Hold:
    """Return a payee's lock; raises UnknownHold for a missing one or another payee's."""
    first = (
        Hold.objects.filter(pk=lock_id, purpose=payee.mark, extends__isnull=True)
        .select_related("account")
        .first()
    )
    if first is None:
        raise UnknownHold("There is no such lock.")
    return first


def _group(first: Hold) -> list[Hold]:
    return [first, *Hold.objects.filter(extends_id=first.pk)]


def settle(payee: Payee, *, key: str, lock_id: str, charge: Charge) -> dict[str, Any]:
    """Take an amount of a lock; `release` returns the rest and ends it.

    Raises UnknownHold, TokenRefused if the agent is not the lock's, HoldNotActive, OverCapture
    if nothing is left, and the errors of capture.
    """
    first = lock_of(payee, lock_id)
    if charge.agent_id not in {"", first.agent_id}:
        raise token_lookup.TokenRefused("token_invalid", _OTHER_AGENT)
    requested = amount = charge.amount
    try:
        done = _capture(payee, key, first, charge, amount)
    except OverCapture as error:
        if not error.left:
            raise
        amount = error.left
        done = _capture(payee, f"{key}:part", first, charge, amount)
    return {
        "lock_id": lock_id,
        "charged": str(done.captured),
        "released": str(done.released),
        "remaining": str(done.left),
        "requested": str(requested),
        "unbilled": str(requested - amount),
        "partial": amount != requested,
        "currency": amount.asset,
        "transfer_ids": list(done.transfer_ids),
    }


def settle_token(payee: Payee, *, key: str, secret: str, charge: Charge) -> dict[str, Any]:
    """Take an amount of a token at once: a lock and its settlement, with the errors of both."""
    with transaction.atomic():
        token = spendable(payee, secret)
        _lock_all(token, key, charge)
        locked = lock(
            payee,
            key=f"settle:{key}",
            secret=secret,
            amount=charge.amount,
            agent_id=charge.agent_id,
        )
        return settle(payee, key=key, lock_id=locked["lock_id"], charge=charge)


def _lock_all(token: ResolvedToken, key: str, charge: Charge) -> None:
    """Lock everything that a lock and its settlement concern in one order, as one operation."""
    asset = charge.amount.asset
    ids = {token.account_id}
    if token.owner_id is not None:
        ids.add(accounts.account_of_user(token.owner_id, asset).id)
    if charge.agent_id:
        ids.add(accounts.account_of_agent(charge.agent_id, asset).id)
    accounts.lock_with_fees(ids, {accounts.fee_code(key, asset): asset})


def _capture(payee: Payee, key: str, first: Hold, charge: Charge, amount: Money) -> CaptureOutcome:
    splits = []
    agent_id = charge.agent_id
    fee = amount.share(settings.UAMP_FEE_BASIS_POINTS, 10_000) if agent_id else amount
    if amount - fee:
        account = accounts.account_of_agent(agent_id, amount.asset)
        splits.append(Split(account.id, amount - fee))
    if fee:
        splits.append(Split(None, fee))
    return captures.capture(
        key=key,
        scope=f"rest:settle:{payee.user_id}",
        hold_id=first.pk,
        amount=amount,
        splits=splits,
        kind=charge.kind,
        release=charge.release,
        memo=charge.memo[:MEMO_CHARS] or charge.kind,
        chat_id=charge.chat_id,
        agent_id=agent_id or first.agent_id,
        protocol="rest",
    )
