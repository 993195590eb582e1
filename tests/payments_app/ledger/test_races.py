"""Operations at the same time: nothing is spent or ended twice, no operation waits in a circle."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import connection

from payments_app import selectors, services
from payments_app.ledger import expiry, sql
from payments_app.money import Money
from tests.payments_app.funded_accounts import (
    available,
    fees,
    funded_account,
    held,
    hold,
    new_key,
    to,
    usd,
)
from tests.payments_app.ledger.concurrency import kinds, together

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES, DEBITS, UNITS = 8, 60, 100


def test_eight_processes_take_no_more_than_there_is() -> None:
    payer, shop = funded_account("payer"), funded_account("shop")
    services.top_up(
        key="t", account=payer.id, amount=Money(UNITS), provider="test", external_id="t"
    )
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.faults.ledger_settings",
        "LEDGER_DATABASE": str(connection.settings_dict["NAME"]),
        "DATA_DIR": str(settings.DATA_DIR),
        "DATABASE_URL": os.environ.get("TEST_DATABASE_URL", ""),
    }
    arguments = [str(number) for number in (payer.id, shop.id, DEBITS, PROCESSES)]
    process = subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-m", "tests.faults.ledger_debits", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        timeout=100,
        check=True,
    )
    done = [int(number) for number in process.stdout.split()]

    assert len(done) == PROCESSES
    assert sum(done) == UNITS
    assert selectors.balance(shop.id).posted == Money(UNITS)
    assert available(payer) == "0"
    assert services.audit().clean


@pytest.mark.postgres
def test_two_sends_on_a_balance_for_one() -> None:
    for number in range(10):
        payer = funded_account(f"payer{number}", "1")

        outcomes = together(*[lambda payer=payer: hold(payer, "1")] * 2)

        assert kinds(outcomes) == ["InsufficientFunds", "str"]
        assert held(payer) == "1"


@pytest.mark.postgres
def test_a_double_click_is_one_hold() -> None:
    payer = funded_account("payer", "10")
    for number in range(10):
        outcomes = together(*[lambda number=number: hold(payer, "1", key=f"k{number}")] * 3)

        assert len(set(outcomes)) == 1
    assert held(payer) == "10"


@pytest.mark.postgres
def test_a_settle_and_the_expiry_end_a_hold_once() -> None:
    payer, agent = funded_account("payer", "100"), funded_account("agent")
    captured = 0
    for number in range(30):
        hold_id = hold(payer, "1")
        sql.run("UPDATE payments_app_hold SET expires_at = created_at WHERE id = %s", [hold_id])

        def settle(number: int = number, hold_id: str = hold_id) -> services.CaptureOutcome:
            return services.capture(
                key=f"c{number}",
                hold_id=hold_id,
                amount=usd("0.5"),
                splits=[to(agent, "0.5")],
                release=True,
            )

        settled, swept = together(settle, expiry.expire_holds)

        captured += isinstance(settled, services.CaptureOutcome)
        assert isinstance(settled, services.CaptureOutcome) is (swept == 0)
    assert held(payer) == "0"
    assert usd(available(agent)) == usd("0.5") * captured
    assert services.audit().clean


@pytest.mark.postgres
def test_two_settles_take_no_more_than_is_held() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "3")

    outcomes = together(
        *(
            lambda: services.capture(
                key=new_key(), hold_id=hold_id, amount=usd("1"), splits=[to(agent, "1")]
            )
            for _ in range(6)
        )
    )

    assert kinds(outcomes) == ["CaptureOutcome"] * 3 + ["OverCapture"] * 3
    assert available(agent) == "3"


@pytest.mark.postgres
def test_a_payment_that_is_reported_twice_at_once_is_credited_once() -> None:
    account = funded_account("payer")
    for number in range(5):
        outcomes = together(
            *(
                lambda number=number: services.top_up(
                    key=new_key(),
                    account=account.id,
                    amount=usd("1"),
                    provider="stripe",
                    external_id=f"pi_{number}",
                )
                for _ in range(4)
            )
        )

        assert sorted(outcome.replayed for outcome in outcomes) == [False, True, True, True]
    assert available(account) == "5"


@pytest.mark.postgres
def test_refunds_at_once_never_exceed_what_was_paid() -> None:
    payer, agent = funded_account("payer", "3"), funded_account("agent")
    paid = services.capture(
        key="c", hold_id=hold(payer, "3"), amount=usd("3"), splits=[to(agent, "2"), fees("1")]
    ).transfer_ids[0]

    outcomes = together(
        *(
            lambda: services.refund(
                key=new_key(), transfer_id=paid, amount=usd("1"), by=None, reason="race"
            )
            for _ in range(5)
        )
    )

    assert kinds(outcomes) == ["NotRefundable"] * 2 + ["TransferOutcome"] * 3
    assert available(payer) == "3"


@pytest.mark.postgres
def test_crossing_transfers_wait_for_each_other_in_one_order() -> None:
    accounts = [funded_account(f"person{number}", "100") for number in range(3)]

    def mover(step: int) -> Callable[[], None]:
        def move() -> None:
            for number in range(40):
                services.transfer(
                    key=new_key(),
                    debit=accounts[number % 3].id,
                    credit=accounts[(number + step) % 3].id,
                    amount=Money(1),
                )

        return move

    assert together(*(mover(1 + number % 2) for number in range(6))) == [None] * 6
    assert services.audit().clean


@pytest.mark.postgres
def test_lists_of_holds_wait_for_each_other_in_one_order() -> None:
    accounts = [funded_account(f"person{number}", "100") for number in range(4)]

    def lister(step: int) -> Callable[[], list[Any]]:
        def many() -> list[Any]:
            authorizations = [
                services.Authorization(
                    key=f"{index}:{account.id}", account_id=account.id, amount=Money(1)
                )
                for index in range(20)
                for account in accounts
            ]
            return services.authorize_many(authorizations[::step])

        return many

    upwards, downwards = together(lister(1), lister(-1))

    assert {answer.hold_id for answer in upwards} == {answer.hold_id for answer in downwards}
    assert sorted({upwards[0].replayed, downwards[0].replayed}) == [False, True]
    assert selectors.balance(accounts[0].id).held == Money(20)
