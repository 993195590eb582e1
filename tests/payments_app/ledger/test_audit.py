"""The audit and the freeze: what no constraint can see is found, and stops payouts."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.db.models import F
from django.utils import timezone

from payments_app import audit as audit_module
from payments_app import selectors, services
from payments_app.audit import audit_if_due, audit_recent
from payments_app.audit.sentences import Findings, read
from payments_app.audit.whole import checks
from payments_app.ledger.accounts import find_account
from payments_app.models import Account, Entry, LedgerState, VerifiedAccount
from tests.payments_app.funded_accounts import funded_account, hold, to, usd

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import DjangoDbBlocker

pytestmark = pytest.mark.django_db


# --- Audit and freeze ---


@pytest.fixture
def unsound() -> services.AccountRef:
    """Return an account whose balance was changed by hand."""
    account = funded_account("payer", "5")
    Account.objects.filter(pk=account.id).update(posted=usd("6").amount)
    return account


def test_a_mismatch_is_found_and_freezes_payouts(
    unsound: services.AccountRef, caplog: pytest.LogCaptureFixture
) -> None:
    other = funded_account("other", "5")
    paid = services.transfer(
        key="t", debit=other.id, credit=unsound.id, amount=usd("1")
    ).transfer_id
    outside = find_account("external:test:USD")
    assert outside is not None

    with caplog.at_level(logging.ERROR):
        report = services.audit()

    assert {(mismatch.check, mismatch.subject) for mismatch in report.mismatches} == {
        ("balances of an asset add up to zero", "USD"),
        ("posted is the sum of the entries", unsound.code),
    }
    assert {mismatch.off_by for mismatch in report.mismatches} == {usd("1").amount}
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
    assert audit_if_due() is not None
    assert audit_if_due() is None
    LedgerState.objects.update(checked_at=timezone.now() - timedelta(seconds=61))

    services.expire_and_audit()

    health = selectors.ledger_health()
    assert health.checked_at is not None
    assert timezone.now() - health.checked_at < timedelta(seconds=30)


TAMPERED: Final = {
    "balances of an asset add up to zero": (
        "UPDATE payments_app_account SET posted = posted + 1 WHERE code = 'user:one:USD'"
    ),
    "posted is the sum of the entries": (
        "UPDATE payments_app_entry SET account_id = (SELECT id FROM payments_app_account"
        " WHERE code = 'user:other:USD') WHERE transfer_id = (SELECT id FROM payments_app_transfer"
        " WHERE memo = 'test one') AND amount > 0"
    ),
    "held is what active holds have left": (
        "UPDATE payments_app_account SET held = held + 1 WHERE code = 'user:one:USD'"
    ),
    "the entries of a transfer add up to zero": (
        "UPDATE payments_app_entry SET amount = amount * 2 WHERE transfer_id ="
        " (SELECT id FROM payments_app_transfer WHERE kind = 'refund')"
    ),
    "a hold captured what its transfers say, and at most its amount": (
        "UPDATE payments_app_hold SET captured = captured - 1 WHERE state = 'settled'"
    ),
    "no transfer is refunded by more than it moved": (
        "UPDATE payments_app_transfer SET amount = 4000000000 WHERE kind = 'refund'"
    ),
    "every key has an answer": "UPDATE payments_app_idempotency SET outcome = NULL",
    "a confirmed receipt was credited with its amount, once": (
        "UPDATE payments_app_receipt SET amount = amount + 1"
    ),
}
MENDED: Final = (
    "UPDATE payments_app_entry SET amount = amount / 2 WHERE transfer_id ="
    " (SELECT id FROM payments_app_transfer WHERE kind = 'refund')"
)
BALANCES: Final = {
    "balances of an asset add up to zero",
    "held is what active holds have left",
}


def some_rows() -> services.AccountRef:
    """Return an account of whose money there is a row of each kind."""
    payer, agent = funded_account("one", "5"), funded_account("agent")
    funded_account("other", "5")
    hold(payer, "1")
    paid = services.capture(
        key="c", hold_id=hold(payer, "3"), amount=usd("3"), splits=[to(agent, "3")], release=True
    ).transfer_ids[0]
    services.refund(key="r", transfer_id=paid, by=None, reason="half", amount=usd("1"))
    return payer


def tamper(statement: str) -> None:
    """Run a statement that the ledger's triggers refuse from every database user."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # What was written before is checked now, as at its commit, and not again at the end.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(statement)
            cursor.execute("SET LOCAL session_replication_role = origin")
            return
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f"DROP TRIGGER {name}")
        cursor.execute(statement)
        for _, sql in triggers:
            cursor.execute(sql)


def failed_checks(report: services.AuditReport) -> set[str]:
    return {mismatch.check for mismatch in report.mismatches}


@pytest.mark.parametrize("audit", [services.audit, audit_recent])
@pytest.mark.parametrize("check", TAMPERED)
def test_both_audits_find_what_is_wrong_with_new_rows(
    check: str, audit: Callable[[], services.AuditReport]
) -> None:
    some_rows()

    tamper(TAMPERED[check])

    assert check in failed_checks(audit())


@pytest.mark.parametrize("check", TAMPERED)
def test_what_was_verified_is_found_by_the_whole_audit_and_balances_at_once(check: str) -> None:
    some_rows()
    assert audit_recent().clean
    assert audit_recent().clean
    LedgerState.objects.update(verified_key=1_000_000)

    tamper(TAMPERED[check])

    assert (check in failed_checks(audit_recent())) is (check in BALANCES)
    assert check in failed_checks(services.audit())


