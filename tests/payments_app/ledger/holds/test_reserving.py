"""Holds reserve money; a request that is repeated reserves it once."""

from __future__ import annotations

import pytest
from django.db import transaction

from payments_app import selectors, services
from payments_app.models import Idempotency
from payments_app.money import AssetMismatch, InvalidAmount, Money
from payments_app.services import Authorization, HoldOutcome
from tests.payments_app.funded_accounts import authorize, available, funded_account, held, hold, usd

pytestmark = pytest.mark.django_db


def test_a_hold_reserves_and_says_what_is_left() -> None:
    payer = funded_account("payer", "10")

    done = authorize(key="k", account_id=payer.id, amount=usd("4"), response_id="resp_1")

    assert (done.amount, done.available, done.replayed) == (usd("4"), usd("6"), False)
    assert (available(payer), held(payer)) == ("6", "4")
    assert [row.hold_id for row in selectors.holds_of_response("resp_1")] == [done.hold_id]


def test_more_than_is_available_is_refused_and_says_how_much_is() -> None:
    payer = funded_account("payer", "10")
    hold(payer, "4")

    with pytest.raises(services.InsufficientFunds, match="available: 6,") as refused:
        hold(payer, "6.000000001")

    assert refused.value.available == usd("6")
    assert held(payer) == "4"


def test_a_refused_key_may_be_tried_again() -> None:
    payer = funded_account("payer")
    with pytest.raises(services.InsufficientFunds):
        hold(payer, "1", key="k")
    services.top_up(
        key="t", account=payer.id, amount=usd("1"), provider="test", external_id="later"
    )

    hold(payer, "1", key="k")

    assert held(payer) == "1"


def test_the_same_key_gives_the_same_hold() -> None:
    payer = funded_account("payer", "10")
    first = authorize(key="k", account_id=payer.id, amount=usd("4"), expires_in=60)

    again = authorize(key="k", account_id=payer.id, amount=usd("4"), expires_in=50)

    assert again.replayed
    assert (again.hold_id, again.expires_at) == (first.hold_id, first.expires_at)
    assert held(payer) == "4"


def test_the_same_key_for_something_else_is_a_conflict() -> None:
    payer = funded_account("payer", "10")
    hold_id = hold(payer, "4", key="k")

    for other in (
        lambda: hold(payer, "5", key="k"),
        lambda: hold(payer, "4", key="k", response_id="resp_1"),
        lambda: services.void(key="k", hold_id=hold_id),
    ):
        with pytest.raises(services.IdempotencyConflict):
            other()

    assert held(payer) == "4"


def test_keys_of_two_scopes_are_two() -> None:
    payer = funded_account("payer", "10")

    for scope in ("user:1", "user:2"):
        authorize(key="k", scope=scope, account_id=payer.id, amount=usd("4"))

    assert held(payer) == "8"


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_has_a_length(key: str) -> None:
    with pytest.raises(ValueError, match="1 to 255"):
        authorize(key=key, account_id=funded_account("payer", "1").id, amount=usd("1"))


@pytest.mark.parametrize("amount", ["0", "-1"])
def test_a_hold_is_of_something(amount: str) -> None:
    with pytest.raises(InvalidAmount):
        hold(funded_account("payer", "1"), amount)


def test_a_hold_needs_an_account_of_its_asset_and_a_time() -> None:
    payer = funded_account("payer", "1")

    with pytest.raises(services.UnknownAccount):
        authorize(key="a", account_id=10**9, amount=usd("1"))
    with pytest.raises(AssetMismatch):
        authorize(key="b", account_id=payer.id, amount=Money(1, "USDC"))
    with pytest.raises(ValueError, match="must be positive"):
        authorize(key="c", account_id=payer.id, amount=usd("1"), expires_in=0)

    assert held(payer) == "0"


def test_a_refusal_leaves_the_callers_transaction_usable() -> None:
    payer = funded_account("payer", "1")
    with transaction.atomic():
        with pytest.raises(services.InsufficientFunds):
            hold(payer, "2")
        hold(payer, "1")

    assert held(payer) == "1"


def test_many_are_answered_place_by_place() -> None:
    rich, poor = funded_account("rich", "10"), funded_account("poor", "1")
    hold_id = hold(rich, "1", key="known")

    def ask(key: str, account_id: int, amount: str) -> Authorization:
        return Authorization(key=key, account_id=account_id, amount=usd(amount))

    answers = services.authorize_many(
        [
            ask("b", poor.id, "2"),
            ask("a", rich.id, "3"),
            ask("known", rich.id, "1"),
            ask("a", rich.id, "3"),
            ask("known", rich.id, "7"),
            ask("c", 10**9, "1"),
            ask("d", poor.id, "1"),
            ask("e", poor.id, "1"),
            ask("f", rich.id, "0"),
        ]
    )

    assert [type(answer).__name__ for answer in answers] == [
        "InsufficientFunds", "HoldOutcome", "HoldOutcome", "HoldOutcome", "IdempotencyConflict",
        "UnknownAccount", "HoldOutcome", "InsufficientFunds", "InvalidAmount",
    ]  # fmt: skip
    holds = [answer for answer in answers if isinstance(answer, HoldOutcome)]
    assert [outcome.replayed for outcome in holds] == [False, True, True, False]
    assert holds[0].hold_id == holds[2].hold_id
    assert holds[1].hold_id == hold_id
    assert (held(rich), held(poor)) == ("4", "1")
    assert not Idempotency.objects.filter(key__in=("b", "c", "e", "f")).exists()
