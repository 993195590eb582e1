"""Payments that are refused or repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from payments_app.models import Transfer
from sessions_app.models import PaymentRequest
from tests.sessions_app.billing.paid_agents import earned, pay, priced, rich, wallet

if TYPE_CHECKING:
    from tests.live_server import Dial, Person


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("payment", "message", "balance"),
    [
        (
            {"scheme": "balance", "amount": "0.5"},
            "You offered 0.5 USD; 1 USD is due. Submit at least that.",
            ("1", "10"),
        ),
        (
            {"scheme": "balance", "network": "evil"},
            "Pay on the network uamp, not 'evil'.",
            (None, None),
        ),
        ({"scheme": "balance", "network": ""}, "Pay on the network uamp, not ''.", (None, None)),
        ({"scheme": "balance", "currency": "JPY"}, "Pay in USD, not 'JPY'.", (None, None)),
        ({"scheme": "token"}, "Send the payment token in `token`.", (None, None)),
        ({"scheme": "crypto"}, "Pay with the scheme token or balance, not 'crypto'.", (None, None)),
    ],
)
def test_a_bad_payment_says_what_to_do_and_what_is_there(
    dial: Dial,
    alice: Person,
    payment: dict[str, str],
    message: str,
    balance: tuple[str | None, ...],
) -> None:
    priced("paid", per_answer="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1], **payment)
    refused = client.until("payment.error")[-1]
    assert refused["message"] == message
    assert (refused.get("balance_required"), refused.get("balance_current")) == balance
    assert refused["can_retry"] is True


def test_a_repeated_payment_is_taken_once(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    demand = client.until("payment.required")[-1]
    pay(client, demand)
    pay(client, demand)
    frames = client.until("payment.balance")
    late = [f for f in [*frames, *client.settle()] if f["type"] == "session.error"]
    assert [error["error"]["code"] for error in late] == ["payment_not_due"]
    assert [f["type"] for f in frames].count("payment.accepted") == 1
    assert (str(wallet(alice).available), earned(agent)) == ("9", "1")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("payment", "code"),
    [
        ({"scheme": "token", "token": "ptok_missing"}, "token_invalid"),
        ({"scheme": "token"}, "payment_failed"),
        ({"scheme": "crypto", "network": "base"}, "payment_failed"),
        ({"scheme": "balance", "amount": "0.5"}, "payment_failed"),
        ({"scheme": "balance", "amount": "1e3"}, "payment_failed"),
        ({"scheme": "balance", "amount": "-1"}, "payment_failed"),
        ({"scheme": "balance", "amount": "\uff11"}, "payment_failed"),
        ({"scheme": "balance", "amount": "1.0000000001"}, "payment_failed"),
    ],
)
def test_a_bad_payment_is_named_and_moves_nothing(
    dial: Dial, alice: Person, payment: dict[str, str], code: str
) -> None:
    priced("paid", per_answer="1")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    demand = client.until("payment.required")[-1]
    pay(client, demand, **payment)
    assert client.until("payment.error", "session.error")[-1]["code"] == code
    assert str(wallet(alice).available) == "10"
    assert not Transfer.objects.exclude(kind__contains="top").exists()
    assert PaymentRequest.objects.get().status == "waiting"
