"""The refund of a whole answer."""

from __future__ import annotations

from typing import Any

import pytest

from payments_app import services
from payments_app.models import Transfer
from tests.payments_app.funded_accounts import available, fees, funded_account, hold, to, usd

pytestmark = pytest.mark.django_db


def test_an_answer_with_two_charges_is_refunded_whole_and_once() -> None:
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    charges = [
        services.capture(
            key=f"c{number}",
            hold_id=hold(payer, "2", key=f"h{number}", response_id="resp_1"),
            amount=usd("2"),
            splits=[to(agent, "1.5"), fees("0.5")],
        ).transfer_ids[0]
        for number in range(2)
    ]
    # One charge and a part of the other were refunded before.
    services.refund(key="all", transfer_id=charges[0], by=None, reason="r")
    services.refund(key="part", transfer_id=charges[1], amount=usd("0.5"), by=None, reason="r")
    arguments: dict[str, Any] = {
        "key": "k",
        "response_id": "resp_1",
        "by": None,
        "reason": "it was wrong",
    }
    done = services.refund_answer(**arguments)
    assert [refund.amount for refund in done] == [usd("1.5")]
    assert usd(available(payer.id)) == usd("10")
    assert usd(available(agent.id)) == usd("0")
    again = services.refund_answer(**arguments)
    assert all(refund.replayed for refund in again)
    with pytest.raises(services.NotRefundable):
        services.refund_answer(**{**arguments, "key": "other"})
    assert Transfer.objects.filter(kind="refund").count() == 3
    assert not services.audit().mismatches


def test_all_charges_are_refunded_or_none() -> None:
    payer, agent, other = (
        funded_account("payer", "10"),
        funded_account("agent"),
        funded_account("o"),
    )
    for number, payee in enumerate((agent, other)):
        services.capture(
            key=f"c{number}",
            hold_id=hold(payer, "2", key=f"h{number}", response_id="resp_1"),
            amount=usd("2"),
            splits=[to(payee, "2")],
        )
    services.transfer(key="spent", debit=other.id, credit=payer.id, amount=usd("2"))
    with pytest.raises(services.InsufficientFunds):
        services.refund_answer(key="k", response_id="resp_1", by=None, reason="r")
    assert usd(available(agent.id)) == usd("2")
    assert not Transfer.objects.filter(kind="refund").exists()


def test_an_answer_that_was_free_has_no_refund() -> None:
    with pytest.raises(services.UnknownTransfer):
        services.refund_answer(key="k", response_id="", by=None, reason="r")
