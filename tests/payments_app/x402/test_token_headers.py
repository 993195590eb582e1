"""Payment tokens in the headers of a request."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from x402.http.utils import decode_payment_response_header

from payments_app import x402 as ours
from payments_app.money import Money
from tests.payments_app.funded_accounts import usd
from tests.payments_app.tokens.issued_tokens import issue, rich
from tests.payments_app.x402.payment_headers import (
    PRICE,
    accepted_payment,
    demand,
    encoded,
    refusal,
)

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("form", ["opaque", "jwt"])
@pytest.mark.parametrize(
    "way",
    ["PAYMENT-SIGNATURE", "x-payment v1", "x-payment v1 without version", "bare", "base64",
     "X-Payment-Token"],
)  # fmt: skip
def test_a_token_is_taken_from_every_header(way: str, form: str) -> None:
    token = issue(rich(), form=form, audience=["echo"])
    body = demand()
    v1 = {"scheme": "token", "network": "uamp", "payload": {"token": token.token, "amount": PRICE}}
    headers = {
        "PAYMENT-SIGNATURE": {
            "PAYMENT-SIGNATURE": encoded(
                {
                    "x402Version": 2,
                    "payload": {"token": token.token},
                    "accepted": body["accepts"][0],
                }
            )
        },
        "x-payment v1": {"X-PAYMENT": encoded({"x402Version": 1, **v1})},
        "x-payment v1 without version": {"x-payment": encoded(v1)},
        "bare": {"X-Payment": token.token},
        "base64": {"X-PAYMENT": base64.b64encode(token.token.encode()).decode()},
        "X-Payment-Token": {"X-Payment-Token": token.token},
    }[way]
    payment = ours.accept(headers, body)
    assert payment is not None
    assert (payment.token_id, payment.account_id) == (token.id, token.account_id)
    answer = decode_payment_response_header(payment.response_headers["PAYMENT-RESPONSE"])
    assert (answer.success, answer.transaction) == (True, token.id)
    assert (
        payment.response_headers["X-PAYMENT-RESPONSE"]
        == (payment.response_headers["PAYMENT-RESPONSE"])
    )


@pytest.mark.parametrize("form", ["opaque", "jwt"])
@pytest.mark.parametrize("what", ["version 2", "version 1", "token"])
@pytest.mark.parametrize(
    "spell",
    [
        lambda data: base64.urlsafe_b64encode(data).decode(),
        lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
        lambda data: base64.b64encode(data).decode().rstrip("="),
        lambda data: base64.b64encode(data).decode() + "=",
        lambda data: base64.b64encode(b"\n " + data + b" \n").decode(),
        lambda data: base64.encodebytes(data).decode().replace("\n", " "),
    ],
    ids=["for URLs", "for URLs without padding", "without padding", "padded", "spaced", "lines"],
)
def test_a_payment_is_taken_in_every_spelling_of_base64(
    spell: Callable[[bytes], str], what: str, form: str
) -> None:
    token = issue(rich(), form=form)
    payload = {"payload": {"token": token.token, "note": "ÿþ??>>"}}
    document = {
        "version 2": {"x402Version": 2, "accepted": demand()["accepts"][0], **payload},
        "version 1": {"x402Version": 1, "scheme": "token", "network": "uamp", **payload},
        "token": None,
    }[what]
    token_text = token.token if document is None else json.dumps(document, ensure_ascii=False)
    header = "PAYMENT-SIGNATURE" if what == "version 2" else "X-PAYMENT"
    assert accepted_payment({header: spell(token_text.encode())}).token_id == token.id


def test_a_request_without_payment_has_none() -> None:
    assert ours.accept({"Content-Type": "application/json", "X-PAYMENT": " "}, demand()) is None


@pytest.mark.parametrize(
    "value",
    [
        "hello world",
        "%%%",
        "x" * 20_000,
        encoded([1]),
        encoded({"x402Version": 3, "scheme": "token", "payload": {"token": "x"}}),
        encoded({"scheme": "token", "payload": {}}),
        encoded({"scheme": "token", "payload": {"token": 7}}),
        encoded({"scheme": "token"}),
        encoded({"x402Version": [], "scheme": "token", "payload": {"token": "x"}}),
        encoded({"x402Version": True, "scheme": "token", "payload": {"token": "x"}}),
        encoded({"x402Version": {}, "accepted": {"scheme": "token"}, "payload": {"token": "x"}}),
        encoded({"payload": {}, "accepted": {"scheme": 1}}),
        base64.b64encode(b'{"a":1,"a":2}').decode(),
        base64.b64encode(b'{"a":').decode(),
        "ptok_unknown",
        "a.b.c",
    ],
    ids=lambda value: value[:12],
)
def test_an_invalid_payment_is_refused(value: str) -> None:
    assert refusal({"X-PAYMENT": value}).code == "token_invalid"


def test_a_token_for_another_agent_or_with_too_little_is_refused() -> None:
    ada = rich()
    foreign = issue(ada, audience=["other"])
    assert refusal({"X-PAYMENT": foreign.token}).code == "token_invalid"
    poor = issue(ada, "0.005")
    error = refusal({"X-PAYMENT": poor.token})
    assert error.code == "insufficient_balance"
    assert "the balance is $0.005" in str(error)


def test_no_more_than_a_token_allows_for_one_use_is_taken() -> None:
    token = issue(rich(), per_use=usd("0.009"))
    assert refusal({"X-PAYMENT": token.token}).code == "rate_limited"
    assert accepted_payment({"X-PAYMENT": token.token}, "0.009").token_id == token.id


def test_a_token_in_another_asset_is_refused() -> None:
    token = issue(rich())
    credits_wanted = ours.requirements(
        Money.parse("0.01", "CREDITS"), resource_url="http://x", description="", agent="echo"
    )
    assert refusal({"X-PAYMENT": token.token}, credits_wanted).code == "token_invalid"


V2 = {"scheme": "token", "network": "uamp:main", "asset": "USD", "amount": "10000000"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"scheme": "token", "network": "evil"}, "Pay on the network uamp:main, not 'evil'."),
        ({"scheme": "token", "network": 7}, "Pay on the network uamp:main, not '7'."),
        ({"scheme": "token", "currency": "JPY"}, "Pay in USD, not 'JPY'."),
        ({"scheme": "token", "network": "uamp", "amount": "0.009"}, "0.009 USD; 0.01 USD is due"),
        ({"accepted": {**V2, "network": "eip155:8453"}}, "not 'eip155:8453'."),
        ({"accepted": V2, "network": "evil"}, "not 'evil'."),
        ({"accepted": {**V2, "asset": "JPY"}}, "Pay in USD, not 'JPY'."),
        ({"accepted": {**V2, "asset": ["USD"]}}, "Pay in USD"),
        ({"accepted": {**V2, "amount": "9999999"}}, "0.009999999 USD; 0.01 USD is due"),
        ({"accepted": {**V2, "amount": 9_999_999}}, "0.009999999 USD; 0.01 USD is due"),
    ],
)
def test_a_token_on_other_terms_than_the_demand_is_refused(
    document: dict[str, Any], message: str
) -> None:
    token = issue(rich())
    header = encoded({**document, "payload": {"token": token.token}})
    error = refusal({"X-PAYMENT": header})
    assert error.code == "payment_failed"
    assert message in str(error)


@pytest.mark.parametrize("places", ["payload", "document"])
def test_a_lower_amount_beside_a_token_is_refused(places: str) -> None:
    token = issue(rich())
    payload = {"token": token.token, "amount": "0.005", "currency": "USD"}
    document = {"scheme": "token", "network": "uamp", "payload": payload}
    if places == "document":
        document |= {"amount": payload.pop("amount")}
    error = refusal({"X-PAYMENT": encoded(document)})
    assert (error.code, "0.005 USD; 0.01 USD is due" in str(error)) == ("payment_failed", True)


@pytest.mark.parametrize("amount", ["1e3", "-1", True, {}, "0.0000000001", 10**18])
def test_an_amount_that_is_not_an_amount_is_refused(amount: object) -> None:
    payload = {"token": issue(rich()).token, "amount": amount}
    header = encoded({"scheme": "token", "network": "uamp", "payload": payload})
    assert refusal({"X-PAYMENT": header}).code == "token_invalid"


@pytest.mark.parametrize(
    "offer",
    [demand()["accepts"][0], demand()["context"]["accepts"][0], {**V2, "amount": 10_000_001},
     {"scheme": "token", "network": None, "asset": "usd"}],
)  # fmt: skip
def test_a_token_is_taken_on_the_terms_of_the_demand(offer: dict[str, Any]) -> None:
    token = issue(rich())
    payload = {"payload": {"token": token.token}}
    for document in ({"x402Version": 2, "accepted": offer}, {"x402Version": 1, **offer}):
        assert (
            accepted_payment({"X-PAYMENT": encoded({**document, **payload})}).token_id == token.id
        )


def test_an_unknown_scheme_is_refused() -> None:
    value = encoded({"scheme": "barter", "payload": {}})
    assert refusal({"X-PAYMENT": value}).code == "payment_failed"


def test_exact_is_refused_without_a_facilitator() -> None:
    value = encoded({"scheme": "exact", "payload": {"authorization": {}}})
    assert refusal({"X-PAYMENT": value}).code == "payment_failed"
