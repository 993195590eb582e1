"""A state machine that compares the ledger with a model in plain numbers.

Every operation is done in the ledger and in the model; after each, balances and what is held are
the same in both, the books balance, and a key that is used again changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from payments_app import selectors
from payments_app.audit import audit
from payments_app.ledger import captures, expiry, holds, plans, sql, transfers
from payments_app.ledger.outcomes import (
    Authorization,
    CaptureOutcome,
    HoldNotActive,
    HoldOutcome,
    InsufficientFunds,
    LedgerError,
    NotRefundable,
    OverCapture,
    Split,
    SplitMismatch,
)
from payments_app.money import Money
from payments_app.spending import authorizations
from tests.payments_app.funded_accounts import fees_balance, funded_account
from tests.payments_app.ledger.ledger_model import Model, ModelHold

if TYPE_CHECKING:
    from collections.abc import Callable

AMOUNT = st.integers(min_value=1, max_value=60)
WHO = st.integers(min_value=0, max_value=2)
KIND = st.sampled_from(("a part", "another part", "any amount", "wrong splits"))
ANY = st.integers(min_value=0, max_value=10**6)
OUTSIDE, FEES = "outside", "fees"


class Conservation(RuleBasedStateMachine):
    """Random operations on three accounts; see the module."""

    @initialize()
    def open_the_books(self) -> None:
        """Begin with three accounts of which one has something; all of it is thrown away."""
        self.model = Model()
        self.number = 0
        self.done: list[tuple[Callable[[], Any], Any]] = []
        self.accounts = [funded_account(f"person{number}").id for number in range(3)]
        self.top_up(payment=0)

    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()

    def teardown(self) -> None:
        """Throw everything away."""
        transaction.set_rollback(True)
        self.atomic.__exit__(None, None, None)

    def key(self) -> str:
        """Return the next key."""
        self.number += 1
        return f"key{self.number}"

    def do(self, operation: Callable[[], Any], *refusals: type[LedgerError]) -> Any:
        """Do an operation; return its outcome, or None when it was refused as expected."""
        try:
            outcome = operation()
        except refusals:
            return None
        assert not refusals, f"expected a refusal: {refusals}"
        self.done.append((operation, outcome))
        return outcome

    def available(self, who: int) -> int:
        """Return the available balance by the model."""
        return self.model.posted[who] - self.model.held[who]

    @rule(payment=st.integers(min_value=0, max_value=5))
    def top_up(self, payment: int) -> None:
        """Credit a payment; one that is reported again under another key changes nothing."""
        who, amount = payment % 3, payment * 7 + 40
        key = self.key()
        outcome = self.do(
            lambda: transfers.top_up(
                key=key,
                account=self.accounts[who],
                amount=Money(amount),
                provider="test",
                external_id=str(payment),
            )
        )
        assert outcome.replayed is (payment in self.model.reported)
        if not outcome.replayed:
            self.model.reported.add(payment)
            self.model.move(outcome.transfer_id, OUTSIDE, {who: amount})

    @rule(who=WHO, amount=AMOUNT)
    def authorize(self, who: int, amount: int) -> None:
        """Reserve, or be refused when there is too little."""
        key = self.key()
        if amount % 4 and self.available(who) > 0:
            amount = 1 + amount % self.available(who)
        refusals = (InsufficientFunds,) if amount > self.available(who) else ()
        outcome = self.do(
            lambda: authorizations.authorize(
                Authorization(key=key, account_id=self.accounts[who], amount=Money(amount))
            ),
            *refusals,
        )
        if outcome:
            self.model.held[who] += amount
            self.model.holds.append(ModelHold(outcome.hold_id, who, amount))

    @rule(pairs=st.lists(st.tuples(WHO, AMOUNT), min_size=1, max_size=5))
    def authorize_many(self, pairs: list[tuple[int, int]]) -> None:
        """Reserve for several at once: each as if alone, in their order."""
        keys = [self.key() for _ in pairs]

        def operation() -> Any:
            return holds.authorize_many(
                [
                    Authorization(key=key, account_id=self.accounts[who], amount=Money(amount))
                    for key, (who, amount) in zip(keys, pairs, strict=True)
                ]
            )

        outcomes = operation()
        for (who, amount), outcome in zip(pairs, outcomes, strict=True):
            if amount > self.available(who):
                assert isinstance(outcome, InsufficientFunds)
                assert outcome.available.amount == self.available(who)
                continue
            self.model.held[who] += amount
            self.model.holds.append(ModelHold(outcome.hold_id, who, amount))
            assert outcome.available.amount == self.available(who)
        if all(isinstance(outcome, HoldOutcome) for outcome in outcomes):
            self.done.append((operation, outcomes))

    def some_hold(self, pick: int) -> ModelHold:
        """Return one of the holds, mostly one that gave a part."""
        active = [hold for hold in self.model.holds if hold.active]
        part_captured = [hold for hold in active if 0 < hold.captured < hold.amount]
        choice = self.model.holds if pick % 5 == 0 else part_captured or active or self.model.holds
        return choice[pick // 5 % len(choice)]

    @precondition(lambda self: self.model.holds)
    @rule(pick=ANY, amount=AMOUNT, fee=st.integers(0, 5), release=st.booleans(), kind=KIND)
    def capture(self, *, pick: int, amount: int, fee: int, release: bool, kind: str) -> None:
        """Capture with a split for another account and for the platform."""
        hold = self.some_hold(pick)
        left = hold.amount - hold.captured
        if kind != "any amount" and left:
            amount = 1 + amount % (1 + left // 2)
        other = (hold.payer + 1) % 3
        fee = min(fee, amount - 1)
        gets: dict[int | str, int] = {other: amount - fee, **({FEES: fee} if fee else {})}
        splits = [
            Split(self.accounts[name] if isinstance(name, int) else None, Money(part))
            for name, part in gets.items()
        ]
        refusals: list[type[LedgerError]] = []
        if kind == "wrong splits":
            splits = [*splits, Split(self.accounts[other], Money(1))]
            refusals = [SplitMismatch, HoldNotActive] if not hold.active else [SplitMismatch]
        elif not hold.active:
            refusals = [HoldNotActive]
        elif amount > left:
            refusals = [OverCapture]
        key = self.key()
        outcome = self.do(
            lambda: captures.capture(
                key=key, hold_id=hold.id, amount=Money(amount), splits=splits, release=release
            ),
            *refusals,
        )
        if outcome:
            self.model.move(outcome.transfer_ids[0], hold.payer, gets)
            hold.captured += amount
            self.model.held[hold.payer] -= left if release else amount
            hold.active = not release
            assert outcome.released.amount == (left - amount if release else 0)

    @precondition(lambda self: self.model.holds)
    @rule(picks=st.lists(ANY, min_size=1, max_size=4), amount=AMOUNT, release=st.booleans())
    def capture_many(self, picks: list[int], amount: int, *, release: bool) -> None:
        """Capture several holds at once, each as if alone."""
        chosen = list({hold.id: hold for hold in map(self.some_hold, picks)}.values())
        # Mostly so little that every one of them can give it.
        amount = amount if amount > 50 else 1 + amount % 3
        requests = [
            plans.Capture(
                key=self.key(),
                hold_id=hold.id,
                amount=Money(amount),
                splits=[Split(self.accounts[(hold.payer + 1) % 3], Money(amount))],
                release=release,
            )
            for hold in chosen
        ]

        def operation() -> Any:
            return captures.capture_many(requests)

        outcomes = operation()
        for hold, outcome in zip(chosen, outcomes, strict=True):
            left = hold.amount - hold.captured
            if not hold.active:
                assert isinstance(outcome, HoldNotActive)
            elif amount > left:
                assert isinstance(outcome, OverCapture)
            else:
                self.model.move(outcome.transfer_ids[0], hold.payer, {(hold.payer + 1) % 3: amount})
                hold.captured += amount
                self.model.held[hold.payer] -= left if release else amount
                hold.active = not release
        for hold, outcome in zip(chosen, outcomes, strict=True):
            if isinstance(outcome, CaptureOutcome):
                assert outcome.available.amount == self.available(hold.payer)
        if all(isinstance(outcome, CaptureOutcome) for outcome in outcomes):
            self.done.append((operation, outcomes))

    @precondition(lambda self: self.available(0) > 3 or self.available(1) > 3)
    @rule(pick=ANY, amount=AMOUNT)
    def begin_work(self, pick: int, amount: int) -> None:
        """Reserve some and capture a part of it: most things happen to such holds."""
        who = 0 if self.available(0) > self.available(1) else 1
        # A multiple of 4 is taken as it is.
        self.authorize(who=who, amount=4 * (1 + amount % (self.available(who) // 4)))
        self.capture(pick=1, amount=amount, fee=pick % 3, release=False, kind="a part")

    @precondition(lambda self: self.model.holds)
    @rule(pick=ANY)
    def void(self, pick: int) -> None:
        """Give back the rest of a hold."""
        hold = self.some_hold(pick)
        key = self.key()
        refusals = () if hold.active else (HoldNotActive,)
        if self.do(lambda: captures.void(key=key, hold_id=hold.id), *refusals):
            self.model.held[hold.payer] -= hold.amount - hold.captured
            hold.active = False

    @precondition(lambda self: any(hold.active for hold in self.model.holds))
    @rule(pick=ANY)
    def expire(self, pick: int) -> None:
        """Let the time of a hold be over, and sweep."""
        hold = self.some_hold(pick)
        if not hold.active:
            return
        sql.run("UPDATE payments_app_hold SET expires_at = created_at WHERE id = %s", [hold.id])
        assert expiry.expire_holds() == 1
        self.model.held[hold.payer] -= hold.amount - hold.captured
        hold.active = False

    @rule(who=WHO, step=st.integers(1, 2), amount=AMOUNT)
    def transfer(self, who: int, step: int, amount: int) -> None:
        """Move money between two accounts."""
        other = (who + step) % 3
        key = self.key()
        refusals = (InsufficientFunds,) if amount > self.available(who) else ()
        outcome = self.do(
            lambda: transfers.transfer(
                key=key,
                debit=self.accounts[who],
                credit=self.accounts[other],
                amount=Money(amount),
            ),
            *refusals,
        )
        if outcome:
            self.model.move(outcome.transfer_id, who, {other: amount})

    @precondition(lambda self: self.model.transfers)
    @rule(pick=ANY, part=st.one_of(st.none(), AMOUNT))
    def refund(self, pick: int, part: int | None) -> None:
        """Return a part of a transfer, or all that is left of it."""
        transfer = self.model.transfers[pick % len(self.model.transfers)]
        left = sum(transfer.gets.values()) - transfer.returned
        amount = left if part is None else part
        key = self.key()

        def operation() -> Any:
            return transfers.refund(
                key=key,
                transfer_id=transfer.id,
                amount=None if part is None else Money(part),
                by=None,
                reason="model",
            )

        if left == 0 or amount > left:
            assert self.do(operation, NotRefundable) is None
            return
        before = {name: self.posted(name) for name in transfer.gets}
        try:
            outcome = self.do(operation)
        except InsufficientFunds:
            # A payee has spent their part of it.
            assert any(
                isinstance(name, int) and self.available(name) < share
                for name, share in transfer.gets.items()
            )
            return
        assert outcome.amount.amount == amount
        # How it is spread is tested by examples; here, that the parts are possible and add up.
        parts = {name: before[name] - self.posted(name) for name in transfer.gets}
        assert sum(parts.values()) == amount
        for name, share in parts.items():
            assert 0 <= share <= transfer.gets[name]
            self.model.posted[name] -= share
        self.model.posted[transfer.payer] += amount
        transfer.returned += amount

    @precondition(lambda self: self.done)
    @rule(pick=ANY)
    def say_it_again(self, pick: int) -> None:
        """Repeat an operation with its key: the same answer, and nothing happens."""
        operation, outcome = self.done[pick % len(self.done)]
        if isinstance(outcome, list):
            assert operation() == [replace(result, replayed=True) for result in outcome]
        else:
            assert operation() == replace(outcome, replayed=True)

    def posted(self, name: int | str) -> int:
        """Return the posted balance by the ledger."""
        if isinstance(name, int):
            return selectors.balance(self.accounts[name]).posted.amount
        if name == FEES:
            return fees_balance().amount
        return sum(
            row[0]
            for row in sql.rows(
                "SELECT posted FROM payments_app_account WHERE code = 'external:test:USD'"
            )
        )

    @invariant()
    def ledger_and_model_agree(self) -> None:
        """Compare all balances."""
        for name in (0, 1, 2, FEES, OUTSIDE):
            assert self.posted(name) == self.model.posted[name]
        for who in range(3):
            assert selectors.balance(self.accounts[who]).held.amount == self.model.held[who]

    @invariant()
    def books_balance(self) -> None:
        """Audit, and let the deferred rules speak."""
        assert audit().mismatches == []
        if connection.vendor == "postgresql":
            connection.check_constraints()
