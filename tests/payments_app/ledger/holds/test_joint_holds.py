"""Several holds that act as one."""

from __future__ import annotations

import pytest

from payments_app import services
from payments_app.models import Hold, Transfer
from payments_app.money import AssetMismatch, Money
from payments_app.spending import authorizations
from tests.payments_app.funded_accounts import (
    authorize,
    available,
    capture_response,
    fees,
    funded_account,
    held,
    hold,
    to,
    usd,
    void_response,
)
from tests.payments_app.ledger.holds.hold_state import state

pytestmark = pytest.mark.django_db


def test_the_holds_of_a_response_give_the_oldest_first() -> None:
    payer, sponsor, agent = (
        funded_account("payer", "10"),
        funded_account("sponsor", "10"),
        funded_account("agent"),
    )
    first = hold(payer, "2", response_id="resp_1")
    second = hold(sponsor, "3", response_id="resp_1")

    done = capture_response(
        key="c",
        response_id="resp_1",
        amount=usd("4"),
        splits=[to(agent, "2.5"), fees("1.5")],
        release=True,
    )

    assert (done.captured, done.released) == (usd("4"), usd("1"))
    assert [Transfer.objects.get(pk=pk).amount for pk in done.transfer_ids] == [
        usd("2").amount,
        usd("2").amount,
    ]
    assert (available(payer), available(sponsor), available(agent)) == ("8", "8", "2.5")
    assert [state(first), state(second)] == ["settled", "settled"]
    with pytest.raises(services.HoldNotActive):
        void_response(key="v", response_id="resp_1")


def test_a_hold_that_is_extended_gives_as_one() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "2")
    more = authorizations.extend(limits_of=None, key="e", hold_id=hold_id, amount=usd("1"))
    again = authorizations.extend(limits_of=None, key="e", hold_id=hold_id, amount=usd("1"))

    done = services.capture(key="c", hold_id=hold_id, amount=usd("2.5"), splits=[to(agent, "2.5")])

    assert (again.hold_id, again.replayed) == (more.hold_id, True)
    assert done.left == usd("0.5")
    assert held(payer) == "0.5"
    assert services.void(key="v", hold_id=hold_id).released == usd("0.5")
    assert [state(hold_id), state(more.hold_id)] == ["settled", "settled"]
    with pytest.raises(services.HoldNotActive):
        authorizations.extend(limits_of=None, key="f", hold_id=hold_id, amount=usd("1"))
    with pytest.raises(services.UnknownHold):
        authorizations.extend(limits_of=None, key="g", hold_id="hold_missing", amount=usd("1"))


def test_an_extension_counts_where_its_hold_does() -> None:
    payer = funded_account("payer", "10")
    about = {"chat_id": "chat_1", "credential": "key:7", "asker_id": 7, "agent_id": "agent_1"}
    first = authorize(key="k", account_id=payer.id, amount=usd("2"), **about)

    more = authorizations.extend(limits_of=None, key="e", hold_id=first.hold_id, amount=usd("1"))

    assert Hold.objects.filter(pk=more.hold_id).values(*about).get() == about


def test_holds_of_two_assets_do_not_act_as_one() -> None:
    hold(funded_account("payer", "10"), "1", response_id="resp_1")
    coins = services.ensure_account(code="user:coins:USDC", kind="user", asset="USDC")
    five = Money(5, "USDC")
    services.top_up(key="t", account=coins.id, amount=five, provider="p", external_id="1")
    authorize(key="k", account_id=coins.id, amount=five, response_id="resp_1")

    with pytest.raises(AssetMismatch):
        void_response(key="v", response_id="resp_1")
