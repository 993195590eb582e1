"""Demands of a 402, on a chain and without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from x402.http.utils import decode_payment_required_header

from payments_app import x402 as ours
from payments_app.money import Money
from payments_app.x402 import offers
from tests.payments_app.funded_accounts import usd
from tests.payments_app.x402.payment_headers import PRICE, demand

if TYPE_CHECKING:
    from tests.payments_app.x402.facilitator import Facilitator

pytestmark = pytest.mark.django_db


def test_one_body_serves_every_client() -> None:
    body = ours.requirements(
        usd(PRICE),
        resource_url="http://localhost/uamp",
        description="An answer",
        agent="echo",
        response_id="resp_1",
    )
    assert (body["error"], body["status_code"], body["x402Version"]) == ("Payment required", 402, 2)
    (offer,) = body["accepts"]
    assert (offer["scheme"], offer["network"], offer["amount"]) == (
        "token",
        "uamp:main",
        "10000000",
    )
    (seed,) = body["context"]["accepts"]
    assert (seed["scheme"], seed["network"], seed["amount"]) == ("token", "uamp", "0.01")
    assert seed["maxAmountRequired"] == "0.01"
    assert body["response_id"] == "resp_1"


def test_the_header_is_what_the_official_library_reads(chain: Facilitator) -> None:
    body = demand("0.0100001")
    headers = ours.required_headers(body)
    read: Any = decode_payment_required_header(headers["PAYMENT-REQUIRED"])
    assert [(option.scheme, option.network, option.amount) for option in read.accepts] == [
        ("token", "uamp:main", "10000100"),
        ("exact", "eip155:8453", "10001"),
    ]
    assert read.resource.url == "http://localhost/uamp"
    assert headers["Cache-Control"] == "no-store"
    assert "PAYMENT-RESPONSE" in headers["Access-Control-Expose-Headers"]


def test_without_a_facilitator_nothing_is_offered_on_a_chain() -> None:
    assert [offer["scheme"] for offer in demand()["accepts"]] == ["token"]


def test_credits_are_not_paid_on_a_chain(chain: Facilitator) -> None:
    assert offers.exact_offer(Money.parse("1", "CREDITS")) is None


@pytest.mark.parametrize(
    ("text", "asset", "atomic"),
    [("0.01", "USD", 10_000), ("0.010000001", "USD", 10_001), ("1", "USDC", 1_000_000)],
)
def test_on_a_chain_amounts_are_rounded_up(text: str, asset: str, atomic: int) -> None:
    assert offers.on_chain(Money.parse(text, asset)) == atomic
