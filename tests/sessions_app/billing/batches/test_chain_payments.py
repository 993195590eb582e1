"""Batches paid on a chain."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from eth_account import Account
from x402 import x402ClientSync
from x402.http.utils import decode_payment_required_header
from x402.mechanisms.evm.exact.client import ExactEvmScheme

from agents_app.providers import scripts
from payments_app import services as ledger
from payments_app.models import Hold
from tests.client import new_event, wait_until
from tests.payments_app.x402 import facilitator
from tests.sessions_app.billing.batches.turns import TURN, ask, decoded, earned, frames_of
from upp import ErrorCode, UPPError
from upp.providers.scripted import Fail, Step

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pytest_django import Settings

    from agents_app.models import Agent
    from agents_app.selectors import AgentSpec
    from tests.conftest import ServerAddress
    from tests.live_server import Person
    from upp import LLMRequest


async def down(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Fail before anything is delivered."""
    yield Fail(UPPError("It is down.", code=ErrorCode.PROVIDER_ERROR))


@pytest.mark.parametrize("signed_in", [False, True])
def test_a_payment_whose_answer_failed_is_the_payers_alone(
    web: httpx.Client,
    agent: Agent,
    alice: Person,
    mallory: Person,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    signed_in: bool,  # noqa: FBT001 - a parameter
) -> None:
    """The chain shows the payment to every reader; only its payer gets another answer for it."""
    monkeypatch.setitem(scripts.SCRIPTS, "down", down)
    agent.options = {"script": "down"}
    agent.save()
    payer = alice.headers if signed_in else {}
    with facilitator.running() as chain:
        settings.UAMP_X402_FACILITATOR = chain.url
        settings.UAMP_X402_PAY_TO = "0x" + "ab" * 20
        client = x402ClientSync()
        client.register("eip155:*", ExactEvmScheme(Account.create()))
        demand: Any = decode_payment_required_header(ask(web).headers["PAYMENT-REQUIRED"])
        demand.accepts = [offer for offer in demand.accepts if offer.scheme == "exact"]
        payload = client.create_payment_payload(demand)
        text = payload.model_dump_json(by_alias=True, exclude_none=True)
        payment = {"PAYMENT-SIGNATURE": base64.b64encode(text.encode()).decode()}
        first = ask(web, **payment, **payer)
        assert first.status_code == httpx.codes.OK, first.text
        assert "response.error" in [frame["type"] for frame in first.json()]
        wait_until(lambda: not Hold.objects.filter(state="active").exists())
        secret = decoded(first.headers["PAYMENT-RESPONSE"])["extra"]["token"]

        agent.options = {"script": "echo"}
        agent.save()
        others = [{}, mallory.headers, {"X-Payment-Token": "ptok_missing"}]
        for other in others if signed_in else [*others, alice.headers]:
            refused = ask(web, **payment, **other)
            assert refused.status_code == httpx.codes.PAYMENT_REQUIRED, refused.text
            assert refused.json()["code"] == "payment_used"
            assert secret not in refused.text
        again = ask(web, **payment, **(payer or {"X-Payment-Token": secret}))
        assert again.status_code == httpx.codes.OK, again.text
        assert "response.done" in [frame["type"] for frame in again.json()]
        assert decoded(again.headers["PAYMENT-RESPONSE"])["extra"]["token"] == secret
        wait_until(lambda: earned(agent) == "0.25")
        spent = ask(web, **payment, **(payer or {"X-Payment-Token": secret}))
        assert spent.status_code == httpx.codes.PAYMENT_REQUIRED
        assert spent.json()["code"] == "payment_used"
        assert chain.asked["settle"] == 1
    assert ledger.audit().clean


def test_a_visitors_batch_again_has_its_answer_at_its_own_address_alone(
    demo: ServerAddress, web: httpx.Client, agent: Agent, settings: Settings
) -> None:
    """Any reader of the chain who guesses the key and the body gets nothing elsewhere."""
    with (
        facilitator.running() as chain,
        httpx.Client(
            base_url=demo.http, transport=httpx.HTTPTransport(local_address="127.0.0.2")
        ) as elsewhere,
    ):
        settings.UAMP_X402_FACILITATOR = chain.url
        settings.UAMP_X402_PAY_TO = "0x" + "ab" * 20
        client = x402ClientSync()
        client.register("eip155:*", ExactEvmScheme(Account.create()))
        demand: Any = decode_payment_required_header(ask(web).headers["PAYMENT-REQUIRED"])
        demand.accepts = [offer for offer in demand.accepts if offer.scheme == "exact"]
        payload = client.create_payment_payload(demand)
        text = payload.model_dump_json(by_alias=True, exclude_none=True)
        headers = {
            "PAYMENT-SIGNATURE": base64.b64encode(text.encode()).decode(),
            "Idempotency-Key": "1",
        }
        answers = [ask(web, **headers) for _ in range(2)]
        refused = ask(elsewhere, **headers)
        assert chain.asked["settle"] == 1
    assert [answer.status_code for answer in answers] == [httpx.codes.OK] * 2
    done = [f["response_id"] for a in answers for f in frames_of(a) if f["type"] == "response.done"]
    assert len(done) == 2
    assert len(set(done)) == 1
    assert refused.status_code == httpx.codes.PAYMENT_REQUIRED
    assert refused.json()["code"] == "payment_used"
    wait_until(lambda: earned(agent) == "0.25")


def test_a_payment_on_a_chain_pays_all_turns_of_its_batch(
    web: httpx.Client, agent: Agent, settings: Settings
) -> None:
    """The turns are in sessions of their own: each of them meets the payment of the request."""
    batch = []
    for _ in range(2):
        name = web.post("/uamp", json=TURN[:1]).json()[0]["session_id"]
        batch += [
            new_event("input.text", text="Hello", session_id=name),
            new_event("response.create", session_id=name),
        ]
    with facilitator.running() as chain:
        settings.UAMP_X402_FACILITATOR = chain.url
        settings.UAMP_X402_PAY_TO = "0x" + "ab" * 20
        client = x402ClientSync()
        client.register("eip155:*", ExactEvmScheme(Account.create()))
        agent.pricing = {"per_answer": "0.5"}
        agent.save()
        demand: Any = decode_payment_required_header(ask(web).headers["PAYMENT-REQUIRED"])
        demand.accepts = [offer for offer in demand.accepts if offer.scheme == "exact"]
        payload = client.create_payment_payload(demand)
        agent.pricing = {"per_answer": "0.25"}
        agent.save()
        text = payload.model_dump_json(by_alias=True, exclude_none=True)
        payment = {"PAYMENT-SIGNATURE": base64.b64encode(text.encode()).decode()}
        answer = web.post("/uamp", json=batch, headers=payment)
    assert answer.status_code == httpx.codes.OK, answer.text
    assert [frame["type"] for frame in answer.json()].count("response.done") == 2
    assert "token" in decoded(answer.headers["PAYMENT-RESPONSE"])["extra"]
    wait_until(lambda: earned(agent) == "0.5")
