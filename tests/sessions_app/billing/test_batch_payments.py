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
from x402.http.utils import decode_payment_required_header, decode_payment_response_header
from x402.mechanisms.evm.exact.client import ExactEvmScheme

from agents_app.providers import scripts
from chat_app.models import Message
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.models import Hold
from payments_app.money import Money
from payments_app.tokens import issuance
from payments_app.tokens import lookup as token_lookup
from sessions_app.models import Response
from tests.client import new_event, wait_until
from tests.live_server import Person, quick_agent
from tests.payments_app.x402 import facilitator
from upp import ErrorCode, UPPError
from upp.providers.scripted import Fail, Step

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import requests
    from pytest_django import Settings
    from x402.schemas.payments import PaymentRequirements

    from agents_app.models import Agent
    from agents_app.selectors import AgentSpec
    from tests.conftest import ServerAddress
    from upp import LLMRequest

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
    issued = issuance.issue(key="token", user_id=alice.user.pk, amount=usd("1"), expires_in=600)
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
    ("payment", "code"), [("nonsense", "token_invalid"), ("ptok_missing", "token_invalid")]
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
    small = issuance.issue(key="small", user_id=alice.user.pk, amount=usd("0.25"), expires_in=600)
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


def test_a_batch_ends_where_a_payer_has_to_top_up(
    web: httpx.Client, agent: Agent, token: str, settings: Settings
) -> None:
    """The answer of the first request asks for more; the next one pays and receives the rest."""
    settings.UAMP_RESERVE_TOKENS = 10
    agent.options = {"script": "slow"}
    agent.pricing = {"output_per_1k": "10"}
    agent.save()
    turn = [{**TURN[0], "payment_token": token}, *TURN[1:]]
    first = web.post("/uamp", json=turn, timeout=30)
    frames = first.json()
    assert frames[-1]["type"] == "payment.required"
    assert frames[-1]["extra"] == {"action": "topup"}


@pytest.mark.parametrize("sessions", [1, 2])
@pytest.mark.parametrize("path", ["/uamp", "/uamp/stream"])
def test_a_batch_whose_second_turn_is_not_paid_has_the_answer_of_the_first(
    web: httpx.Client, agent: Agent, token: str, alice: Person, path: str, sessions: int
) -> None:
    agent.pricing = {"per_answer": "0.5"}
    agent.save()
    small = issuance.issue(key="small", user_id=alice.user.pk, amount=usd("0.6"), expires_in=600)
    batch = [
        new_event("session.create", uamp_version="1.0", session={"id": f"s{place}"}, agent="paid")
        for place in range(sessions)
    ]
    asked = []
    for place in range(2):
        name = {"session_id": f"s{min(place, sessions - 1)}"}
        batch += [
            new_event("input.text", text="Hello", **name),
            new_event("response.create", **name),
        ]
        asked.append(batch[-1]["event_id"])
    headers = {**alice.headers, "X-PAYMENT": small.token}
    answer = web.post(path, json=batch, headers=headers, timeout=20)
    assert answer.status_code == httpx.codes.OK, answer.text
    assert decoded(answer.headers["PAYMENT-RESPONSE"])["success"] is True
    frames = frames_of(answer)
    assert [frame["type"] for frame in frames].count("response.done") == 1
    (unpaid,) = [frame for frame in frames if frame["type"] == "response.error"]
    assert unpaid["error"]["code"] == "payment_required"
    assert unpaid["error"]["details"]["event_id"] == asked[1]
    demand = unpaid["error"]["details"]["payment"]
    assert (demand["code"], demand["amount"]) == ("insufficient_balance", "0.5")
    assert demand["accepts"][0]["scheme"] == "token"
    wait_until(lambda: earned(agent) == "0.5")
    assert Response.objects.count() == 1


@pytest.mark.parametrize("path", ["/uamp", "/uamp/stream"])
def test_nothing_of_a_batch_is_begun_after_a_turn_that_is_not_paid(
    web: httpx.Client, agent: Agent, alice: Person, path: str
) -> None:
    quick_agent("free", "echo")
    batch = []
    for name in ("paid", "free"):
        batch += [
            new_event("session.create", uamp_version="1.0", session={"id": name}, agent=name),
            new_event("input.text", text="Hello", session_id=name),
            new_event("response.create", session_id=name),
        ]
    answer = web.post(path, json=batch, headers=alice.headers)
    assert answer.status_code == httpx.codes.PAYMENT_REQUIRED
    assert not Response.objects.exists()


def frames_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the events of an array or of a stream."""
    if answer.headers["Content-Type"].startswith("application/json"):
        found: list[dict[str, Any]] = answer.json()
        return found
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


# --- On a chain ---


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
        demand.accepts = [one for one in demand.accepts if one.scheme == "exact"]
        made = client.create_payment_payload(demand)
        text = made.model_dump_json(by_alias=True, exclude_none=True)
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
        demand.accepts = [one for one in demand.accepts if one.scheme == "exact"]
        made = client.create_payment_payload(demand)
        text = made.model_dump_json(by_alias=True, exclude_none=True)
        sent = {
            "PAYMENT-SIGNATURE": base64.b64encode(text.encode()).decode(),
            "Idempotency-Key": "1",
        }
        answers = [ask(web, **sent) for _ in range(2)]
        refused = ask(elsewhere, **sent)
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
        demand.accepts = [one for one in demand.accepts if one.scheme == "exact"]
        made = client.create_payment_payload(demand)
        agent.pricing = {"per_answer": "0.25"}
        agent.save()
        text = made.model_dump_json(by_alias=True, exclude_none=True)
        payment = {"PAYMENT-SIGNATURE": base64.b64encode(text.encode()).decode()}
        answer = web.post("/uamp", json=batch, headers=payment)
    assert answer.status_code == httpx.codes.OK, answer.text
    assert [frame["type"] for frame in answer.json()].count("response.done") == 2
    assert "token" in decoded(answer.headers["PAYMENT-RESPONSE"])["extra"]
    wait_until(lambda: earned(agent) == "0.5")


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
    wait_until(lambda: str(token_lookup.resolve(change, agent="paid").available) == "0.00511")
    assert ledger.audit().clean
