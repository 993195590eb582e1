"""Adjustments without a second operator are limited in sum, not only one by one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from payments_app import adjustments, services
from payments_app.ledger import transfers
from payments_app.models import AdjustmentRequest, Transfer
from tests import factories
from tests.payments_app.funded_accounts import new_key, usd
from tests.threads import thread_pool

if TYPE_CHECKING:
    from payments_app.adjustments import Adjusted

pytestmark = pytest.mark.django_db


def account() -> int:
    """Return the account of a new person."""
    return services.account_of_user(factories.user(new_key()).pk).id


def adjust(by: int, amount: str, *, to: int | None = None, key: str = "") -> Adjusted:
    """Adjust a balance as an operator does in the admin."""
    return adjustments.adjust(
        key=key or new_key(),
        account=to or account(),
        amount=usd(amount),
        by=by,
        reason="goodwill",
        scope="admin",
    )


@pytest.mark.parametrize(
    "amounts",
    [
        ["100", "0.01"],
        ["60", "60"],
        # Credits and debits do not cancel each other out.
        ["60", "-60"],
        ["30", "30", "30", "30"],
    ],
)
def test_small_adjustments_that_add_up_wait_for_a_second_operator(amounts: list[str]) -> None:
    operator = factories.superuser().pk
    person = account()
    adjust(factories.user("other").pk, "100", to=person)

    done = [adjust(operator, amount) for amount in amounts[:-1]]
    last = adjust(operator, amounts[-1])

    assert all(outcome.transfer for outcome in done)
    assert last.transfer is None
    assert last.request is not None
    assert Transfer.objects.filter(kind="adjust", by=operator).count() == len(done)


def test_the_sum_is_that_of_the_last_24_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = factories.superuser().pk
    adjust(operator, "100")
    assert adjustments.needs_second(usd("1"), operator)

    monkeypatch.setattr(transfers, "ALONE_PERIOD", timedelta(0))

    assert not adjustments.needs_second(usd("100"), operator)
    assert adjust(operator, "100").transfer


def test_what_two_operators_decided_does_not_count() -> None:
    asking, deciding = factories.superuser().pk, factories.user("deciding").pk
    row = adjust(asking, "500").request
    assert row is not None
    adjustments.approve(row.pk, by=deciding, reason="agreed")

    assert adjust(asking, "100").transfer
    assert adjust(deciding, "100").transfer


def test_a_form_sent_again_gets_its_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, person = factories.superuser().pk, account()
    done = adjust(operator, "100", to=person, key="a")
    waiting = adjust(operator, "100", to=person, key="b")
    monkeypatch.setattr(transfers, "ALONE_PERIOD", timedelta(0))

    again = [adjust(operator, "100", to=person, key=key) for key in ("a", "b")]

    assert done.transfer
    assert again[0].transfer
    assert again[0].transfer.transfer_id == done.transfer.transfer_id
    assert again[1].request == waiting.request
    assert [outcome.replayed for outcome in again] == [True, True]


@pytest.mark.django_db(transaction=True)
def test_adjustments_at_once_add_up() -> None:
    operator = factories.superuser().pk
    accounts = [account() for _ in range(6)]

    def adjust_on_a_thread(to: int) -> None:
        try:
            adjust(operator, "40", to=to)
        finally:
            connection.close()

    with thread_pool(6) as pool:
        list(pool.map(adjust_on_a_thread, accounts))

    assert Transfer.objects.filter(kind="adjust", by=operator).count() == 2
    assert AdjustmentRequest.objects.filter(asked_by_id=operator).count() == 4
