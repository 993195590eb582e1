"""Reserving: a hold sets money aside before the work is done.

A hold takes from the available balance while its account is locked, so no two holds take the same
money. All accounts concerned by a list of holds, including a guard's, are locked together in the
order of their ids. `captures` implements how holds end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.db import connection, transaction

from payments_app.ledger import balances, entries, idempotency, sql
from payments_app.ledger.captures import Refusal, lock
from payments_app.ledger.outcomes import (
    Authorization,
    HoldNotActive,
    HoldOutcome,
    IdempotencyConflict,
    InsufficientFunds,
    LedgerError,
    UnknownAccount,
    UnknownHold,
)
from payments_app.money import AssetMismatch, InvalidAmount, Money

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

RENEWED_BELOW: Final = 0.9
"""A hold is renewed once less than this share of its time is left."""


class Guard(Protocol):
    """A check that must allow a hold in addition to the balance; `authorizations` has one."""

    def accounts(self, requests: Collection[Authorization]) -> Collection[int]:
        """Return the accounts it also needs locked, created if necessary. Called first."""

    def allow(self, request: Authorization) -> None:
        """Raise a LedgerError to refuse a request. Called while the accounts are locked."""

    def took(self, request: Authorization) -> None:
        """Count a reservation of this list, before the next request is checked."""


def authorize_many(
    requests: Sequence[Authorization], guard: Guard | None = None
) -> list[HoldOutcome | Refusal]:
    """Make many reservations in one transaction; answers keep the order of requests.

    A refusal (InsufficientFunds with the available amount, UnknownAccount, AssetMismatch,
    InvalidAmount, IdempotencyConflict) is returned in its place and takes nothing, without
    affecting the others. The same key twice in one list is one hold. Another hold with the same
    `response_id` adds to it, which is how the reservation of an answer grows.
    """
    if not requests:
        return []
    for request in requests:
        _lasting(request)
    answers: dict[int, HoldOutcome | Refusal] = {}
    mine: dict[int, idempotency.ClaimedKey] = {}
    again: dict[int, int] = {}
    first: dict[int, int] = {}
    with transaction.atomic():
        claims = idempotency.claim_many(
            [
                idempotency.KeyedRequest(
                    scope=request.scope, key=request.key, request=_terms(request)
                )
                for request in requests
            ]
        )
        for place, claimed in enumerate(claims):
            if isinstance(claimed, IdempotencyConflict):
                answers[place] = claimed
            elif claimed.stored_result is not None:
                answers[place] = idempotency.replay(claimed.stored_result, HoldOutcome)
            elif first.setdefault(claimed.id, place) != place:
                again[place] = first[claimed.id]
            else:
                mine[place] = claimed
        answers |= _reserve_many({place: requests[place] for place in mine}, guard)
        by_id = {mine[place].id: answers[place] for place in mine}
        idempotency.record_many(
            {pk: made for pk, made in by_id.items() if isinstance(made, HoldOutcome)}
        )
        # A refused reservation has written nothing but its key.
        idempotency.release_many(
            [pk for pk, answer in by_id.items() if not isinstance(answer, HoldOutcome)]
        )
    for place, other in again.items():
        answer = answers[other]
        answers[place] = (
            replace(answer, replayed=True) if isinstance(answer, HoldOutcome) else answer
        )
    return [answers[place] for place in range(len(requests))]


def extend(
    *,
    key: str,
    hold_id: str,
    amount: Money,
    expires_in: float = 900.0,
    scope: str = "",
    limits_of: int | None = None,
    guard: Guard | None = None,
) -> HoldOutcome:
    """Reserve more for a hold: a second hold that is captured and released with the first.

    Raises the refusals of `authorize_many`, and UnknownHold and HoldNotActive.
    """
    with transaction.atomic():
        claimed = idempotency.claim(scope, key, ("extend", hold_id, amount))
        if claimed.stored_result is not None:
            return idempotency.replay(claimed.stored_result, HoldOutcome)
        first = lock("id = %s", [hold_id])
        if not first:
            raise UnknownHold(f"There is no hold {hold_id!r}.")
        if first[0].state != "active":
            raise HoldNotActive(first[0].state)
        # Budgets and the payer's usage count all of it alike.
        ((chat_id, credential, asker_id),) = sql.rows(
            "SELECT chat_id, credential, asker_id FROM payments_app_hold WHERE id = %s", [hold_id]
        )
        request = Authorization(
            key=key,
            account_id=first[0].account_id,
            amount=amount,
            purpose=first[0].purpose,
            response_id=first[0].response_id,
            agent_id=first[0].agent_id,
            chat_id=chat_id or "",
            expires_in=expires_in,
            scope=scope,
            limits_of=limits_of,
            credential=credential or "",
            asker_id=asker_id,
        )
        extends = first[0].extends_id or hold_id
        _lasting(request)
        answer = _reserve_many({0: request}, guard, extends=extends)[0]
        if isinstance(answer, Exception):
            raise answer
        return idempotency.record(claimed, answer)


def renew(response_ids: Sequence[str], *, seconds: float) -> int:
    """Make the active holds of responses last `seconds` from now; return how many were renewed.

    A hold with most of its time left is skipped, as is a hold that is being captured.
    """
    if not response_ids:
        return 0
    marks = ", ".join(["%s"] * len(response_ids))
    which = (
        f"FROM payments_app_hold WHERE state = 'active' AND response_id IN ({marks})"
        f" AND response_id <> '' AND expires_at < {sql.later_sql()}"
    )
    params = [*response_ids, seconds * RENEWED_BELOW]
    # Asked outside a transaction first: on SQLite a transaction would wait for the writer.
    if not sql.rows(f"SELECT 1 {which} LIMIT 1", params):
        return 0
    lock = " FOR NO KEY UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    return sql.run(
        f"UPDATE payments_app_hold SET expires_at = {sql.later_sql()}"  # noqa: S608 placeholders only
        f" WHERE id IN (SELECT id {which}{lock})",
        [seconds, *params],
    )


def _terms(request: Authorization) -> tuple[object, ...]:
    # The duration is not part of the request: retries may recompute it.
    return ("authorize", request.account_id, request.amount, request.purpose, request.response_id)


def _reserve_many(
    requests: Mapping[int, Authorization], guard: Guard | None, *, extends: str | None = None
) -> dict[int, HoldOutcome | Refusal]:
    """Reserve for each in turn, as if alone, in three statements; answers keep their keys."""
    if not requests:
        return {}
    guarded = guard.accounts(requests.values()) if guard else ()
    accounts, _ = balances.lock_existing(
        {request.account_id for request in requests.values()} | set(guarded)
    )
    remaining = {pk: account.posted - account.held for pk, account in accounts.items()}
    answers: dict[int, HoldOutcome | Refusal] = {}
    legs: dict[int, tuple[int, int]] = {}
    new: dict[int, tuple[Authorization, str | None, Money]] = {}
    for place, request in requests.items():
        try:
            amount = balances.positive(request.amount)
            account = accounts.get(request.account_id)
            if account is None:
                raise _unknown(request.account_id)
            _same_asset(amount, account.asset)
            if guard:
                guard.allow(request)
            if amount.amount > remaining[account.id] and not account.overdraft:
                available = Money(remaining[account.id], account.asset)
                raise InsufficientFunds(available, amount)
        except (LedgerError, InvalidAmount, AssetMismatch) as error:
            answers[place] = error
            continue
        remaining[account.id] -= amount.amount
        legs[account.id] = (0, legs.get(account.id, (0, 0))[1] + amount.amount)
        new[place] = (request, extends, Money(remaining[account.id], account.asset))
        if guard:
            guard.took(request)
    if new:
        balances.change(legs, accounts)
        answers |= zip(new, _write(list(new.values())), strict=True)
    return answers


def _write(new: Sequence[tuple[Authorization, str | None, Money]]) -> list[HoldOutcome]:
    """Insert holds given as (request, hold it extends, what its account has left)."""
    ids = [entries.new_id("hold") for _ in new]
    marks = f"(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, {sql.later_sql()})"
    times: dict[str, Any] = dict(
        sql.rows(
            "INSERT INTO payments_app_hold (id, account_id, amount, purpose, response_id,"  # noqa: S608 constants
            " agent_id, chat_id, credential, asker_id, extends_id, expires_at)"
            f" VALUES {', '.join([marks] * len(new))}"
            " RETURNING id, expires_at",
            [
                value
                for pk, (request, extends, _) in zip(ids, new, strict=True)
                for value in (
                    pk, request.account_id, request.amount.amount, request.purpose,
                    request.response_id, request.agent_id, request.chat_id or None,
                    request.credential or None, request.asker_id, extends, request.expires_in,
                )
            ],
        )
    )  # fmt: skip
    return [
        HoldOutcome(
            hold_id=pk,
            account_id=request.account_id,
            amount=request.amount,
            available=available,
            expires_at=sql.moment(times[pk]),
        )
        for pk, (request, _, available) in zip(ids, new, strict=True)
    ]


def _lasting(request: Authorization) -> None:
    if not request.expires_in > 0:
        raise ValueError("The duration of a hold must be positive.")


def _same_asset(amount: Money, asset: str) -> None:
    if asset != amount.asset:
        raise AssetMismatch(f"The account has {asset}, the amount is in {amount.asset}.")


def _unknown(account_id: int) -> UnknownAccount:
    return UnknownAccount(f"There is no account {account_id}.")
