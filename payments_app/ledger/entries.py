"""Transfers and their entries, as they are posted.

The entries are inserted before their transfer, because SQLite checks their sum when the transfer is
inserted.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from payments_app.ledger.balances import LockedAccount, change
from payments_app.ledger.outcomes import (
    About,
    SameAccount,
)
from payments_app.ledger.sql import Row, run
from payments_app.money import AssetMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def new_id(prefix: str) -> str:
    """Return an id for a transfer or hold: a prefix, then the time and 64 random bits in hex.

    The time keeps the order of holds made within a millisecond, the resolution of SQLite's clock.
    """
    return f"{prefix}_{time.time_ns():016x}{secrets.token_hex(8)}"


def new_transfer_id() -> str:
    """Return the id of a transfer to be posted later."""
    return new_id("tr")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTransfer:
    """A transfer to be posted; `entries` are amounts by account and add up to zero.

    An empty `id` is replaced by a new one.
    """

    kind: str
    asset: str
    entries: Mapping[int, int]
    about: About
    hold_id: str | None = None
    reverses_id: str | None = None
    id: str = ""


def check(transfer: NewTransfer, accounts: Mapping[int, LockedAccount]) -> None:
    """Refuse a transfer between assets (AssetMismatch) or to the same account (SameAccount)."""
    if len(transfer.entries) < 2:  # noqa: PLR2004 a payer and a payee
        raise SameAccount("A transfer needs two different accounts.")
    for account_id in transfer.entries:
        asset = accounts[account_id].asset
        if asset != transfer.asset:
            raise AssetMismatch(
                f"{accounts[account_id].code} has {asset}, the transfer is in {transfer.asset}."
            )


def insert(transfers: Sequence[NewTransfer]) -> list[str]:
    """Insert transfers with their entries and return their ids; balances are changed separately."""
    ids = [transfer.id or new_transfer_id() for transfer in transfers]
    entries = [
        value
        for pk, transfer in zip(ids, transfers, strict=True)
        for account_id, amount in transfer.entries.items()
        for value in (pk, account_id, amount)
    ]
    run(
        "INSERT INTO payments_app_entry (transfer_id, account_id, amount) VALUES "  # noqa: S608 placeholders only
        + ", ".join(["(%s, %s, %s)"] * (len(entries) // 3)),
        entries,
    )
    columns = (
        "id, kind, asset, amount, hold_id, reverses_id, memo, by_id, response_id, chat_id,"
        " agent_id, protocol"
    )
    marks = f"({', '.join(['%s'] * 12)})"
    run(
        f"INSERT INTO payments_app_transfer ({columns}) VALUES "  # noqa: S608 placeholders only
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
    """Post a transfer: change the balances of locked accounts, insert it and return its id."""
    check(transfer, accounts)
    change({account_id: (amount, 0) for account_id, amount in transfer.entries.items()}, accounts)
    return insert([transfer])[0]
