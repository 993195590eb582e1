"""The official client of x402 pays at a route of ours."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.http.utils import decode_payment_response_header
from x402.mechanisms.evm.exact.client import ExactEvmScheme

from payments_app import selectors, services
from payments_app import x402 as ours
from payments_app.x402 import PaymentNotTaken
from tests.payments_app.funded_accounts import available
from tests.payments_app.tokens.issued_tokens import issue, rich
from tests.payments_app.x402.payment_headers import PAY_TO, charge, demand
from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import DjangoDbBlocker
    from x402.schemas.payments import PaymentRequirements

    from tests.payments_app.x402.facilitator import Facilitator

pytestmark = pytest.mark.django_db


class PaidRoute(BaseHTTPRequestHandler):
    """A paid route as a transport makes one: demand, take, charge, answer."""

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Return the payer."""
        body = demand()
        try:
            done = ours.accept(dict(self.headers), body)
        except PaymentNotTaken as error:
            self._answer(402, {**body, "error": str(error)}, ours.required_headers(body))
        else:
            if done is None:
                self._answer(402, body, ours.required_headers(body))
            else:
                charge(done.account_id, "0.007")
                self._answer(200, {"answer": "paid"}, dict(done.response_headers))
        finally:
            connection.close()

    def _answer(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def route(django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), PaidRoute)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    join_threads([thread])


@pytest.mark.django_db(transaction=True)
def test_the_official_client_pays_with_its_key(chain: Facilitator, route: str) -> None:
    client = x402ClientSync()
    client.register("eip155:*", ExactEvmScheme(Account.create()))
    with x402_requests(client) as session:
        answers = [session.get(route, timeout=10) for _ in range(2)]
    assert [answer.json() for answer in answers] == [{"answer": "paid"}] * 2
    receipt = decode_payment_response_header(answers[0].headers["PAYMENT-RESPONSE"])
    assert receipt.success
    assert chain.received[PAY_TO] == 20_000
    assert available(services.account_of_agent("agent_1")) == "0.014"
    assert str(selectors.usage_by("kind")[0].amount) == "0.014"


class TokenScheme:
    """The scheme of our own network, for the official client."""

    scheme = "token"

    def __init__(self, token: str) -> None:
        self.token = token

    def create_payment_payload(self, requirements: PaymentRequirements) -> dict[str, Any]:
        """Return the payload that the header carries."""
        assert requirements.network == "uamp:main"
        return {"token": self.token}


@pytest.mark.django_db(transaction=True)
def test_the_official_client_pays_with_a_token(route: str) -> None:
    token = issue(rich(), "0.02", form="jwt")
    client = x402ClientSync()
    client.register("uamp:*", TokenScheme(token.token))
    client.set_spend_controls(controls=False)
    with x402_requests(client) as session:
        answers = [session.get(route, timeout=10) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 402]
    assert "the balance is $0.006" in answers[-1].json()["error"]
