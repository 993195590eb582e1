"""Statements below every operation: claim a key, lock accounts, post a transfer.

An operation is one transaction (the caller's, when there is one). Its first statement
claims the key; then receipts and holds are locked, then accounts in the order of their ids: no two
operations wait for each other in a circle. An account is judged after it is locked. The entries
are written before their transfer, because SQLite checks their sum when the transfer arrives.

SQL of our own, the same for both databases: a paid turn passes here twice.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from django.db import connection
from django.utils.dateparse import parse_datetime

from payments_app.ledger.outcomes import (
    About,
    CaptureOutcome,
    HoldOutcome,
    IdempotencyConflict,
    InsufficientFunds,
    SameAccount,
    TransferOutcome,
    UnknownAccount,
)
from payments_app.money import AssetMismatch, InvalidAmount, Money

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

Kept = TypeVar("Kept", HoldOutcome, CaptureOutcome, TransferOutcome)
Row = tuple[Any, ...]

KEY_LENGTH: Final = 255


@dataclass(frozen=True, slots=True)
class Claim:
    """A key that is ours for this transaction (`kept` is None), or the answer that it was given."""

    id: int
    kept: str | None


@dataclass(frozen=True, slots=True)
class LockedAccount:
    """An account as it is while we hold its lock."""

    id: int
    code: str
    asset: str
    posted: int
    held: int
    overdraft: bool


def rows(sql: str, params: Sequence[Any] = ()) -> list[Row]:
    """Run a statement and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        found: list[Row] = cursor.fetchall()
        return found


def run(sql: str, params: Sequence[Any] = ()) -> int:
    """Run a statement and return how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.rowcount)


def row_lock() -> str:
    """Return the end of a SELECT that locks; SQLite has one writer, which is us."""
    return " FOR NO KEY UPDATE" if connection.vendor == "postgresql" else ""


def now_sql() -> str:
    """Return the database's clock: no process's own decides what is over."""
    if connection.vendor == "postgresql":
        return "statement_timestamp()"
    return "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')"


def later_sql() -> str:
    """Return the database's clock plus a parameter in seconds."""
    if connection.vendor == "postgresql":
        return "statement_timestamp() + make_interval(secs => %s)"
    return "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s || ' seconds')"


def moment(value: Any) -> datetime:
    """Return a time that a statement gave: SQLite gives text."""
    found = parse_datetime(value) if isinstance(value, str) else value
    if not isinstance(found, datetime):
        raise TypeError(f"The database gave no time: {value!r}")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def new_id(prefix: str) -> str:
    """Return an id of a transfer or hold: time and 64 random bits in hex after a prefix.

    The time keeps holds of one millisecond, the resolution of SQLite's clock, in their order.
    """
    return f"{prefix}_{time.time_ns():016x}{secrets.token_hex(8)}"


def positive(amount: Money) -> Money:
    """Return the amount; InvalidAmount unless it is more than nothing."""
    if amount.amount <= 0:
        raise InvalidAmount("The amount must be more than nothing.")
    return amount


# --- Keys ---


def fingerprint(request: Sequence[Any]) -> str:
    """Return the hash of what is asked with a key."""
    return hashlib.sha256(msgspec.json.encode(request)).hexdigest()


def claim(scope: str, key: str, request: Sequence[Any]) -> Claim:
    """Claim a key, waiting for another transaction that has it.

    ValueError for a key that is empty or longer than 255 characters, IdempotencyConflict for one
    that was used with another request.
    """
    if not 0 < len(key) <= KEY_LENGTH:
        raise ValueError(f"A key has 1 to {KEY_LENGTH} characters.")
    sha256 = fingerprint(request)
    new = rows(
        "INSERT INTO payments_app_idempotency (scope, key, sha256) VALUES (%s, %s, %s)"
        " ON CONFLICT (scope, key) DO NOTHING RETURNING id",
        [scope, key, sha256],
    )
    if new:
        return Claim(new[0][0], None)
    return _known(scope, key, sha256)


