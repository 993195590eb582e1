"""Facilitators that misbehave: no payment is lost or credited twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.urls import reverse
from x402.http.utils import decode_payment_response_header

from payments_app import services
from payments_app import x402 as ours
from payments_app.models import PaymentToken, Receipt, Transfer
from payments_app.x402 import PaymentNotTaken
from tests import factories
from tests.payments_app.funded_accounts import available
from tests.payments_app.tokens.issued_tokens import race
from tests.payments_app.x402.payment_headers import (
    PAY_TO,
    PRICE,
    accepted_payment,
    charge,
    demand,
    refusal,
    signed,
)

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker, Settings

    from tests.payments_app.x402.facilitator import Facilitator, Mode

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("mode", ["invalid", "500 at verify", "no json"])
def test_an_unverified_payment_is_not_settled_and_leaves_no_row(
    chain: Facilitator, mode: Mode
) -> None:
    headers = signed(demand())
    chain.mode = mode
    assert refusal(headers).code == "payment_failed"
    assert (chain.asked["settle"], Receipt.objects.count()) == (0, 0)
    chain.mode = "ok"
    assert str(accepted_payment(headers).available) == PRICE


@pytest.mark.parametrize("mode", ["500 after settling", "late"])
def test_an_answer_that_is_lost_is_found_by_the_same_payment_again(
    chain: Facilitator, mode: Mode, settings: Settings
) -> None:
    headers = signed(demand())
    chain.mode = mode
    # Only what is late on purpose is too late: a machine with other work takes longer.
    settings.UAMP_X402_SECONDS = 1 if mode == "late" else 30
    for _ in range(2):
        assert "Send the same payment again" in str(refusal(headers))
        assert Receipt.objects.get().state == "submitted"
    chain.mode = "ok"
    settings.UAMP_X402_SECONDS = 30
    done = accepted_payment(headers)
    assert str(done.available) == PRICE
    assert str(accepted_payment({**headers, "X-Payment-Token": done.secret}).available) == PRICE
    assert chain.received[PAY_TO] == 10_000
    assert chain.asked["verify"] == 1, "what was submitted is not verified anew: its nonce is used"
    assert services.audit().clean


def test_a_facilitator_that_forgets_what_it_settled_credits_nothing_by_itself(
    chain: Facilitator,
) -> None:
    headers = signed(demand())
    chain.mode = "500 after settling"
    refusal(headers)
    chain.mode = "forgets"
    assert "nonce_already_used" in str(refusal(headers))
    assert Receipt.objects.get().state == "submitted"
    assert PaymentToken.objects.count() == 0


def test_what_a_facilitator_forgot_is_credited_by_an_operator_and_spent_by_its_payer(
    chain: Facilitator,
) -> None:
    headers = signed(demand())
    chain.mode = "500 after settling"
    refusal(headers)
    chain.mode = "forgets"
    refusal(headers)
    receipt = Receipt.objects.get()
    client = Client()
    client.force_login(factories.superuser())
    page = reverse("admin:payments_app_receipt_operate", args=[receipt.pk])
    row = reverse("admin:payments_app_receipt_change", args=[receipt.pk])
    assert page in client.get(row).content.decode()
    assert receipt.external_id in client.get(page).content.decode()
    assert client.get(row.replace(str(receipt.pk), "x")).status_code == 302

    for key in ("k", "k", "another"):
        assert client.post(page, {"key": key, "reason": "seen on the chain"}).status_code == 302

    assert page not in client.get(row).content.decode()
    assert Transfer.objects.filter(kind="top_up").count() == 1
    done = accepted_payment(headers)
    assert str(done.available) == PRICE
    answer = decode_payment_response_header(done.response_headers["PAYMENT-RESPONSE"])
    assert answer.extra == {"token": done.secret}
    assert refusal(headers).code == "payment_used"
    assert str(accepted_payment({**headers, "X-Payment-Token": done.secret}).available) == PRICE
    charge(done.account_id, PRICE)
    assert "used" in str(refusal(headers))
    assert services.audit().clean


@pytest.mark.parametrize("is_late", [False, True], ids=["credited", "credited late"])
def test_a_payment_that_an_operator_refunded_buys_nothing_more(
    chain: Facilitator, *, is_late: bool
) -> None:
    headers = signed(demand())
    if is_late:
        chain.mode = "500 after settling"
        refusal(headers, user_id=7)
        chain.mode = "ok"
    first = ours.accept(headers, demand(), user_id=7)
    assert first is not None
    credited = Transfer.objects.get(kind="top_up")
    services.refund(key="refund", transfer_id=credited.pk, by=None, reason="asked for")

    settle_calls = chain.asked["settle"]
    assert refusal(headers, user_id=7).code == "payment_used"
    assert refusal({"X-PAYMENT": first.secret}).code == "insufficient_balance"
    assert refusal(headers).code == "payment_used"

    assert chain.asked["settle"] == settle_calls
    assert Transfer.objects.filter(kind="top_up").count() == 1
    assert services.audit().clean


def test_a_payment_that_was_not_carried_out_may_be_tried_again(chain: Facilitator) -> None:
    headers = signed(demand())
    chain.mode = "not carried out"
    assert "transaction_reverted" in str(refusal(headers))
    chain.mode = "ok"
    assert str(accepted_payment(headers).available) == PRICE


def test_another_amount_than_was_signed_is_not_credited(chain: Facilitator) -> None:
    chain.mode = "another amount"
    assert refusal(signed(demand())).code == "payment_failed"
    assert Receipt.objects.get().state == "submitted"


def test_an_unreachable_facilitator_is_reported_and_nothing_is_written(settings: Settings) -> None:
    settings.UAMP_X402_FACILITATOR = "http://127.0.0.1:1/"
    settings.UAMP_X402_PAY_TO = PAY_TO
    assert refusal(signed(demand())).code == "payment_failed"
    assert Receipt.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_the_same_payment_four_times_at_once_is_credited_once(
    chain: Facilitator, django_db_blocker: DjangoDbBlocker
) -> None:
    headers = signed(demand())
    outcomes = race(django_db_blocker, *[lambda: accepted_payment(headers).token_id] * 4)
    (token_id,) = [outcome for outcome in outcomes if isinstance(outcome, str)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, PaymentNotTaken)]
    assert {error.code for error in refused} == {"payment_used"}
    account = PaymentToken.objects.get(pk=token_id).account_id
    assert available(account) == PRICE
    assert chain.received[PAY_TO] == 10_000
    assert services.audit().clean


@pytest.mark.django_db(transaction=True)
def test_a_settlement_beside_the_first_returns_what_that_credited(
    chain: Facilitator, django_db_blocker: DjangoDbBlocker
) -> None:
    """The facilitator refuses it, because the nonce is used."""
    headers = signed(demand())
    chain.mode = "one at a time"

    def taken() -> str:
        done = ours.accept(headers, demand(), user_id=7)
        return "" if done is None else done.token_id

    (token,) = set(race(django_db_blocker, taken, taken))
    assert PaymentToken.objects.get().pk == token
    assert (chain.asked["settle"], chain.received[PAY_TO]) == (2, 10_000)
    assert services.audit().clean