def test_every_check_is_made_by_both_audits() -> None:
    # No account is overdrawn even by hand: a constraint of both databases says so. Amounts out of
    # range are in test_range.
    others = {"no account is overdrawn", "every amount is within the range of the ledger"}
    assert {*TAMPERED, *others} == set(checks())


def test_the_next_audit_starts_where_a_clean_one_ended() -> None:
    payer = some_rows()
    assert audit_recent().clean
    point = VerifiedAccount.objects.get(pk=payer.id)
    assert point.posted == usd("3").amount
    assert point.entry_id == max(
        Entry.objects.filter(account=payer.id).values_list("pk", flat=True)
    )

    services.top_up(key="u", account=payer.id, amount=usd("1"), provider="test", external_id="u")

    assert audit_recent().clean
    assert VerifiedAccount.objects.get(pk=payer.id).posted == usd("4").amount


def test_a_mismatch_is_logged_again_until_it_is_mended() -> None:
    payer = some_rows()
    services.audit()
    before = list(VerifiedAccount.objects.order_by("pk").values())
    services.top_up(key="u", account=payer.id, amount=usd("1"), provider="test", external_id="u")
    tamper(TAMPERED["balances of an asset add up to zero"])

    assert not audit_recent().clean
    assert not audit_recent().clean
    assert list(VerifiedAccount.objects.order_by("pk").values()) == before
    Account.objects.filter(pk=payer.id).update(posted=F("posted") - 1)
    assert audit_recent().clean


def test_old_rows_are_read_when_the_whole_audit_is_due_and_stay_red_until_they_are_mended() -> None:
    some_rows()
    assert audit_if_due() is not None
    assert selectors.ledger_health().whole_at is not None
    tamper(TAMPERED["the entries of a transfer add up to zero"])

    def due(*, whole: bool) -> services.AuditReport | None:
        LedgerState.objects.update(checked_at=timezone.now() - timedelta(seconds=61))
        if whole:
            LedgerState.objects.update(whole_due_at=timezone.now() - timedelta(seconds=1))
        return audit_if_due()

    recent = due(whole=False)
    assert recent is not None
    assert recent.clean
    assert selectors.ledger_health().frozen_at is None
    assert due(whole=True) is not None
    assert selectors.ledger_health().frozen_at is not None
    assert (due(whole=False) or recent).clean
    assert len(selectors.ledger_health().mismatches) == 3

    tamper(MENDED)
    services.unfreeze()
    assert due(whole=False) is not None
    assert selectors.ledger_health().mismatches == []


def test_a_changed_verified_point_is_mended_by_the_whole_audit() -> None:
    payer = some_rows()
    services.audit()
    VerifiedAccount.objects.filter(pk=payer.id).update(posted=1, entry_id=1)

    assert not audit_recent().clean
    assert services.audit().clean
    assert audit_recent().clean


def test_the_whole_audit_is_made_on_command() -> None:
    some_rows()
    output = StringIO()
    call_command("audit_ledger", stdout=output)
    assert output.getvalue() == "The ledger adds up.\n"
    tamper(TAMPERED["held is what active holds have left"])

    with pytest.raises(CommandError, match="frozen"):
        call_command("audit_ledger", stdout=output)

    assert "held is what active holds have left: user:one:USD by 1\n" in output.getvalue()
    assert selectors.ledger_health().frozen_at is not None


@pytest.mark.django_db(transaction=True)
def test_no_writer_waits_for_an_audit(
    monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> None:
    payer = some_rows()
    has_written = threading.Event()

    def write() -> None:
        with django_db_blocker.unblock():
            hold(payer, "0.1")
            connections.close_all()
        has_written.set()

    def read_beside_a_writer(*args: Any) -> Findings:
        # SQLite's other connections find the database locked while a transaction is open.
        writer = threading.Thread(target=write)
        writer.start()
        writer.join(15)
        return read(*args)

    monkeypatch.setattr(audit_module, "read", read_beside_a_writer)
    for audit in (services.audit, audit_recent):
        has_written.clear()
        assert audit().clean
        assert has_written.is_set()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_what_is_committed_after_later_entries_is_verified_too(
    django_db_blocker: DjangoDbBlocker,
) -> None:
    slow, quick, agent = (
        funded_account("slow", "5"),
        funded_account("quick", "5"),
        funded_account("agent"),
    )
    has_paid, may_commit = threading.Event(), threading.Event()

    def pay_slowly() -> None:
        with django_db_blocker.unblock():
            with transaction.atomic():
                services.transfer(key="s", debit=slow.id, credit=agent.id, amount=usd("1"))
                has_paid.set()
                may_commit.wait(10)
            connections.close_all()

    payer = threading.Thread(target=pay_slowly)
    payer.start()
    has_paid.wait(10)
    services.transfer(key="q", debit=quick.id, credit=funded_account("other").id, amount=usd("1"))
    assert audit_recent().clean
    may_commit.set()
    payer.join(10)

    assert audit_recent().clean
    points = dict(VerifiedAccount.objects.values_list("account__code", "entry_id"))
    assert points["user:slow:USD"] < points["user:quick:USD"]
    tamper("UPDATE payments_app_account SET posted = posted + 1 WHERE code = 'user:slow:USD'")
    assert "posted is the sum of the entries" in failed_checks(audit_recent())
