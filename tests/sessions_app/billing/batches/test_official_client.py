"""The official client of x402 pays for batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.http.utils import decode_payment_response_header
from x402.mechanisms.evm.exact.client import ExactEvmScheme

from payments_app import services as ledger
from payments_app.tokens import lookup as token_lookup
from tests.client import wait_until
from tests.payments_app.x402 import facilitator
from tests.sessions_app.billing.batches.turns import TURN, decoded, earned

if TYPE_CHECKING:
    import requests
    from pytest_django import Settings
    from x402.schemas.payments import PaymentRequirements

    from agents_app.models import Agent
    from tests.conftest import ServerAddress


class TokenScheme:
    """The scheme of this server's own network, for the official client of x402."""

    scheme = "token"

    def __init__(self, token: str) -> None:
        self._token = token

    def create_payment_payload(self, requirements: PaymentRequirements) -> dict[str, Any]:
        """Return the payload that the header carries."""
        assert requirements.network == "uamp:main"
        return {"token": self._token}


def kinds_of(answer: requests.Response) -> list[str]:
    """Return the types of the events in the answer to a batch."""
    assert answer.status_code == httpx.codes.OK, answer.text
    return [frame["type"] for frame in answer.json()]


def test_the_official_client_pays_for_a_turn_with_a_token(
    demo: ServerAddress, agent: Agent, token: str
) -> None:
    client = x402ClientSync()
    client.register("uamp:*", TokenScheme(token))
    client.set_spend_controls(controls=False)
    with x402_requests(client) as session:
        answer = session.post(f"{demo.http}/uamp", json=TURN, timeout=20)
    assert "response.done" in kinds_of(answer)
    assert decode_payment_response_header(answer.headers["PAYMENT-RESPONSE"]).success
    wait_until(lambda: earned(agent) == "0.25")


def test_the_official_client_pays_for_a_turn_on_a_chain(
    demo: ServerAddress, agent: Agent, settings: Settings
) -> None:
    """An overpayment stays the payer's: a token comes back with it."""
    agent.pricing = {"per_answer": "0.01", "output_per_1k": "0.01"}
    agent.save()
    with facilitator.running() as chain:
        settings.UAMP_X402_FACILITATOR = chain.url
        settings.UAMP_X402_PAY_TO = "0x" + "ab" * 20
        client = x402ClientSync()
        client.register("eip155:*", ExactEvmScheme(Account.create()))
        with x402_requests(client) as session:
            answer = session.post(f"{demo.http}/uamp", json=TURN, timeout=20)
        assert "response.done" in kinds_of(answer)
        # A cent, and the 512 tokens that are reserved.
        assert chain.received["0x" + "ab" * 20] == 15_120
    wait_until(lambda: earned(agent) == "0.01001")
    change = decoded(answer.headers["PAYMENT-RESPONSE"])["extra"]["token"]
    wait_until(lambda: str(token_lookup.resolve(change, agent="paid").available) == "0.00511")
    assert ledger.audit().clean
