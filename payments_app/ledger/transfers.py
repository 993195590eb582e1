"""Immediate transfers: from outside, between accounts, refunds, and adjustments by operators.

Money from outside is credited once per provider id, however often it is reported and under
whichever key. A refund returns to the payer from the payees in their proportions, and refunds never
exceed their transfer. Refunds, adjustments and transfers to the outside stop while the ledger is
frozen. Functions registered with `refunds_to` are called for each new refund of an answer.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Unpack

import msgspec
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from payments_app.ledger import balances, idempotency, sql
from payments_app.ledger.accounts import external_account, suspense_account
from payments_app.ledger.entries import NewTransfer, post
from payments_app.ledger.freezing import refuse_when_frozen
from payments_app.ledger.outcomes import (
    About,
    AboutFields,
    AnswerRefund,
    NeedsSecond,
    NotRefundable,
    ReceiptConflict,
    SameAccount,
    TransferOutcome,
    UnknownTransfer,
)
from payments_app.ledger.own_money import refuse_own
from payments_app.ledger.sums import Total
from payments_app.models import AdjustmentRequest, Transfer
from payments_app.money import AssetMismatch, InvalidAmount, Money
from telemetry import log_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from payments_app.ledger.balances import LockedAccount

logger = logging.getLogger(__name__)

# The period in which an operator's adjustments are added up.
ALONE_PERIOD: Final = timedelta(days=1)

_listeners: Final[list[Callable[[AnswerRefund], None]]] = []


def transfer(
    *,
    key: str,
    debit: int,
    credit: int,
    amount: Money,
    kind: str = "transfer",
    scope: str = "",
    parts: Sequence[object] = (),
    **about: Unpack[AboutFields],
) -> TransferOutcome:
    """Move an amount from the account `debit` to the account `credit`.

    `parts` extends the request that the key stands for: a different value is a conflict. Raises
    InsufficientFunds, SameAccount, UnknownAccount, AssetMismatch, InvalidAmount,
    IdempotencyConflict, and LedgerFrozen for transfers to the outside.
    """
    with transaction.atomic():
        claimed = idempotency.claim(scope, key, ("transfer", debit, credit, amount, kind, *parts))
        if claimed.stored_result is not None:
            return idempotency.replay(claimed.stored_result, TransferOutcome)
        balances.positive(amount)
        if debit == credit:
            raise SameAccount("A transfer needs two different accounts.")
        accounts, _ = balances.lock_accounts({debit, credit})
        if accounts[credit].overdraft:
            refuse_when_frozen()
        new = NewTransfer(
            kind=kind,
            asset=amount.asset,
            entries={debit: -amount.amount, credit: amount.amount},
            about=About(**about),
        )
        return idempotency.record(
            claimed, TransferOutcome(transfer_id=_posted(new, accounts, amount), amount=amount)
        )


def adjust(
    *,
    key: str,
    account: int,
    amount: Money,
    by: int | None,
    reason: str,
    scope: str = "",
    solo_limit: Money | None = None,
) -> TransferOutcome:
    """Change a balance by a signed amount, against the suspense account, on an operator's decision.

    `solo_limit` is the most that the operator may adjust in 24 hours without a second operator.

    Raises OwnMoney, LedgerFrozen, NeedsSecond, InsufficientFunds, SameAccount, UnknownAccount,
    AssetMismatch, InvalidAmount for zero, ValueError without a reason, IdempotencyConflict.
    """
    if not reason.strip():
        raise ValueError("An adjustment needs a reason.")
    with transaction.atomic():
        claimed = idempotency.claim(scope, key, ("adjust", account, amount, by, reason))
        if claimed.stored_result is not None:
            return idempotency.replay(claimed.stored_result, TransferOutcome)
        refuse_own([account], by)
        refuse_when_frozen()
        if not amount:
            raise InvalidAmount("The amount must not be zero.")
        suspense = suspense_account(amount.asset)
        if suspense.id == account:
            raise SameAccount("The suspense account is the other side of adjustments.")
        accounts, _ = balances.lock_accounts({account, suspense.id})
        # All adjustments lock the suspense account, so none of the sum is missing.
        if solo_limit is not None and by is not None and exceeds_solo_limit(amount, by, solo_limit):
            raise NeedsSecond(f"Your own limit is {solo_limit} {solo_limit.asset} in 24 hours.")
        new = NewTransfer(
            kind="adjust",
            asset=amount.asset,
            entries={account: amount.amount, suspense.id: -amount.amount},
            about=About(memo=reason, by=by),
        )
        done = TransferOutcome(transfer_id=_posted(new, accounts, amount), amount=amount)
        return idempotency.record(claimed, done)


def exceeds_solo_limit(amount: Money, by: int, solo_limit: Money) -> bool:
    """Return whether an adjustment, added to those of the last 24 hours, exceeds `solo_limit`.

    Adjustments that a second operator approved do not count.
    """
    approved = AdjustmentRequest.objects.filter(transfer_id=OuterRef("pk"))
    adjustments = Transfer.objects.filter(kind="adjust", by=by, asset=amount.asset)
    recent = adjustments.filter(created_at__gt=Now() - ALONE_PERIOD).exclude(Exists(approved))
    before = recent.aggregate(sum=Total("amount"))["sum"] or 0
    return before + abs(amount.amount) > solo_limit.amount


def _posted(new: NewTransfer, accounts: Mapping[int, LockedAccount], amount: Money) -> str:
    """Post a movement and return its id; once it is committed, a log line says so with that id."""
    transfer_id = post(new, accounts)

    def log() -> None:
        response_id = new.about.response_id or None
        with log_fields.within(response_id=response_id, payment_id=transfer_id):
            logger.info("%s of %s %s was posted", new.kind, amount, amount.asset)

    transaction.on_commit(log)
    return transfer_id


# --- From outside ---


def record_receipt(
    *,
    provider: str,
    external_id: str,
    account_id: int,
    amount: Money,
    state: str = "received",
    payload: Mapping[str, Any] | None = None,
) -> str:
    """Record a provider's report of a payment that is not credited yet; return its state.

    `state` is received, verified, submitted or failed; a confirmed receipt stays confirmed. Raises
    ReceiptConflict if the id is known with a different amount or account, ValueError for a state
    that only top_up may set.
    """
    if state not in {"received", "verified", "submitted", "failed"}:
        raise ValueError(f"Only top_up can mark a receipt as {state}.")
    with transaction.atomic():
        _receipt(provider, external_id, account_id, balances.positive(amount), payload)
        sql.run(
            "UPDATE payments_app_receipt SET state = %s, updated_at = "  # noqa: S608 constants
            f"{sql.now_sql()} WHERE provider = %s AND external_id = %s"
            " AND state <> 'confirmed'",
            [state, provider, external_id],
        )
        return str(
            sql.rows(
                "SELECT state FROM payments_app_receipt WHERE provider = %s AND external_id = %s",
                [provider, external_id],
            )[0][0]
        )


def top_up(
    *,
    key: str,
    account: int,
    amount: Money,
    provider: str,
    external_id: str,
    payload: Mapping[str, Any] | None = None,
    scope: str = "",
    **about: Unpack[AboutFields],
) -> TransferOutcome:
    """Credit money that came in through a provider, and confirm its receipt.

    The provider's id counts in addition to the key: the same payment under another key returns the
    first credit, `replayed`. Raises OwnMoney if `by` credits their own account, ReceiptConflict,
    UnknownAccount, AssetMismatch, InvalidAmount, IdempotencyConflict.
    """
    with transaction.atomic():
        claimed = idempotency.claim(scope, key, ("top_up", account, amount, provider, external_id))
        if claimed.stored_result is not None:
            return idempotency.replay(claimed.stored_result, TransferOutcome)
        refuse_own([account], about.get("by"))
        balances.positive(amount)
        receipt_id, credited = _receipt(provider, external_id, account, amount, payload)
        if credited is not None:
            first = TransferOutcome(transfer_id=credited, amount=amount, replayed=True)
            return idempotency.record(claimed, first)
        outside = external_account(provider, amount.asset)
        if outside.id == account:
            raise SameAccount("Money from outside must go to an internal account.")
        accounts, _ = balances.lock_accounts({account, outside.id})
        about.setdefault("memo", f"{provider} {external_id}")
        new = NewTransfer(
            kind="top_up",
            asset=amount.asset,
            entries={outside.id: -amount.amount, account: amount.amount},
            about=About(**about),
        )
        done = TransferOutcome(transfer_id=_posted(new, accounts, amount), amount=amount)
        sql.run(
            "UPDATE payments_app_receipt SET state = 'confirmed', transfer_id = %s, updated_at = "  # noqa: S608 constants
            f"{sql.now_sql()} WHERE id = %s",
            [done.transfer_id, receipt_id],
        )
        return idempotency.record(claimed, done)


def _receipt(
    provider: str,
    external_id: str,
    account_id: int,
    amount: Money,
    payload: Mapping[str, Any] | None,
) -> tuple[int, str | None]:
    """Create or lock the receipt of a payment; return its id and the transfer that credited it."""
    if not provider or not external_id:
        raise ValueError("A receipt needs a provider and the provider's id.")
    sql.run(
        "INSERT INTO payments_app_receipt (provider, external_id, account_id, amount, asset, state,"
        " payload) VALUES (%s, %s, %s, %s, %s, 'received', %s)"
        " ON CONFLICT (provider, external_id) DO NOTHING",
        [
            provider,
            external_id,
            account_id,
            amount.amount,
            amount.asset,
            msgspec.json.encode(dict(payload or {})).decode(),
        ],
    )
    pk, known_account, known_amount, asset, transfer_id = sql.rows(
        "SELECT id, account_id, amount, asset, transfer_id FROM payments_app_receipt"  # noqa: S608 constants
        f" WHERE provider = %s AND external_id = %s{sql.row_lock()}",
        [provider, external_id],
    )[0]
    if (known_account, known_amount, asset) != (account_id, amount.amount, amount.asset):
        raise ReceiptConflict(f"{provider} {external_id} already exists with different values.")
    return pk, transfer_id


# --- Back ---


def refunds_to(notify: Callable[[AnswerRefund], None]) -> None:
    """Register a function to call for each refund of an answer, in its transaction."""
    _listeners.append(notify)


def refund(
    *,
    key: str,
    transfer_id: str,
    by: int | None,
    reason: str,
    amount: Money | None = None,
    scope: str = "",
) -> TransferOutcome:
    """Return an amount of a transfer, or its rest, by a new transfer.

    The payees return it in proportion to what they still have of it. Raises OwnMoney if `by` would
    receive it, UnknownTransfer, NotRefundable (more than is left, or itself a refund),
    LedgerFrozen, InsufficientFunds if a payee has spent it, InvalidAmount, AssetMismatch,
    ValueError without a reason, IdempotencyConflict.
    """
    if not reason.strip():
        raise ValueError("A refund needs a reason.")
    with transaction.atomic():
        claimed = idempotency.claim(scope, key, ("refund", transfer_id, amount, by, reason))
        if claimed.stored_result is not None:
            return idempotency.replay(claimed.stored_result, TransferOutcome)
        refuse_when_frozen()
        asset, hold_id, about = _refundable(transfer_id, by, reason)
        entries: dict[int, int] = dict(
            sql.rows(
                "SELECT account_id, amount FROM payments_app_entry WHERE transfer_id = %s",
                [transfer_id],
            )
        )
        refuse_own((pk for pk, moved in entries.items() if moved < 0), by)
        # Refunds of one transfer wait for each other here: they lock the same accounts.
        accounts, _ = balances.lock_accounts(entries.keys())
        unrefunded = _unrefunded(transfer_id, entries)
        total = sum(unrefunded.values())
        to_refund = amount if amount is not None else Money(total, asset)
        if to_refund.asset != asset:
            raise AssetMismatch(f"The transfer is in {asset}, the amount in {to_refund.asset}.")
        if total == 0 or to_refund.amount > total:
            raise NotRefundable(f"left: {Money(total, asset)}")
        balances.positive(to_refund)
        back = _backwards(entries, unrefunded, to_refund.amount)
        new = NewTransfer(
            kind="refund",
            asset=asset,
            entries=back,
            about=about,
            hold_id=hold_id,
            reverses_id=transfer_id,
        )
        done = TransferOutcome(transfer_id=_posted(new, accounts, to_refund), amount=to_refund)
        if about.response_id:
            given_back = AnswerRefund(
                transfer_id=done.transfer_id, response_id=about.response_id, chat_id=about.chat_id
            )
            for notify in _listeners:
                notify(given_back)
        return idempotency.record(claimed, done)


def _refundable(transfer_id: str, by: int | None, reason: str) -> tuple[str, str | None, About]:
    """Return the asset and hold of a transfer, and the purpose of its refund."""
    rows = sql.rows(
        "SELECT asset, hold_id, reverses_id, response_id, chat_id, agent_id, protocol"
        " FROM payments_app_transfer WHERE id = %s",
        [transfer_id],
    )
    if not rows:
        raise UnknownTransfer(f"There is no transfer {transfer_id!r}.")
    asset, hold_id, reverses_id, response_id, chat_id, agent_id, protocol = rows[0]
    if reverses_id is not None:
        raise NotRefundable("A refund cannot be refunded.")
    about = About(
        memo=reason,
        response_id=response_id,
        chat_id=chat_id,
        agent_id=agent_id,
        protocol=protocol,
        by=by,
    )
    return asset, hold_id, about


def _unrefunded(transfer_id: str, entries: Mapping[int, int]) -> dict[int, int]:
    """Return the amount that each payee has not yet refunded."""
    given_back: dict[int, int] = dict(
        sql.rows(
            "SELECT entry.account_id, SUM(entry.amount) FROM payments_app_entry entry"
            " JOIN payments_app_transfer back ON back.id = entry.transfer_id"
            " WHERE back.reverses_id = %s GROUP BY entry.account_id",
            [transfer_id],
        )
    )
    return {
        account_id: amount + int(given_back.get(account_id, 0))
        for account_id, amount in entries.items()
        if amount > 0
    }


def _backwards(
    entries: Mapping[int, int], unrefunded: Mapping[int, int], to_refund: int
) -> dict[int, int]:
    """Spread `to_refund` over the payees; cumulative shares are rounded down, so none overpays."""
    total = sum(unrefunded.values())
    back: dict[int, int] = {}
    before = parts_total = 0
    for account_id, amount in unrefunded.items():
        before += amount
        part = before * to_refund // total - parts_total
        parts_total += part
        if part:
            back[account_id] = -part
    payer = next(account_id for account_id, amount in entries.items() if amount < 0)
    back[payer] = to_refund
    return back
