"""Batches that are paid by their headers: a 402 first, then the answer (x402, transports)."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.http.utils import decode_payment_response_header
from x402.mechanisms.evm.exact.client import ExactEvmScheme

from chat_app.models import Message
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app import tokens
from payments_app.models import Hold
from payments_app.money import Money
from sessions_app.models import Response
from tests.client import new_event, wait_until
from tests.house import Person, quick_agent
from tests.payments_app import facilitator

if TYPE_CHECKING:
    import requests
    from pytest_django import Settings
    from x402.schemas.payments import PaymentRequirements

    from agents_app.models import Agent
    from tests.conftest import ServerAddress

TURN = [
    new_event("session.create", uamp_version="1.0", session={}, agent="paid"),
    new_event("input.text", text="Hello"),
    new_event("response.create"),
]


def usd(text: str) -> Money:
    """Return an amount of dollars."""
    return Money.parse(text, "USD")


@pytest.fixture
def agent(demo: object) -> Agent:
    """Give an agent that costs a quarter."""
    made = quick_agent("paid", "echo")
    made.pricing = {"per_answer": "0.25"}
    made.save()
    return made


@pytest.fixture
def token(alice: Person, agent: Agent) -> str:
    """Give a payment token of a dollar."""
    ledger.top_up(
        key="seed",
        account=ledger.account_of_user(alice.user.pk).id,
        amount=usd("10"),
        provider="tests",
        external_id="seed",
    )
    issued = tokens.issue(key="token", user_id=alice.user.pk, amount=usd("1"), expires_in=600)
    return issued.token


def ask(web: httpx.Client, path: str = "/uamp", **headers: str) -> httpx.Response:
    """Send a turn of a visitor."""
    return web.post(path, json=TURN, headers=headers)


def decoded(header: str) -> dict[str, Any]:
    """Return what a header of x402 says."""
    value: dict[str, Any] = json.loads(base64.b64decode(header))
    return value


def earned(agent: Agent) -> str:
    """Return what an agent has earned."""
    return str(ledger_rows.balance(ledger.account_of_agent(agent.pk).id).posted)


@pytest.mark.parametrize("path", ["/uamp", "/uamp/stream"])
def test_what_is_not_paid_is_demanded_and_leaves_nothing(
    web: httpx.Client, agent: Agent, path: str
) -> None:
    answer = ask(web, path)
    assert answer.status_code == httpx.codes.PAYMENT_REQUIRED
    body = answer.json()
    assert (body["status_code"], body["x402Version"]) == (402, 2)
    assert body["context"]["accepts"][0]["scheme"] == "token"
    assert body["context"]["accepts"][0]["amount"] == "0.25"
    header = decoded(answer.headers["PAYMENT-REQUIRED"])
    assert header["accepts"][0]["amount"] == str(usd("0.25").amount)
    assert not Message.objects.exists()
    assert not Response.objects.exists()
    assert not Hold.objects.exists()


@pytest.mark.parametrize("header", ["X-PAYMENT", "X-Payment-Token"])
def test_a_token_in_a_header_pays(web: httpx.Client, agent: Agent, token: str, header: str) -> None:
    answer = ask(web, **{header: token})
    assert answer.status_code == httpx.codes.OK, answer.text
    kinds = [frame["type"] for frame in answer.json()]
    assert "payment.required" not in kinds
    assert kinds.index("payment.accepted") < kinds.index("response.delta")
    assert decoded(answer.headers["PAYMENT-RESPONSE"])["success"] is True
    wait_until(lambda: earned(agent) == "0.25")


def test_a_stream_is_paid_likewise(web: httpx.Client, agent: Agent, token: str) -> None:
    answer = ask(web, "/uamp/stream", **{"X-PAYMENT": token})
    assert answer.status_code == httpx.codes.OK
    assert "PAYMENT-RESPONSE" in answer.headers
    assert "response.done" in answer.text
    wait_until(lambda: earned(agent) == "0.25")


def test_a_token_in_the_session_pays_too(web: httpx.Client, agent: Agent, token: str) -> None:
    turn = [{**TURN[0], "payment_token": token}, *TURN[1:]]
    answer = web.post("/uamp", json=turn)
    assert answer.status_code == httpx.codes.OK
    assert "response.done" in [frame["type"] for frame in answer.json()]
    wait_until(lambda: earned(agent) == "0.25")


@pytest.mark.parametrize(
    ("payment", "code"), [("nonsense", "token_invalid"), ("ptok_nobody", "token_invalid")]
)
def test_a_bad_payment_is_named_and_nothing_runs(
    web: httpx.Client, agent: Agent, payment: str, code: str
) -> None:
    answer = ask(web, **{"X-PAYMENT": payment})
    assert answer.status_code == httpx.codes.PAYMENT_REQUIRED
    assert answer.json()["code"] == code
    assert not Response.objects.exists()


def test_a_token_that_is_used_up_is_refused_the_next_time(
    web: httpx.Client, agent: Agent, token: str
) -> None:
    for _ in range(4):
        assert ask(web, **{"X-PAYMENT": token}).status_code == httpx.codes.OK
    wait_until(lambda: earned(agent) == "1")
    answer = ask(web, **{"X-PAYMENT": token})
    assert answer.status_code == httpx.codes.PAYMENT_REQUIRED
    assert answer.json()["code"] == "insufficient_balance"


def test_a_later_turn_of_a_session_is_paid_anew_when_its_token_is_used_up(
    web: httpx.Client, agent: Agent, token: str, alice: Person
) -> None:
    small = tokens.issue(key="small", user_id=alice.user.pk, amount=usd("0.25"), expires_in=600)
    created = ask(web, **{"X-PAYMENT": small.token}).json()[0]
    assert created["type"] == "session.created"

    def again(**headers: str) -> httpx.Response:
        turn = [
            new_event("input.text", text="Again", session_id=created["session_id"]),
            new_event("response.create", session_id=created["session_id"]),
        ]
        return web.post("/uamp", json=turn, headers=headers)

    wait_until(lambda: earned(agent) == "0.25")
    refused = again()
    assert refused.status_code == httpx.codes.PAYMENT_REQUIRED
    assert "PAYMENT-REQUIRED" in refused.headers
    assert Response.objects.count() == 1
    answer = again(**{"X-PAYMENT": token})
    assert answer.status_code == httpx.codes.OK
    assert "PAYMENT-RESPONSE" in answer.headers
    assert "response.done" in [frame["type"] for frame in answer.json()]
    wait_until(lambda: earned(agent) == "0.5")


def test_a_batch_ends_where_somebody_has_to_top_up(
    web: httpx.Client, agent: Agent, token: str, settings: Settings
) -> None:
    """The answer of the first request asks for more; the next one pays and hears the rest."""
    settings.UAMP_RESERVE_TOKENS = 10
    agent.options = {"script": "slow"}
    agent.pricing = {"output_per_1k": "10"}
    agent.save()
    turn = [{**TURN[0], "payment_token": token}, *TURN[1:]]
    first = web.post("/uamp", json=turn, timeout=30)
    frames = first.json()
    assert frames[-1]["type"] == "payment.required"
    assert frames[-1]["extra"] == {"action": "topup"}


# --- The official client ---


class TokenScheme:
    """The scheme of this server's own network, for the official client of x402."""

    scheme = "token"

    def __init__(self, token: str) -> None:
        self._token = token

    def create_payment_payload(self, requirements: PaymentRequirements) -> dict[str, Any]:
        """Return what the header carries."""
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
    """What was paid more than the answer used stays the payer's: a token comes back with it."""
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
    wait_until(lambda: str(tokens.resolve(change, agent="paid").available) == "0.00511")
    assert ledger.audit().clean
