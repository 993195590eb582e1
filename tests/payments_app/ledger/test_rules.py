"""Writes that the database refuses from every user, on SQLite and PostgreSQL alike."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import IntegrityError, connection, transaction

from payments_app import services
from payments_app.models import Account, Entry, Hold, Idempotency, LedgerState, Receipt, Transfer
from tests import factories
from tests.databases import empty_database
from tests.payments_app.funded_accounts import (
    available,
    fees,
    funded_account,
    hold,
    new_key,
    to,
    usd,
)

pytestmark = pytest.mark.django_db(transaction=True)


def execute(*statements: str) -> None:
    """Run statements in one transaction, as an operator with a database shell would."""
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def paid() -> Transfer:
    """Return the transfer of a charge that was split, and leave an active hold beside it."""
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    done = services.capture(
        key="charge",
        hold_id=hold(payer, "4"),
        amount=usd("3"),
        splits=[to(agent, "2.5"), fees("0.5")],
        release=True,
    )
    hold(payer, "1")
    return Transfer.objects.get(pk=done.transfer_ids[0])


REFUSED = (
    "UPDATE payments_app_transfer SET memo = 'other'",
    "UPDATE payments_app_transfer SET amount = amount + 1",
    "DELETE FROM payments_app_transfer",
    "UPDATE payments_app_entry SET amount = amount + 1",
    "UPDATE payments_app_entry SET account_id = account_id",
    "DELETE FROM payments_app_entry",
    "DELETE FROM payments_app_hold",
    "UPDATE payments_app_hold SET state = 'active' WHERE state = 'settled'",
    "UPDATE payments_app_hold SET captured = 0 WHERE state = 'settled'",
    "UPDATE payments_app_hold SET expires_at = created_at WHERE state = 'settled'",
    "UPDATE payments_app_hold SET amount = amount + 1 WHERE state = 'active'",
    "UPDATE payments_app_hold SET response_id = 'resp_x' WHERE state = 'active'",
    "UPDATE payments_app_hold SET captured = -1 WHERE state = 'active'",
    "UPDATE payments_app_hold SET captured = amount + 1 WHERE state = 'active'",
    "UPDATE payments_app_account SET held = -1",
    "UPDATE payments_app_account SET held = posted + 1 WHERE NOT overdraft",
    "UPDATE payments_app_account SET posted = -1 WHERE NOT overdraft",
    "DELETE FROM payments_app_account",
)


def test_what_was_written_stays(paid: Transfer) -> None:
    for statement in REFUSED:
        with pytest.raises(IntegrityError):
            execute(statement)

    assert services.audit().clean
    assert Transfer.objects.get(pk=paid.pk).memo == ""


def entry(transfer_id: str, account: services.AccountRef, amount: int) -> str:
    return (
        "INSERT INTO payments_app_entry (transfer_id, account_id, amount)"  # noqa: S608 of the test
        f" VALUES ('{transfer_id}', {account.id}, {amount})"
    )


def row(transfer_id: str, amount: int, asset: str = "USD") -> str:
    return (
        "INSERT INTO payments_app_transfer (id, kind, asset, amount, memo, response_id, chat_id,"  # noqa: S608 of the test
        f" agent_id, protocol) VALUES ('{transfer_id}', 'x', '{asset}', {amount}, '', '', '', '',"
        " '')"
    )


def test_entries_that_add_up_to_zero_are_taken() -> None:
    one, two = funded_account("one", "1"), funded_account("two")

    execute(entry("tr_1", one, -5), entry("tr_1", two, 5), row("tr_1", 5))

    assert Entry.objects.filter(transfer_id="tr_1").count() == 2


@pytest.mark.parametrize(
    ("amounts", "amount", "asset"),
    [
        ((-5, 6), 6, "USD"),
        ((5, 6), 11, "USD"),
        ((-5, 5), 4, "USD"),
        ((-5, 5), 5, "USDC"),
        ((), 5, "USD"),
    ],
)
def test_entries_that_do_not_add_up_are_refused(
    amounts: tuple[int, ...], amount: int, asset: str
) -> None:
    accounts = [funded_account("one", "1"), funded_account("two")]
    entries = [entry("tr_1", a, value) for a, value in zip(accounts, amounts, strict=False)]

    with pytest.raises(IntegrityError):
        execute(*entries, row("tr_1", amount, asset))

    assert not Transfer.objects.filter(pk="tr_1").exists()


def test_an_entry_without_a_transfer_is_refused() -> None:
    account = funded_account("one", "1")

    with pytest.raises(IntegrityError):
        execute(entry("tr_1", account, 5))


def test_a_transfer_gets_no_more_entries(paid: Transfer) -> None:
    with pytest.raises(IntegrityError):
        execute(entry(paid.pk, funded_account("late"), 5))


@pytest.mark.parametrize("amount", [0, -1])
def test_a_transfer_is_of_something(amount: int) -> None:
    one, two = funded_account("one", "1"), funded_account("two")

    with pytest.raises(IntegrityError):
        execute(entry("tr_1", one, -amount), entry("tr_1", two, amount), row("tr_1", amount))


def test_a_row_is_not_replaced(paid: Transfer) -> None:
    other = row(paid.pk, 1)
    if connection.vendor == "sqlite":
        other = other.replace("INSERT", "INSERT OR REPLACE")
    else:
        other += " ON CONFLICT (id) DO UPDATE SET amount = excluded.amount"

    with pytest.raises(IntegrityError):
        execute(other)


@pytest.mark.postgres
def test_tables_are_not_emptied(paid: Transfer) -> None:
    for table in ("transfer", "entry", "hold"):
        with pytest.raises(IntegrityError):
            execute(f"TRUNCATE payments_app_{table} CASCADE")

    assert Transfer.objects.filter(pk=paid.pk).exists()


def test_the_rules_are_there_after_the_tests_emptied_the_tables(paid: Transfer) -> None:
    empty_database()
    funded_account("payer", "10")

    with pytest.raises(IntegrityError):
        execute("DELETE FROM payments_app_entry")
    assert not Transfer.objects.filter(pk=paid.pk).exists()
    if connection.vendor == "postgresql":
        with pytest.raises(IntegrityError):
            execute("TRUNCATE payments_app_entry")


def test_the_tables_cannot_be_emptied_without_the_help_of_the_tests(paid: Transfer) -> None:
    with pytest.raises(CommandError):
        call_command("flush", interactive=False, verbosity=0)

    assert Transfer.objects.filter(pk=paid.pk).exists()


def test_a_person_who_is_deleted_leaves_the_ledger_as_it_was() -> None:
    person = factories.user()
    account = services.account_of_user(person.pk)
    services.top_up(key="t", account=account.id, amount=usd("2"), provider="p", external_id="1")
    shop = funded_account("shop")
    services.transfer(key="u", debit=account.id, credit=shop.id, amount=usd("1"), by=person.pk)

    User.objects.get(pk=person.pk).delete()

    assert Account.objects.get(pk=account.id).owner_id is None
    assert Transfer.objects.get(kind="transfer").by_id == person.pk
    assert available(account) == "1"
    assert services.audit().clean


def test_keys_receipts_and_the_state_are_there_once() -> None:
    account = funded_account("one", "1")
    for make in (
        lambda: Idempotency.objects.create(scope="", key="fund:one", sha256=""),
        lambda: Receipt.objects.create(
            provider="test", external_id="one", account_id=account.id, amount=1, asset="USD"
        ),
        lambda: Receipt.objects.create(
            provider="test",
            external_id="two",
            account_id=account.id,
            amount=1,
            asset="USD",
            state="confirmed",
        ),
        lambda: LedgerState.objects.create(pk=2),
        lambda: Account.objects.create(code=account.code, kind="user", asset="USD"),
        lambda: Hold.objects.create(
            pk=new_key(), account_id=account.id, amount=0, expires_at="2030-01-01T00:00:00Z"
        ),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            make()