def _known(scope: str, key: str, sha256: str) -> Claim:
    known_id, known, kept = rows(
        "SELECT id, sha256, outcome FROM payments_app_idempotency WHERE scope = %s AND key = %s",
        [scope, key],
    )[0]
    if known != sha256:
        raise IdempotencyConflict(f"The key {key!r} was used for another request.")
    return Claim(known_id, kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A key and what is asked with it."""

    scope: str
    key: str
    request: Sequence[Any]


def claim_many(asked: Sequence[Question]) -> list[Claim | IdempotencyConflict]:
    """Claim keys in one statement, in their order: two lists never wait for each other in a circle.

    The answers stand where the questions stood; the same question twice is one claim.
    """
    if not all(0 < len(one.key) <= KEY_LENGTH for one in asked):
        raise ValueError(f"A key has 1 to {KEY_LENGTH} characters.")
    prints = [fingerprint(one.request) for one in asked]
    wanted: dict[tuple[str, str], str] = {}
    for one, sha256 in zip(asked, prints, strict=True):
        wanted.setdefault((one.scope, one.key), sha256)
    new = rows(
        "INSERT INTO payments_app_idempotency (scope, key, sha256) VALUES "  # noqa: S608 marks only
        + ", ".join(["(%s, %s, %s)"] * len(wanted))
        + " ON CONFLICT (scope, key) DO NOTHING RETURNING scope, key, id",
        [value for name in sorted(wanted) for value in (*name, wanted[name])],
    )
    claimed = {(scope, key): Claim(pk, None) for scope, key, pk in new}
    answers: list[Claim | IdempotencyConflict] = []
    for one, sha256 in zip(asked, prints, strict=True):
        name = (one.scope, one.key)
        if name in claimed and wanted[name] == sha256:
            answers.append(claimed[name])
            continue
        try:
            answers.append(_known(one.scope, one.key, sha256))
        except IdempotencyConflict as error:
            answers.append(error)
    return answers


def keep(claimed: Claim, outcome: Kept) -> Kept:
    """Write the answer to a claimed key and return it."""
    run(
        "UPDATE payments_app_idempotency SET outcome = %s WHERE id = %s",
        [msgspec.json.encode(outcome).decode(), claimed.id],
    )
    return outcome


def keep_many(outcomes: Mapping[int, Kept]) -> None:
    """Write the answers to claimed keys, given by the ids of their claims."""
    if not outcomes:
        return
    # A value of a list has no type of its own on PostgreSQL.
    kind = "::jsonb" if connection.vendor == "postgresql" else ""
    run(
        f"UPDATE payments_app_idempotency SET outcome = kept.column2{kind} FROM (VALUES "  # noqa: S608 marks only
        + ", ".join(["(%s, %s)"] * len(outcomes))
        + ") AS kept WHERE payments_app_idempotency.id = kept.column1",
        [
            value
            for pk, outcome in outcomes.items()
            for value in (pk, msgspec.json.encode(outcome).decode())
        ],
    )


def forget_many(claimed: Collection[int]) -> None:
    """Give claimed keys back: what was asked with them was refused."""
    if claimed:
        marks = ", ".join(["%s"] * len(claimed))
        run(f"DELETE FROM payments_app_idempotency WHERE id IN ({marks})", list(claimed))  # noqa: S608 marks only


def replay(kept: str, kind: type[Kept]) -> Kept:
    """Return the answer that was kept, marked as given again."""
    return replace(msgspec.json.decode(kept, type=kind), replayed=True)


# --- Accounts ---


def lock_accounts(
    ids: Collection[int], codes: Collection[str] = ()
) -> tuple[dict[int, LockedAccount], dict[str, int]]:
    """Lock accounts in the order of their ids; return them by id, and the ids by code.

    UnknownAccount when an id has none. A code that has none is left out.
    """
    found, by_code = lock_found(ids, codes)
    if missing := set(ids) - set(found):
        raise UnknownAccount(f"There is no account {min(missing)}.")
    return found, by_code


def lock_found(
    ids: Collection[int], codes: Collection[str] = ()
) -> tuple[dict[int, LockedAccount], dict[str, int]]:
    """Lock those accounts that there are; see lock_accounts."""
    wanted = sorted(ids)
    named = sorted(codes)
    where = f"id IN ({', '.join(['%s'] * len(wanted)) or 'NULL'})"
    if named:
        where += f" OR code IN ({', '.join(['%s'] * len(named))})"
    found = {
        row[0]: LockedAccount(row[0], row[1], row[2], row[3], row[4], bool(row[5]))
        for row in rows(
            "SELECT id, code, asset, posted, held, overdraft FROM payments_app_account"  # noqa: S608 marks only
            f" WHERE {where} ORDER BY id{row_lock()}",
            [*wanted, *named],
        )
    }
    return found, {account.code: account.id for account in found.values()}


def move(legs: Mapping[int, tuple[int, int]], accounts: Mapping[int, LockedAccount]) -> None:
    """Change locked accounts by (posted, held) each; InsufficientFunds where that overdraws."""
    for account_id, (posted, held) in legs.items():
        account = accounts[account_id]
        before = account.posted - account.held
        if posted - held < 0 and before + posted - held < 0 and not account.overdraft:
            raise InsufficientFunds(
                Money(before, account.asset), Money(held - posted, account.asset)
            )
    values = ", ".join(["(%s, %s, %s)"] * len(legs))
    changed = run(
        "UPDATE payments_app_account SET posted = posted + leg.column2, held = held + leg.column3"  # noqa: S608 marks only
        f" FROM (VALUES {values}) AS leg WHERE payments_app_account.id = leg.column1",
        [number for key, leg in legs.items() for number in (key, *leg)],
    )
    if changed != len(legs):
        raise UnknownAccount("An account was not there when its money moved.")


# --- Transfers ---


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTransfer:
    """A transfer to be posted: `entries` are what each account gets, and add up to zero."""

    kind: str
    asset: str
    entries: Mapping[int, int]
    about: About
    hold_id: str | None = None
    reverses_id: str | None = None


def judge(transfer: NewTransfer, accounts: Mapping[int, LockedAccount]) -> None:
    """Refuse a transfer between assets (AssetMismatch) or to itself (SameAccount)."""
    if len(transfer.entries) < 2:  # noqa: PLR2004 one that gives and one that takes
        raise SameAccount("Money goes from one account to another.")
    for account_id in transfer.entries:
        asset = accounts[account_id].asset
        if asset != transfer.asset:
            raise AssetMismatch(
                f"{accounts[account_id].code} has {asset}, the transfer is in {transfer.asset}."
            )


def write(transfers: Sequence[NewTransfer]) -> list[str]:
    """Insert transfers with their entries and return their ids; the accounts are moved apart."""
    ids = [new_id("tr") for _ in transfers]
    entries = [
        value
        for pk, transfer in zip(ids, transfers, strict=True)
        for account_id, amount in transfer.entries.items()
        for value in (pk, account_id, amount)
    ]
    run(
        "INSERT INTO payments_app_entry (transfer_id, account_id, amount) VALUES "  # noqa: S608 marks only
        + ", ".join(["(%s, %s, %s)"] * (len(entries) // 3)),
        entries,
    )
    columns = (
        "id, kind, asset, amount, hold_id, reverses_id, memo, by_id, response_id, chat_id,"
        " agent_id, protocol"
    )
    marks = f"({', '.join(['%s'] * 12)})"
    run(
        f"INSERT INTO payments_app_transfer ({columns}) VALUES "  # noqa: S608 marks only
        + ", ".join([marks] * len(ids)),
        [
            value
            for pk, transfer in zip(ids, transfers, strict=True)
            for value in _transfer_row(pk, transfer)
        ],
    )
    return ids


def _transfer_row(pk: str, transfer: NewTransfer) -> Row:
    about = transfer.about
    amount = sum(amount for amount in transfer.entries.values() if amount > 0)
    return (
        pk, transfer.kind, transfer.asset, amount, transfer.hold_id, transfer.reverses_id,
        about.memo, about.by, about.response_id, about.chat_id, about.agent_id, about.protocol,
    )  # fmt: skip


def post(transfer: NewTransfer, accounts: Mapping[int, LockedAccount]) -> str:
    """Move locked accounts by a transfer's entries, write it and return its id."""
    judge(transfer, accounts)
    move({account_id: (amount, 0) for account_id, amount in transfer.entries.items()}, accounts)
    return write([transfer])[0]
