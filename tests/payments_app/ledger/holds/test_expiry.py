"""Holds are released, and expire."""

from __future__ import annotations

import time

import pytest

from payments_app import services
from payments_app.ledger import expiry
from payments_app.models import Entry, Hold
from tests.payments_app.funded_accounts import (
    authorize,
    available,
    fees,
    funded_account,
    held,
    hold,
    new_key,
    to,
    usd,
)
from tests.payments_app.ledger.holds.hold_state import state

pytestmark = pytest.mark.django_db


def test_what_is_voided_goes_back_once() -> None:
    payer = funded_account("payer", "10")
    hold_id = hold(payer, "4")

    assert services.void(key="v", hold_id=hold_id).released == usd("4")
    assert services.void(key="v", hold_id=hold_id).replayed
    with pytest.raises(services.HoldNotActive):
        services.void(key="w", hold_id=hold_id)

    assert (available(payer), state(hold_id)) == ("10", "released")


def test_a_void_after_a_capture_gives_back_the_rest() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = hold(payer, "4")
    services.capture(key="c", hold_id=hold_id, amount=usd("3"), splits=[to(agent, "3")])

    assert services.void(key="v", hold_id=hold_id).released == usd("1")

    assert (available(payer), state(hold_id)) == ("7", "settled")


def brief(payer: services.AccountRef, amount: str) -> str:
    """Return a hold whose time is over."""
    hold_id = authorize(
        key=new_key(), account_id=payer.id, amount=usd(amount), expires_in=0.001
    ).hold_id
    time.sleep(0.003)
    return hold_id


def test_holds_past_their_time_expire_and_no_others() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    lasting = hold(payer, "1")
    untouched, part, whole = brief(payer, "1"), brief(payer, "2"), brief(payer, "3")
    services.capture(key="p", hold_id=part, amount=usd("0.5"), splits=[to(agent, "0.5")])
    services.capture(key="w", hold_id=whole, amount=usd("3"), splits=[to(agent, "3")])

    assert expiry.expire_holds() == 3
    assert expiry.expire_holds() == 0

    assert [state(hold_id) for hold_id in (lasting, untouched, part, whole)] == [
        "active", "expired", "expired", "settled",
    ]  # fmt: skip
    assert (available(payer), held(payer)) == ("5.5", "1")


def test_a_renewed_hold_does_not_expire() -> None:
    payer = funded_account("payer", "10")
    held_for = {
        name: authorize(
            key=name, account_id=payer.id, amount=usd("1"), response_id=name, expires_in=seconds
        ).hold_id
        for name, seconds in {"runs": 0.001, "left": 0.001, "long": 1000, "free": 1000}.items()
    }
    services.void(key="v", hold_id=held_for["free"])
    time.sleep(0.003)

    assert services.renew(["runs", "long", "free"], seconds=600) == 1
    assert services.renew(["runs", "long", "free"], seconds=600) == 0
    assert services.renew([], seconds=600) == 0
    assert expiry.expire_holds() == 1

    states = {name: state(hold_id) for name, hold_id in held_for.items()}
    assert states == {"runs": "active", "left": "expired", "long": "active", "free": "released"}


def test_expiry_takes_a_batch_at_a_time() -> None:
    payer = funded_account("payer", "10")
    for _ in range(3):
        brief(payer, "1")

    assert [expiry.expire_holds(2), expiry.expire_holds(2)] == [2, 1]


def test_what_is_over_but_not_swept_is_still_captured() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    hold_id = brief(payer, "1")

    services.capture(
        key="c", hold_id=hold_id, amount=usd("1"), splits=[to(agent, "1")], release=True
    )

    assert expiry.expire_holds() == 0
    assert available(agent) == "1"


def test_an_expired_hold_gives_nothing() -> None:
    hold_id = brief(funded_account("payer", "10"), "1")
    expiry.expire_holds()

    with pytest.raises(services.HoldNotActive) as refused:
        services.capture(key="c", hold_id=hold_id, amount=usd("1"), splits=[fees("1")])

    assert refused.value.state == "expired"
    assert Entry.objects.filter(transfer__hold=hold_id).count() == 0
    assert Hold.objects.get(pk=hold_id).captured == 0
