"""Usage, cost and log are those of the question, whichever route asked it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from eth_account import Account
from x402 import x402ClientSync
from x402.http.utils import decode_payment_required_header
from x402.mechanisms.evm.exact.client import ExactEvmScheme

from agents_app.providers import scripts
from payments_app.spending.approvals import approve
from payments_app.tokens import issuance
from tests.gateway_app.equality import http_routes as http
from tests.gateway_app.equality import message_routes as anthropic
from tests.gateway_app.equality import response_routes as openai
from tests.gateway_app.equality import socket_routes as sockets
from tests.gateway_app.equality import task_routes as tasks
from tests.gateway_app.equality.questions import RESULT, Place, Question, Route
from tests.gateway_app.equality.records import earned, log_of, new_responses, usage_of
from tests.payments_app.x402 import facilitator
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from upp.providers.scripted import Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    import httpx
    from pytest_django import Settings

    from agents_app.models import Agent
    from agents_app.selectors import AgentSpec
    from tests.conftest import ServerAddress
    from tests.live_server import Person
    from upp import LLMRequest

# All routes in one test: a server each would cost more than the questions.
pytestmark = pytest.mark.timeout(180)

NATIVE = "UAMP WebSocket"
ROUTES = {
    NATIVE: Route(ask=sockets.uamp_socket),
    "UAMP batch": Route(ask=http.batch, has_402=True),
    "UAMP batch, streamed": Route(ask=http.streamed_batch, has_402=True),
    "UAMP events and SSE": Route(ask=http.events_and_stream),
    "Completions": Route(ask=http.completions, has_402=True),
    "Completions, streamed": Route(ask=http.streamed_completions, has_402=True),
    "Responses": Route(ask=openai.responses, has_402=True),
    "Responses, streamed": Route(ask=openai.streamed_responses, has_402=True),
    "Responses in the background": Route(
        ask=openai.background_responses, has_tools=False, has_402=True
    ),
    "Messages": Route(ask=anthropic.messages, has_402=True),
    "Messages, streamed": Route(ask=anthropic.streamed_messages, has_402=True),
    "AG-UI": Route(ask=http.ag_ui, has_402=True),
    "A2A 1.0 JSON-RPC": Route(ask=tasks.RPC.ask),
    "A2A 0.3 JSON-RPC": Route(ask=tasks.OLD_RPC.ask),
    "A2A 1.0 REST": Route(ask=tasks.REST.ask),
    "A2A 0.3 REST": Route(ask=tasks.OLD_REST.ask),
    "/tasks": Route(ask=http.spec_tasks, has_tools=False, has_402=True),
    "ACP": Route(ask=sockets.acp, has_tools=False),
    "ACP of webagents": Route(ask=sockets.acp_of_webagents, has_tools=False, has_stop=False),
    "Realtime GA": Route(ask=sockets.realtime(sockets.GA)),
    "Realtime beta": Route(ask=sockets.realtime(sockets.BETA)),
}
PRICES = {"per_answer": "0.02", "input_per_1k": "0.7", "output_per_1k": "1.3"}
TEXT = "How many cats are there?"
HALF = "One two three"


@pytest.fixture
def place(demo: ServerAddress, web: httpx.Client) -> Place:
    """Return the server, and a client of it."""
    return Place(server=demo, web=web)


async def halting(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Say a few words and then nothing for a minute."""
    for piece in HALF.partition(" "):
        yield Text(piece)
    yield Pause(60)


def asked_by_all(
    place: Place,
    agent: Agent,
    question_for: Callable[[str], Question],
    routes: Mapping[str, Route] = ROUTES,
) -> dict[str, Any]:
    """Ask by each of the routes; return what was shown, used, earned and logged, by route."""
    records: dict[str, Any] = {}
    seen_ids: set[str] = set()
    for name, route in routes.items():
        before, question = earned(agent), question_for(name)
        answer = route.ask(place, question)
        gain = earned(agent) - before
        responses = list(new_responses(seen_ids))
        used = usage_of(responses)
        if answer.tokens is not None:
            stored_tokens = (used["input_tokens"], used["output_tokens"], used["total_tokens"])
            assert answer.tokens == stored_tokens, name
        records[name] = {"text": answer.text, "usage": used, "earned": str(gain)}
        if not question.has_tool:
            (response,) = responses
            records[name]["log"] = log_of(response.chat_id)
    return records


def assert_equal(records: dict[str, Any]) -> dict[str, Any]:
    """Assert that all routes had the outcome of the native one, and return that.

    What was earned is what the usage says.
    """
    native: dict[str, Any] = records[NATIVE]
    assert native["usage"]["cost"]["total_cost"] == float(native["earned"])
    assert {name: record for name, record in records.items() if record != native} == {}
    return native


