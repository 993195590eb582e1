"""No sum leaves the range of the ledger's integers, and a damaged row is named by the audit."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING, Final

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from payments_app import audit as audit_module
from payments_app import selectors, services
from payments_app.admin.ledger import amount_of
from payments_app.audit import audit_recent
from payments_app.ledger.accounts import external_account
from payments_app.ledger.expiry import expire_holds
from payments_app.models import Account, Entry, Hold, Transfer
from payments_app.money import Money
from payments_app.reporting import totals
from tests.payments_app.funded_accounts import funded_account, hold, usd
from tests.payments_app.ledger.test_audit import failed_checks, tamper

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db

LARGEST: Final = "999999999.999999999"
IN_RANGE: Final = "every amount is within the range of the ledger"
SUM_OF_ENTRIES: Final = "posted is the sum of the entries"
BOTH: Final = pytest.mark.parametrize("audit", [services.audit, audit_recent])


def balance(account: services.AccountRef) -> int:
    return Account.objects.get(pk=account.id).posted


# --- Refused ---


def test_a_balance_that_would_leave_the_range_is_refused() -> None:
    account, other = funded_account("one", LARGEST), funded_account("other")
    mirror = external_account("test")

    with pytest.raises(services.BalanceOutOfRange, match="18 digits"):
        services.top_up(
            key="t", account=other.id, amount=usd("0.000000001"), provider="test", external_id="t"
        )
    services.top_up(key="u", account=other.id, amount=usd("1"), provider="test2", external_id="u")
    with pytest.raises(services.BalanceOutOfRange):
        services.transfer(key="v", debit=other.id, credit=account.id, amount=usd("1"))

    assert (balance(mirror), balance(account)) == (-usd(LARGEST).amount, usd(LARGEST).amount)
    assert balance(other) == usd("1").amount
    assert Transfer.objects.count() == 2
    assert services.audit().clean


@pytest.mark.parametrize("column", ["posted", "held"])
@pytest.mark.parametrize("value", [10**18, 9 * 10**18])
def test_the_database_refuses_a_balance_out_of_range(column: str, value: int) -> None:
    mirror = external_account("test")

    with pytest.raises(IntegrityError, match="18 digits"), transaction.atomic():
        Account.objects.filter(pk=mirror.id).update(**{column: value})
    with pytest.raises(IntegrityError, match="18 digits"), transaction.atomic():
        Account.objects.create(
            code="new", kind="external", asset="USD", overdraft=True, **{column: value}
        )

    row = Account.objects.get(pk=mirror.id)
    assert (row.posted, row.held) == (0, 0)
    assert not Account.objects.filter(code="new").exists()


def test_a_damaged_account_does_not_keep_the_holds_of_others() -> None:
    payer, other = funded_account("payer", "2"), funded_account("other", "2")
    hold(payer, "1")
    hold(other, "1")
    Hold.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    tamper(
        "UPDATE payments_app_account SET posted = 2000000000000000000 WHERE code = 'user:payer:USD'"
    )

    assert expire_holds() == 2

    assert set(Account.objects.values_list("held", flat=True)) == {0}


# --- Found ---


@BOTH
def test_a_balance_that_overflowed_is_named(audit: Callable[[], services.AuditReport]) -> None:
    funded_account("payer", "5")
    # What SQLite makes of a sum beyond 64 bits; PostgreSQL has no such value, but others too large.
    value = -1.2e19 if connection.vendor == "sqlite" else -(9 * 10**18)
    tamper(f"UPDATE payments_app_account SET posted = {value} WHERE code = 'external:test:USD'")  # noqa: S608 a constant

    report = audit()

    mismatches = {(mismatch.check, mismatch.subject) for mismatch in report.mismatches}
    assert {(IN_RANGE, "external:test:USD"), (SUM_OF_ENTRIES, "external:test:USD")} <= mismatches
    assert selectors.ledger_health().frozen_at is not None
    row = Account.objects.get(code="external:test:USD")
    assert amount_of(row.posted, row.asset) == f"{row.posted} (not an amount)", "in the admin"


@BOTH
def test_entries_whose_sum_overflows_are_named(audit: Callable[[], services.AuditReport]) -> None:
    accounts = [funded_account(f"payer{number}", "5") for number in range(3)]
    tamper("UPDATE payments_app_entry SET amount = amount * 1800000000")

    report = audit()

    assert failed_checks(report) >= {IN_RANGE, SUM_OF_ENTRIES}
    entries = set(Entry.objects.values_list("pk", flat=True))
    subjects = {mismatch.subject for mismatch in report.mismatches}
    assert {f"entry {pk}" for pk in entries} <= subjects
    assert {account.code for account in accounts} <= subjects


@BOTH
def test_what_an_overflow_left_behind_is_named(audit: Callable[[], services.AuditReport]) -> None:
    # Twelve budgets in one mirror, and back: each amount is valid, and the sum on the way is not.
    for number in range(12):
        funded_account(f"owner{number}", "5")
    tamper("UPDATE payments_app_entry SET amount = amount / 5 * 999999999")
    tamper("UPDATE payments_app_account SET posted = posted / 5 * 999999999 WHERE kind = 'user'")

    report = audit()

    assert {
        (SUM_OF_ENTRIES, "external:test:USD", 12 * usd("999999999").amount - 12 * usd("5").amount),
        ("balances of an asset add up to zero", "USD", 12 * usd("999999994").amount),
    } <= {(mismatch.check, mismatch.subject, mismatch.off_by) for mismatch in report.mismatches}


def test_balances_of_many_accounts_add_up_in_any_order() -> None:
    for number in range(12):
        account = services.ensure_account(code=f"user:{number}:USD", kind="user")
        services.top_up(
            key=f"k{number}",
            account=account.id,
            amount=usd("999999999"),
            provider=f"test{number}",
            external_id="x",
        )

    assert services.audit().clean
    assert audit_recent().clean
    overview = totals.overview()
    largest = Money.parse(LARGEST)
    assert {total.posted for total in overview.totals} == {largest, -largest}


# --- An audit that fails ---


@pytest.mark.parametrize(
    ("audit", "statement"),
    [
        (services.audit, "SELECT * FROM no_such_table"),
        (audit_recent, "SELECT * FROM no_such_table WHERE id > %s"),
    ],
)
def test_an_audit_that_fails_freezes_payouts(
    audit: Callable[[], services.AuditReport], statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = funded_account("payer", "5")
    for name in ("whole_statement", "recent_statement"):
        monkeypatch.setattr(audit_module, name, lambda: statement)

    report = audit()

    assert failed_checks(report) == {"the audit runs to its end"}
    assert "no_such_table" in report.mismatches[0].subject
    health = selectors.ledger_health()
    assert (health.frozen_at is not None, len(health.mismatches)) == (True, 1)
    with pytest.raises(services.LedgerFrozen, match="the audit runs to its end"):
        services.adjust(key="a", account=account.id, amount=usd("1"), by=1, reason="x")

    monkeypatch.undo()
    assert services.audit().clean
    assert audit_recent().clean
    assert selectors.ledger_health().mismatches == []


def test_the_command_says_that_an_audit_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    output = StringIO()
    monkeypatch.setattr(audit_module, "whole_statement", lambda: "SELECT * FROM no_such_table")

    with pytest.raises(CommandError, match="frozen"):
        call_command("audit_ledger", stdout=output)

    assert output.getvalue().startswith("the audit runs to its end: ")
