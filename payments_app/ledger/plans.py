"""Plan the writes of a capture before anything is written.

Captures never exceed a hold, and it ends once: settled, released or expired. Nothing here queries
the database: holds and accounts do not change while they are locked.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from payments_app.ledger.accounts import fee_code
from payments_app.ledger.entries import NewTransfer, check
from payments_app.ledger.outcomes import (
    About,
    CaptureOutcome,
    HoldNotActive,
    OverCapture,
    SameAccount,
    Split,
    SplitMismatch,
    UnknownAccount,
    UnknownHold,
)
from payments_app.money import AssetMismatch, InvalidAmount, Money

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from payments_app.ledger.balances import LockedAccount

_NOTHING: Final = About()


@dataclass(frozen=True, slots=True)
class LockedHold:
    """The state of a hold while we hold its lock."""

    id: str
    account_id: int
    amount: int
    captured: int
    state: str
    purpose: str
    response_id: str
    extends_id: str | None
    agent_id: str

    @property
    def uncaptured(self) -> int:
        """The amount not captured yet."""
        return self.amount - self.captured


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One capture of `capture_many`: of a hold, or of all holds of a response.

    Without an amount nothing is captured; with `release` the rest is released; see capture. The
    first transfer gets `transfer_id` if its caller needs to know it in advance.
    """

    key: str
    hold_id: str = ""
    response_id: str = ""
    amount: Money | None = None
    splits: Sequence[Split] = ()
    kind: str = "charge"
    release: bool = False
    scope: str = ""
    transfer_id: str = ""
    about: About = _NOTHING

    @property
    def group(self) -> tuple[str, str]:
        """The source of the capture, as used in the fingerprint of its key."""
        return ("hold", self.hold_id) if self.hold_id else ("response", self.response_id)


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes of a capture: transfers, new (captured, state) of holds, account movements."""

    transfers: Sequence[NewTransfer]
    holds: Mapping[str, tuple[int, str]]
    legs: Mapping[int, tuple[int, int]]
    payer_id: int
    outcome: CaptureOutcome


def planned(
    capture: Capture,
    group: Sequence[LockedHold],
    accounts: Mapping[int, LockedAccount],
    by_code: Mapping[str, int],
) -> Plan:
    """Check and plan a capture of locked holds; raises what capture raises."""
    holds = _active(capture, group)
    if capture.amount is not None:
        _judge(capture.amount, capture.splits, release=capture.release)
    for split in capture.splits:
        if split.account_id is not None and split.account_id not in accounts:
            raise UnknownAccount(f"There is no account {split.account_id}.")
    asset = _one_asset(holds, accounts)
    amount = capture.amount if capture.amount is not None else Money(0, asset)
    uncaptured = sum(hold.uncaptured for hold in holds)
    if amount.asset != asset:
        raise AssetMismatch(f"The hold is in {asset}, the amount in {amount.asset}.")
    if amount.amount > uncaptured:
        raise OverCapture(Money(uncaptured, asset))
    gets = _merged(capture.splits, by_code.get(fee_code(capture.key, asset), 0))
    transfers = _transfers(holds, gets, capture.kind, asset, capture.about)
    if transfers and capture.transfer_id:
        transfers[0] = replace(transfers[0], id=capture.transfer_id)
    for transfer in transfers:
        check(transfer, accounts)
    ends, legs = _ends(holds, transfers, release=capture.release)
    after = 0 if capture.release else uncaptured - amount.amount
    outcome = CaptureOutcome(
        transfer_ids=(),
        captured=amount,
        released=Money(uncaptured - amount.amount - after, asset),
        left=Money(after, asset),
        available=Money(0, asset),
    )
    return Plan(transfers, ends, legs, holds[-1].account_id, outcome)


def _active(capture: Capture, group: Sequence[LockedHold]) -> list[LockedHold]:
    """Return the holds that can still be captured."""
    active = [hold for hold in group if hold.state == "active"]
    if not group:
        raise UnknownHold(f"There is no hold of {capture.group[1]!r}.")
    if not active:
        raise HoldNotActive(group[0].state)
    return active


def _one_asset(holds: Sequence[LockedHold], accounts: Mapping[int, LockedAccount]) -> str:
    """Return the asset of holds that act as one; raise AssetMismatch if they have several."""
    assets = {accounts[hold.account_id].asset for hold in holds}
    if len(assets) > 1:
        raise AssetMismatch(f"The holds are in {' and '.join(sorted(assets))}.")
    return assets.pop()


def _judge(amount: Money, splits: Sequence[Split], *, release: bool) -> None:
    """Refuse a zero amount that ends nothing, and splits that do not add up."""
    if amount.amount < 0 or (amount.amount == 0 and not release):
        raise InvalidAmount("The amount must be positive.")
    total = Money(0, amount.asset)
    for split in splits:
        if split.amount.amount <= 0:
            raise SplitMismatch("The amount of a split must be positive.")
        total += split.amount
    if total != amount:
        raise SplitMismatch(f"The splits are {total}, the amount is {amount}.")


def _merged(splits: Sequence[Split], fee_id: int) -> list[tuple[int, int]]:
    """Return (account, amount), each account once."""
    gets: dict[int, int] = defaultdict(int)
    for split in splits:
        gets[fee_id if split.account_id is None else split.account_id] += split.amount.amount
    return list(gets.items())


def _transfers(
    holds: Sequence[LockedHold],
    gets: list[tuple[int, int]],
    kind: str,
    asset: str,
    about: About,
) -> list[NewTransfer]:
    """Take from the holds in order until each payee has their amount."""
    payers = {hold.account_id for hold in holds}
    if any(account_id in payers for account_id, _ in gets):
        raise SameAccount("A payer cannot receive a share of the payment.")
    waiting = gets[::-1]
    transfers = []
    for hold in holds:
        room = hold.uncaptured
        entries: dict[int, int] = {}
        while waiting and room:
            account_id, amount = waiting.pop()
            part = min(amount, room)
            entries[account_id] = part
            room -= part
            if amount > part:
                waiting.append((account_id, amount - part))
        if entries:
            entries[hold.account_id] = room - hold.uncaptured
            transfers.append(
                NewTransfer(
                    kind=kind,
                    asset=asset,
                    entries=entries,
                    hold_id=hold.id,
                    about=_about(about, hold),
                )
            )
    return transfers


def _about(about: About, hold: LockedHold) -> About:
    return About(
        memo=about.memo or hold.purpose,
        response_id=about.response_id or hold.response_id,
        chat_id=about.chat_id,
        agent_id=about.agent_id or hold.agent_id,
        protocol=about.protocol,
        by=about.by,
    )


def _ends(
    holds: Sequence[LockedHold], transfers: Sequence[NewTransfer], *, release: bool
) -> tuple[dict[str, tuple[int, str]], dict[int, tuple[int, int]]]:
    """Return the new (captured, state) of holds, and account movements as (posted, held)."""
    legs: dict[int, tuple[int, int]] = {}
    amounts: dict[str, int] = {}
    for transfer in transfers:
        for account_id, amount in transfer.entries.items():
            posted, held = legs.get(account_id, (0, 0))
            legs[account_id] = (posted + amount, held)
            if amount < 0:
                amounts[str(transfer.hold_id)] = -amount
    ends = {}
    for hold in holds:
        part = amounts.get(hold.id, 0)
        if not part and not release:
            continue
        posted, held = legs.get(hold.account_id, (0, 0))
        legs[hold.account_id] = (posted, held - (hold.uncaptured if release else part))
        captured = hold.captured + part
        # A fully captured hold stays active: only a capture that releases ends it.
        state = ("settled" if captured else "released") if release else "active"
        ends[hold.id] = (captured, state)
    return ends, legs
