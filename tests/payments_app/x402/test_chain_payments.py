"""Payments on a chain, signed by the official client of x402."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.urls import reverse
from eth_account import Account
from x402.http.utils import decode_payment_response_header
from x402.mechanisms.evm.exact.v1.client import ExactEvmSchemeV1
from x402.schemas.v1 import PaymentRequirementsV1

from payments_app import services
from payments_app import x402 as ours
from payments_app.models import PaymentToken, Receipt
from payments_app.tokens import lookup as token_lookup
from payments_app.x402 import PaymentNotTaken
from tests import factories
from tests.payments_app.funded_accounts import usd
from tests.payments_app.tokens.issued_tokens import issue, rich
from tests.payments_app.x402.payment_headers import (
    PAY_TO,
    PRICE,
    accepted_payment,
    altered,
    charge,
    demand,
    encoded,
    refusal,
    signed,
)

if TYPE_CHECKING:
    from tests.payments_app.x402.facilitator import Facilitator

pytestmark = pytest.mark.django_db


def test_a_payment_on_a_chain_is_credited_into_a_token_of_its_own(chain: Facilitator) -> None:
    signer = Account.create()
    done = accepted_payment(signed(demand(), signer))
    assert (done.scheme, done.payer) == ("exact", signer.address)
    assert str(done.available) == PRICE
    token = token_lookup.by_id(done.token_id, agent="echo")
    assert (token.account_id, token.owner_id) == (done.account_id, None)
    with pytest.raises(token_lookup.TokenRefused):
        token_lookup.by_id(done.token_id, agent="other")
    assert chain.received[PAY_TO] == 10_000
    receipt = Receipt.objects.get(provider="x402")
    assert (receipt.state, receipt.amount) == ("confirmed", usd(PRICE).amount)
    answer = decode_payment_response_header(done.response_headers["PAYMENT-RESPONSE"])
    assert (answer.success, answer.payer) == (True, signer.address)
    assert answer.transaction in chain.settled.values()
    assert services.audit().clean


def test_what_an_answer_leaves_over_is_spent_with_the_secret_of_the_first_answer(
    chain: Facilitator,
) -> None:
    headers = signed(demand())
    done = accepted_payment(headers)
    answer = decode_payment_response_header(done.response_headers["PAYMENT-RESPONSE"])
    assert answer.extra is not None
    secret = answer.extra["token"]
    charge(done.account_id, "0.004")
    assert str(accepted_payment({"X-PAYMENT": secret}, "0.006").available) == "0.006"
    again = refusal(headers)
    assert again.code == "payment_used"
    assert "used" in str(again)


@pytest.mark.parametrize("way", ["person", "secret"])
def test_the_same_payment_again_is_its_senders_alone_and_moves_nothing(
    chain: Facilitator, way: str
) -> None:
    headers = signed(demand())
    user_id = 7 if way == "person" else None
    first = ours.accept(headers, demand(), user_id=user_id)
    assert first is not None
    for other in (None, 8):
        with pytest.raises(PaymentNotTaken) as caught:
            ours.accept(headers, demand(), user_id=other)
        assert caught.value.code == "payment_used"
    assert refusal({**headers, "X-Payment-Token": "ptok_missing"}).code == "payment_used"
    secret_header = {"X-Payment-Token": first.secret} if way == "secret" else {}
    second = ours.accept({**headers, **secret_header}, demand(), user_id=user_id)
    assert second is not None
    assert (first.token_id, str(second.available)) == (second.token_id, PRICE)
    assert chain.asked["settle"] == 1
    answer = decode_payment_response_header(second.response_headers["PAYMENT-RESPONSE"])
    assert answer.transaction in chain.settled.values()
    assert answer.extra == {"token": first.secret}


def test_a_payment_that_a_person_sent_is_not_another_ones_before_it_is_credited(
    chain: Facilitator,
) -> None:
    headers = signed(demand())
    chain.mode = "500 after settling"
    with pytest.raises(PaymentNotTaken, match="Send the same payment again"):
        ours.accept(headers, demand(), user_id=7)
    chain.mode = "ok"
    assert refusal(headers).code == "payment_used"
    assert Receipt.objects.get().state == "submitted"
    done = ours.accept(headers, demand(), user_id=7)
    assert done is not None
    assert str(done.available) == PRICE


@pytest.mark.sampled(3)
@pytest.mark.parametrize("credited", [False, True], ids=["submitted", "credited"])
@pytest.mark.parametrize("thief", ["another address", "a person", "another form", "a token"])
def test_a_visitors_payment_is_not_another_ones_before_it_was_taken(
    chain: Facilitator, thief: str, *, credited: bool
) -> None:
    """The money moved and the answer was lost: the chain shows the payment to every reader."""
    headers = signed(demand())
    chain.mode = "500 after settling"
    with pytest.raises(PaymentNotTaken, match="Send the same payment again"):
        ours.accept(headers, demand(), visitor="192.0.2.1")
    if credited:
        client = Client()
        client.force_login(factories.superuser())
        page = reverse("admin:payments_app_receipt_operate", args=[Receipt.objects.get().pk])
        assert client.post(page, {"key": "k", "reason": "seen on the chain"}).status_code == 302
    chain.mode = "ok"
    other_headers, sender = dict(headers), {"visitor": "192.0.2.1"}
    match thief:
        case "another address":
            sender["visitor"] = "192.0.2.2"
        case "a token":
            other_headers["X-Payment-Token"], sender["visitor"] = issue(rich()).token, "192.0.2.2"
        case "another form":
            document = json.loads(base64.b64decode(headers["PAYMENT-SIGNATURE"]))
            document["resource"]["description"] = "Another answer"
            other_headers = {"PAYMENT-SIGNATURE": encoded(document)}
    with pytest.raises(PaymentNotTaken) as caught:
        ours.accept(other_headers, demand(), user_id=7 if thief == "a person" else None, **sender)
    assert caught.value.code == "payment_used"
    done = ours.accept(headers, demand(), visitor="192.0.2.1")
    assert done is not None
    assert str(done.available) == PRICE
    assert services.audit().clean


def test_a_known_authorization_with_another_signature_is_refused(chain: Facilitator) -> None:
    headers = signed(demand())
    accepted_payment(headers)
    document = json.loads(base64.b64decode(headers["PAYMENT-SIGNATURE"]))
    document["payload"]["signature"] = "0x" + "00" * 65
    assert refusal({"PAYMENT-SIGNATURE": encoded(document)}).code == "token_invalid"


def test_a_forged_payment_leaves_no_row(chain: Facilitator) -> None:
    forged = altered(signed(demand()), **{"from": Account.create().address})
    assert "invalid_signature" in str(refusal(forged))
    assert Receipt.objects.count() == PaymentToken.objects.count() == 0
    assert chain.asked["settle"] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"from": "0x12"},
        {"nonce": "0x12"},
        {"value": "1e9"},
        {"value": "-1"},
        {"value": "٣٠٠٠٠"},
        {"value": "9" * 30},
        {"value": "9" * 18},
        {"value": "0"},
    ],
    ids=str,
)
def test_an_authorization_that_is_not_whole_is_refused_before_the_facilitator_is_asked(
    chain: Facilitator, change: dict[str, str]
) -> None:
    assert refusal(altered(signed(demand()), **change)).code == "token_invalid"
    assert not chain.asked


def test_an_unused_payment_is_still_for_one_agent(chain: Facilitator) -> None:
    headers = signed(demand())
    secret_header = {"X-Payment-Token": accepted_payment(headers).secret}
    assert refusal({**headers, **secret_header}, demand(agent="other")).code == "token_invalid"


def test_a_payment_that_is_known_with_another_amount_is_refused(chain: Facilitator) -> None:
    headers = signed(demand())
    chain.mode = "500 after settling"
    refusal(headers)
    Receipt.objects.update(amount=usd("0.02").amount)
    chain.mode = "ok"
    assert refusal(headers).code == "token_invalid"
    assert Receipt.objects.get().state == "submitted"


def test_less_than_is_demanded_is_refused_and_more_is_credited_whole(chain: Facilitator) -> None:
    error = refusal(signed(demand("0.009")), demand())
    assert error.code == "insufficient_balance"
    assert not chain.asked
    assert str(accepted_payment(signed(demand("0.02"))).available) == "0.02"


@pytest.mark.parametrize(
    "accepted",
    [{"pay_to": "0x" + "cd" * 20}, {"network": "eip155:84532"}, {"asset": "0x" + "12" * 20}],
    ids=str,
)
def test_what_the_client_says_it_accepted_does_not_count(
    chain: Facilitator, accepted: dict[str, Any]
) -> None:
    headers = signed(demand())
    document = json.loads(base64.b64decode(headers["PAYMENT-SIGNATURE"]))
    alias = {"pay_to": "payTo"}
    document["accepted"].update({alias.get(k, k): v for k, v in accepted.items()})
    assert refusal({"PAYMENT-SIGNATURE": encoded(document)}).code == "payment_failed"
    assert not chain.asked


def test_money_that_would_go_to_another_account_is_refused(chain: Facilitator) -> None:
    elsewhere = altered(signed(demand()), to="0x" + "cd" * 20)
    assert "recipient" in str(refusal(elsewhere))


@pytest.mark.parametrize("document", [{}, {"permit2Authorization": {}}], ids=str)
def test_other_ways_on_a_chain_are_refused(chain: Facilitator, document: dict[str, Any]) -> None:
    value = encoded({"x402Version": 1, "scheme": "exact", "network": "base", "payload": document})
    assert refusal({"X-PAYMENT": value}).code == "payment_failed"


def v1_header(network: str = "base") -> dict[str, str]:
    """Return the header of a client of version 1."""
    requirements = PaymentRequirementsV1(
        scheme="exact",
        network=network,
        max_amount_required="10000",
        resource="http://localhost/uamp",
        pay_to=PAY_TO,
        max_timeout_seconds=60,
        asset="0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        extra={"name": "USD Coin", "version": "2"},
    )
    payload = ExactEvmSchemeV1(Account.create()).create_payment_payload(requirements)
    document = {"x402Version": 1, "scheme": "exact", "network": network, "payload": payload}
    return {"X-PAYMENT": encoded(document)}


def test_a_payment_of_version_1_is_taken(chain: Facilitator) -> None:
    assert str(accepted_payment(v1_header()).available) == PRICE
    assert chain.received[PAY_TO] == 10_000


def test_a_payment_of_version_1_on_another_network_is_refused(chain: Facilitator) -> None:
    assert refusal(v1_header("base-sepolia")).code == "payment_failed"
    assert not chain.asked
