"""Payments of tasks in their metadata: the a2a-x402 extension."""

from typing import Any

import httpx
import pytest

from payments_app.models import Hold
from payments_app.tokens import issuance
from tests.gateway_app.a2a.calls import call, send, text_of
from tests.live_server import Person
from tests.sessions_app.billing.paid_agents import rich, usd


def test_a_price_is_input_required_until_it_is_paid(web: httpx.Client, alice: Person) -> None:
    rich(alice)
    task = send(web, "paid-echo", "Hello there")
    demand = task["status"]["message"]["metadata"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert demand["x402.payment.status"] == "payment-required"
    (offer,) = demand["x402.payment.required"]["accepts"]
    assert offer["scheme"] == "token"

    poor = {"x402.payment.payload": {"x402Version": 2, "payload": {"token": "not.a.token"}}}
    refused = send(web, "paid-echo", "", taskId=task["id"], metadata=poor)
    assert refused["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert refused["status"]["message"]["metadata"]["x402.payment.error"] == "INVALID_SIGNATURE"

    issued = issuance.issue(key="t", user_id=alice.user.pk, amount=usd("1"), expires_in=600)
    payload = {"x402Version": 2, "accepted": offer, "payload": {"token": issued.token}}
    paid = {
        "x402.payment.status": "payment-submitted",
        "x402.payment.payload": payload,
    }
    done = send(web, "paid-echo", "", taskId=task["id"], metadata=paid)
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert text_of(done) == "Hello there"
    (receipt,) = done["status"]["message"]["metadata"]["x402.payment.receipts"]
    assert receipt["success"] is True
    assert receipt["transaction"]


@pytest.mark.parametrize(
    "terms",
    [
        {"network": "evil"},
        {"asset": "JPY"},
        {"amount": "1"},
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_a_payment_on_other_terms_leaves_a_task_unpaid(
    web: httpx.Client, alice: Person, terms: dict[str, str], version: int
) -> None:
    rich(alice)
    task = send(web, "paid-echo", "Hello there")
    (offer,) = task["status"]["message"]["metadata"]["x402.payment.required"]["accepts"]
    issued = issuance.issue(key="t", user_id=alice.user.pk, amount=usd("1"), expires_in=600)

    def pay(accepted: dict[str, Any]) -> dict[str, Any]:
        chosen = {"accepted": accepted} if version == 2 else accepted
        payload = {"x402Version": version, **chosen, "payload": {"token": issued.token}}
        paid = {"x402.payment.status": "payment-submitted", "x402.payment.payload": payload}
        return send(web, "paid-echo", "", taskId=task["id"], metadata=paid)

    refused = pay({**offer, **terms})
    assert refused["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert refused["status"]["message"]["metadata"]["x402.payment.error"] == "SETTLEMENT_FAILED"
    assert not Hold.objects.exists()
    assert pay(offer)["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize(
    "payload",
    [
        {"scheme": "exact", "payload": {"token": "t"}},
        {"accepted": {"scheme": "barter"}, "payload": {"token": "t"}},
        {"network": 7, "payload": {"token": "t"}},
        {"amount": "0.5", "payload": {"token": "t"}},
        {"payload": {}},
        7,
    ],
)
def test_a_payload_without_a_token_payment_is_refused(web: httpx.Client, payload: object) -> None:
    task = send(web, "paid-echo", "Hello there")
    message = {
        "messageId": "m2",
        "role": "ROLE_USER",
        "taskId": task["id"],
        "parts": [{"text": ""}],
        "metadata": {"x402.payment.payload": payload},
    }
    assert call(web, "paid-echo", "SendMessage", {"message": message})["error"]["code"] == -32602
