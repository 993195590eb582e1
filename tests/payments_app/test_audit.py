"""The audit and the freeze: what no constraint can see is found, and stops payouts."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.utils import timezone

from payments_app import selectors, services
from payments_app.models import Account, LedgerState
from tests.payments_app.purses import hold, purse, usd

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db


# --- Audit and freeze ---


@pytest.fixture
def unsound() -> services.AccountRef:
    """Return an account whose balance somebody changed by hand."""
    account = purse("payer", "5")
    Account.objects.filter(pk=account.id).update(posted=usd("6").amount)
    return account


def test_a_mismatch_is_found_and_freezes_payouts(
    unsound: services.AccountRef, caplog: pytest.LogCaptureFixture
) -> None:
    other = purse("other", "5")
    paid = services.transfer(
        key="t", debit=other.id, credit=unsound.id, amount=usd("1")
    ).transfer_id
    outside = services.find_account("external:test:USD")
    assert outside is not None

    with caplog.at_level(logging.ERROR):
        report = services.audit()

    assert {(one.check, one.subject) for one in report.mismatches} == {
        ("balances of an asset add up to zero", "USD"),
        ("posted is the sum of the entries", unsound.code),
    }
    assert {one.off_by for one in report.mismatches} == {usd("1").amount}
    assert "payouts are frozen" in caplog.text
    health = selectors.ledger_health()
    assert health.frozen_at is not None
    assert len(health.mismatches) == 2
    payouts: list[Callable[[], object]] = [
        lambda: services.refund(key="r", transfer_id=paid, by=None, reason="x"),
        lambda: services.adjust(key="a", account=other.id, amount=usd("1"), by=1, reason="x"),
        lambda: services.transfer(key="o", debit=other.id, credit=outside.id, amount=usd("1")),
    ]
    for payout in payouts:
        with pytest.raises(services.LedgerFrozen, match="add up"):
            payout()
    # People are not stopped in the middle of an answer, and money still comes in.
    services.void(key="v", hold_id=hold(other, "1"))
    services.top_up(key="u", account=other.id, amount=usd("1"), provider="test", external_id="more")


def test_only_an_operator_ends_the_freeze(unsound: services.AccountRef) -> None:
    services.audit()
    Account.objects.filter(pk=unsound.id).update(posted=usd("5").amount)

    assert services.audit().clean
    with pytest.raises(services.LedgerFrozen):
        services.adjust(key="a", account=unsound.id, amount=usd("1"), by=1, reason="x")
    assert services.unfreeze()
    assert not services.unfreeze()
    services.adjust(key="a", account=unsound.id, amount=usd("1"), by=1, reason="x")


def test_the_audit_is_due_once_a_minute() -> None:
    assert services.audit_if_due() is not None
    assert services.audit_if_due() is None
    LedgerState.objects.update(checked_at=timezone.now() - timedelta(seconds=61))

    services.sweep()

    health = selectors.ledger_health()
    assert health.checked_at is not None
    assert timezone.now() - health.checked_at < timedelta(seconds=30)


@pytest.mark.parametrize(
    ("check", "statement"),
    [
        (
            "held is what active holds have left",
            "UPDATE payments_app_account SET held = held + 1 WHERE code = 'user:one:USD'",
        ),
        (
            "a hold captured what its transfers say, and at most its amount",
            "UPDATE payments_app_hold SET captured = 1 WHERE state = 'active'",
        ),
        ("every key has an answer", "UPDATE payments_app_idempotency SET outcome = NULL"),
        (
            "a confirmed receipt was credited with its amount, once",
            "UPDATE payments_app_receipt SET amount = amount + 1",
        ),
    ],
)
def test_the_audit_finds_what_no_constraint_can(check: str, statement: str) -> None:
    hold(purse("one", "5"), "1")
    assert services.audit().clean

    with connection.cursor() as cursor:
        cursor.execute(statement)

    assert check in {one.check for one in services.audit().mismatches}