def agreed(who: Person, agent: Agent, **members: Any) -> Callable[[str], Question]:
    """Return the question of a person who has agreed to pay for the agent's answers."""
    approve(rich(who).user.pk, agent.pk, usd("5"))
    question = Question(agent=agent.name, text=TEXT, headers=who.headers, **members)
    return lambda _route: question


def test_an_answer_paid_from_the_balance(place: Place, alice: Person) -> None:
    agent = priced("dear", **PRICES)

    native = assert_equal(asked_by_all(place, agent, agreed(alice, agent)))

    assert (native["text"], native["earned"]) == (TEXT, "0.03")
    assert [entry["event"] for entry in native["log"] if "event" in entry] == [
        "message.created",
        "response.created",
        "response.done",
        "message.created",
    ]


def test_a_tool_of_the_server(place: Place, alice: Person, settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = ["tests.sessions_app.billing.test_token_payments.weigh"]
    agent = priced("weigher", "tool-user", **PRICES, tools={"weigh": "0.25"})
    agent.tools = ["weigh"]
    agent.save()

    native = assert_equal(asked_by_all(place, agent, agreed(alice, agent)))

    assert native["text"].endswith("grams")
    assert float(native["earned"]) > 0.25


def test_a_tool_of_the_client(place: Place, alice: Person) -> None:
    """A call ends the answer on some routes, so that the agent takes nothing for each answer."""
    agent = priced("user", "tool-user", input_per_1k="0.7", output_per_1k="1.3")
    able = {name: route for name, route in ROUTES.items() if route.has_tools}

    native = assert_equal(asked_by_all(place, agent, agreed(alice, agent, has_tool=True), able))

    assert native["text"] == "The tool answered: three cats"
    assert native["usage"]["input_tokens"] == 2 * len(TEXT.split()) + len(RESULT.split())


def test_an_answer_that_is_stopped(
    place: Place, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scripts.SCRIPTS, "halting", halting)
    agent = priced("halting", "halting", **PRICES)
    able = {name: route for name, route in ROUTES.items() if route.has_stop}

    native = assert_equal(asked_by_all(place, agent, agreed(alice, agent, stop_after=HALF), able))

    assert native["text"] == HALF
    assert "response.cancelled" in {entry.get("event") for entry in native["log"]}


def test_an_answer_paid_with_a_token_when_it_is_asked_for(place: Place, alice: Person) -> None:
    """The token is sent in the protocol's own words: a header, a member, an event, metadata."""
    agent = priced("dear", **PRICES)
    user_id = rich(alice, "200").user.pk

    def paying(route: str) -> Question:
        issued = issuance.issue(key=route, user_id=user_id, amount=usd("5"), expires_in=600)
        return Question(agent="dear", text=TEXT, headers=alice.headers, token=issued.token)

    native = assert_equal(asked_by_all(place, agent, paying))

    assert (native["text"], native["earned"]) == (TEXT, "0.03")


def test_an_answer_paid_on_a_chain(place: Place, alice: Person, settings: Settings) -> None:
    """The routes that take `PAYMENT-SIGNATURE`, beside the native one, which has no header."""
    agent = priced("dear", **PRICES)
    agreed(alice, agent)
    settings.UAMP_X402_PAY_TO = "0x" + "ab" * 20
    settings.UAMP_ANONYMOUS_RESPONSES_PER_MINUTE = 1000
    with facilitator.running() as chain:
        settings.UAMP_X402_FACILITATOR = chain.url

        def paying(route: str) -> Question:
            paid = signed_payment(place, "dear") if ROUTES[route].has_402 else alice.headers
            return Question(agent="dear", text=TEXT, headers=paid)

        able = {
            name: able_route
            for name, able_route in ROUTES.items()
            if able_route.has_402 or name == NATIVE
        }
        records = asked_by_all(place, agent, paying, able)
        assert chain.asked["settle"] == len(able) - 1
    del records[NATIVE]["log"]  # with the name of its person
    logs = [record.pop("log") for record in records.values() if "log" in record]

    assert assert_equal(records)["earned"] == "0.03"
    assert logs == [logs[0]] * len(logs)


def signed_payment(place: Place, agent: str) -> dict[str, str]:
    """Return the header of a visitor who has signed what the agent demands."""
    body = {"messages": [{"role": "user", "content": TEXT}]}
    refused = place.web.post(f"/agents/{agent}/chat/completions", json=body)
    demand: Any = decode_payment_required_header(refused.headers["PAYMENT-REQUIRED"])
    demand.accepts = [offer for offer in demand.accepts if offer.scheme == "exact"]
    client = x402ClientSync()
    client.register("eip155:*", ExactEvmScheme(Account.create()))
    payment = client.create_payment_payload(demand)
    text = payment.model_dump_json(by_alias=True, exclude_none=True)
    return {"PAYMENT-SIGNATURE": base64.b64encode(text.encode()).decode()}
