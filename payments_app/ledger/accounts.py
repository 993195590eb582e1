"""Find and create accounts. A code names one: `user:12:USD`, `platform:fees:USD:07`."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from payments_app.ledger import balances, sql
from payments_app.ledger.outcomes import AccountRef
from payments_app.models import AccountKind
from payments_app.money import DEFAULT_ASSET, asset_named

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

FEE_SHARDS: Final = 16
"""Every settled turn pays a fee, so a single row would be a queue for all of them."""


def ensure_account(
    *,
    code: str,
    kind: str,
    asset: str = DEFAULT_ASSET,
    owner_id: int | None = None,
    agent_id: str = "",
    overdraft: bool = False,
) -> AccountRef:
    """Return the account of a code, creating it from the other values if there is none.

    Raises InvalidAmount for an unknown asset, ValueError for an unknown kind.
    """
    account = find_account(code)
    if account is None:
        sql.run(
            "INSERT INTO payments_app_account (code, kind, asset, owner_id, agent_id, overdraft)"
            " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (code) DO NOTHING",
            [
                code,
                AccountKind(kind).value,
                asset_named(asset).code,
                owner_id,
                agent_id,
                overdraft,
            ],
        )
        account = find_account(code)
    if account is None:
        raise LookupError(f"The account {code} was not made.")
    return account


def find_account(code: str) -> AccountRef | None:
    """Return the account of a code, or None."""
    rows = sql.rows(
        "SELECT id, code, kind, asset FROM payments_app_account WHERE code = %s", [code]
    )
    if not rows:
        return None
    pk, name, kind, asset = rows[0]
    return AccountRef(id=pk, code=name, kind=kind, asset=asset)


def account_of_user(user_id: int, asset: str = DEFAULT_ASSET) -> AccountRef:
    """Return a person's account in an asset, created on first use."""
    return ensure_account(
        code=f"user:{user_id}:{asset}", kind=AccountKind.USER, asset=asset, owner_id=user_id
    )


def account_of_agent(agent_id: str, asset: str = DEFAULT_ASSET) -> AccountRef:
    """Return the account for an agent's earnings, created on first use."""
    return ensure_account(
        code=f"agent:{agent_id}:{asset}", kind=AccountKind.AGENT, asset=asset, agent_id=agent_id
    )


def external_account(provider: str, asset: str = DEFAULT_ASSET) -> AccountRef:
    """Return the mirror of an outside provider, whose negative balance is what it paid in."""
    return ensure_account(
        code=f"external:{provider}:{asset}",
        kind=AccountKind.EXTERNAL,
        asset=asset,
        overdraft=True,
    )


def suspense_account(asset: str = DEFAULT_ASSET) -> AccountRef:
    """Return the account on the other side of adjustments."""
    return ensure_account(
        code=f"suspense:{asset}", kind=AccountKind.SUSPENSE, asset=asset, overdraft=True
    )


def fee_prefix(asset: str) -> str:
    """Return the prefix of the codes of the fee account's shards."""
    return f"platform:fees:{asset}:"


def fee_code(key: str, asset: str) -> str:
    """Return the code of the shard that takes the fees of an operation."""
    return f"{fee_prefix(asset)}{zlib.crc32(key.encode()) % FEE_SHARDS:02d}"


def ensure_fee_account(code: str, asset: str) -> AccountRef:
    """Return a shard of the fee account, created on first use."""
    return ensure_account(code=code, kind=AccountKind.PLATFORM, asset=asset)


def lock_with_fees(
    ids: Collection[int], fees: Mapping[str, str]
) -> tuple[Mapping[int, balances.LockedAccount], Mapping[str, int]]:
    """Lock accounts and the fee shards given as code: asset; return those found, and ids by code.

    Missing shards are created.
    """
    accounts, by_code = balances.lock_existing(ids, fees)
    if missing := set(fees) - set(by_code):
        # Created once in the life of the ledger. Its id is the highest, so the order of locks
        # holds.
        for code in sorted(missing):
            ensure_fee_account(code, fees[code])
        accounts, by_code = balances.lock_existing(ids, fees)
    return accounts, by_code
