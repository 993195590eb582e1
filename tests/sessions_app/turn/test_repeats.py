"""Events sent twice, or side by side, take nothing from events sent in between."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

import uamp
from agents_app.providers import scripts
from chat_app.models import Message
from payments_app import services as ledger
from payments_app.models import Transfer
from payments_app.money import Money
from payments_app.tokens import issuance
from sessions_app.models import Response, Session
from tests.client import TERMINAL, Frame, new_event, output_text, wait_until
from tests.live_server import person, quick_agent
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks
from upp import LLMRequest, ToolResultMessage
from upp.providers.scripted import Call, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from pytest_django import Settings

    from agents_app.selectors import AgentSpec
    from tests.client import UampClient
    from tests.live_server import Dial, Person

WEIGH = "tests.sessions_app.billing.test_token_payments.weigh"
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("left", "right")]


async def both(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Call two tools at once, then say what they answered."""
    last = request.messages[-1]
    if isinstance(last, ToolResultMessage):
        yield Text(" and ".join(str(result.result) for result in last.results))
    else:
        for tool in request.tools:
            yield Call(name=tool.name, arguments={})


def test_a_late_repeat_of_a_turn_takes_no_input_of_the_next_one(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    client.send("input.text", text="first")
    create = '{"type":"response.create","event_id":"evt_1"}'
    client.send_raw(create)
    client.until("response.done")
    client.send("input.text", text="second")
    client.send_raw(create)
    repeated = client.until("response.done")
    assert output_text(repeated[-1]) == "first"
    client.send("response.create")
    assert output_text(client.until("response.done")[-1]) == "second"
    texts = Message.objects.filter(role="user").order_by("seq").values_list("content", flat=True)
    assert list(texts) == ["first", "second"]


def repeated(client: UampClient, **response: Any) -> tuple[list[Frame], list[Frame]]:
    """Ask once and again with the same event; return the frames of both."""
    event = json.dumps(new_event("response.create", response=response))
    client.send_raw(event)
    first = client.until(*TERMINAL)
    client.send_raw(event)
    return first, client.until(*TERMINAL)


def output_of(frames: list[Frame]) -> list[Frame]:
    """Return the output that frames before the end add up to."""
    builder = uamp.OutputBuilder()
    for frame in frames[:-1]:
        event = uamp.decode(json.dumps(frame), sender="server")
        builder.add(event)
    return [msgspec.to_builtins(item) for item in builder.output]


def test_a_repeat_has_the_whole_answer_again(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, WEIGH]
    with model_server(
        call_chunks(("a", "weigh", '{"query": "it"}'), text="I look. "), text_chunks("5")
    ) as m:
        m.agent(tools=["weigh"])
        client = dial(alice)
        client.create_session(agent="model")
        client.send("input.text", text="Hello")
        first, again = repeated(client)
        assert again[-1] == first[-1]
        assert output_of(again) == output_of(first) == first[-1]["response"]["output"]
        assert len(m.requests) == 2


def test_a_repeat_asks_for_the_calls_at_which_the_answer_ended(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="tool-user", session={"tools": TOOLS[:1]})
    client.send("input.text", text="Hello")
    first, again = repeated(client, client_tools="end")
    (call,) = [frame for frame in first if frame["type"] == "tool.call"]
    (tool_call,) = [frame for frame in again if frame["type"] == "tool.call"]
    assert (tool_call["call_id"], tool_call["arguments"]) == (call["call_id"], call["arguments"])
    assert again[-1] == first[-1]


def test_a_repeat_does_not_ask_for_a_call_that_was_answered(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="tool-user", session={"tools": TOOLS[:1]})
    client.send("input.text", text="Hello")
    event = json.dumps(new_event("response.create"))
    client.send_raw(event)
    call = client.until("tool.call")[-1]
    client.send("tool.result", call_id=call["call_id"], result="1")
    client.until("response.done")
    client.send_raw(event)
    again = client.until("response.done")
    assert {frame["type"] for frame in again} == {
        "response.created",
        "response.delta",
        "response.done",
    }
    assert {f["delta"]["type"] for f in again if f["type"] == "response.delta"} == {"text"}


def test_a_repeat_has_the_text_of_an_answer_that_failed(dial: Dial, alice: Person) -> None:
    with model_server(text_chunks("So far", finish="content_filter")) as model:
        model.agent()
        client = dial(alice)
        client.create_session(agent="model")
        client.send("input.text", text="Hello")
        first, again = repeated(client)
        assert again[-1] == first[-1]
        assert again[-1]["type"] == "response.error"
        assert output_of(again) == [{"type": "text", "text": "So far"}]


def calls_in(frames: list[Frame]) -> dict[str, str]:
    """Return the tool calls in frames: names and call ids."""
    return {f["name"]: f["call_id"] for f in frames if f["type"] == "tool.call"}


def test_a_batch_has_all_calls_that_were_made_at_once(
    web: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scripts.SCRIPTS, "both", both)
    quick_agent("both", "both")
    config: dict[str, Any] = {"tools": TOOLS}
    for _ in range(5):
        events = [
            new_event("session.create", session=config, agent="both"),
            new_event("input.text", text="Go"),
            new_event("response.create"),
        ]
        frames = web.post("/uamp", json=events).json()
        assert set(calls_in(frames)) == {"left", "right"}
        session_id = frames[0]["session_id"]
        results = [
            new_event("tool.result", session_id=session_id, call_id=call_id, result=name)
            for name, call_id in calls_in(frames).items()
        ]
        done = web.post("/uamp", json=results).json()[-1]
        assert output_text(done) == "left and right"
    wait_until(lambda: not Response.objects.exclude(status="completed").exists())


def test_a_batch_names_the_sessions_that_it_creates(web: httpx.Client, alice: Person) -> None:
    events = [
        new_event("session.create", session={"id": "mine"}, agent="echo"),
        new_event("input.text", session_id="mine", text="Hello"),
        new_event("response.create", session_id="mine"),
    ]
    answer = web.post("/uamp", json=events, headers=alice.headers)
    assert answer.status_code == 200
    assert output_text(answer.json()[-1]) == "Hello"


@pytest.mark.parametrize("path", ["/uamp", "/uamp/stream"])
def test_a_batch_that_is_sent_again_under_its_key_is_paid_once(
    web: httpx.Client, alice: Person, path: str
) -> None:
    agent = quick_agent("paid", "echo")
    agent.pricing = {"per_answer": "0.25"}
    agent.save()
    account = ledger.account_of_user(alice.user.pk).id
    amount = Money.parse("10", "USD")
    ledger.top_up(key="x", account=account, amount=amount, provider="tests", external_id="x")
    token = issuance.issue(key="t", user_id=alice.user.pk, amount=Money.parse("1"), expires_in=600)
    turn: list[Frame] = [
        {"type": "session.create", "uamp_version": "1.0", "session": {}, "agent": "paid"},
        {"type": "input.text", "text": "once"},
        {"type": "response.create"},
    ]
    headers = {**alice.headers, "X-Payment-Token": token.token, "Idempotency-Key": "one"}

    def send_batch(events: list[Frame], **changed: str) -> str:
        answer = web.post(path, json=events, headers={**headers, **changed})
        assert answer.status_code == httpx.codes.OK, answer.text
        lines = answer.text.splitlines() if path.endswith("stream") else []
        reported = [line[6:] for line in lines if line.startswith("data: {")]
        frames = [json.loads(line) for line in reported] if reported else answer.json()
        (done,) = [frame for frame in frames if frame["type"] == "response.done"]
        return str(done["response_id"])

    first = send_batch(turn)
    assert send_batch(turn) == first
    assert Response.objects.count() == 1
    assert Message.objects.filter(role="user").count() == 1
    # Another body, another key, another person: another request.
    other: list[Frame] = [*turn[:1], {"type": "input.text", "text": "twice"}, turn[2]]
    others = {send_batch(other), send_batch(turn, **{"Idempotency-Key": "two"})}
    bob = person("bob")
    others.add(send_batch(turn, **bob.headers))
    assert len(others | {first}) == 4
    wait_until(lambda: Transfer.objects.filter(kind="answer").count() == 4)


@pytest.fixture
def paid(demo: object, alice: Person) -> Callable[..., str]:
    """Make an agent that costs a quarter; return a function that issues tokens of a dollar."""
    agent = quick_agent("paid", "echo")
    agent.pricing = {"per_answer": "0.25"}
    agent.save()
    account = ledger.account_of_user(alice.user.pk).id
    amount = Money.parse("10", "USD")
    ledger.top_up(key="x", account=account, amount=amount, provider="tests", external_id="x")

    def issue(key: str) -> str:
        dollar = Money.parse("1")
        return issuance.issue(key=key, user_id=alice.user.pk, amount=dollar, expires_in=600).token

    return issue


SAID: list[Frame] = [
    {"type": "session.create", "uamp_version": "1.0", "session": {}, "agent": "paid"},
    {"type": "input.text", "text": "once"},
    {"type": "response.create"},
]


def response_of(answer: httpx.Response) -> str:
    """Return the response that a batch led to, and check its answer."""
    assert answer.status_code == httpx.codes.OK, answer.text
    (done,) = [frame for frame in answer.json() if frame["type"] == "response.done"]
    return str(done["response_id"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("where", ["header", "query", "session", "input"])
def test_a_visitors_batch_that_is_sent_again_is_paid_once(
    web: httpx.Client, paid: Callable[..., str], where: str
) -> None:
    secret = paid("one")

    def send_batch(token: str = secret, key: str = "one", text: str = "once") -> str:
        create, input_event, ask = SAID
        input_event = {**input_event, "text": text}
        headers, path = {"Idempotency-Key": key}, "/uamp"
        match where:
            case "header":
                headers["X-PAYMENT"] = token
            case "query":
                path = f"/uamp?payment_token={token}"
            case "session":
                create = {**create, "payment_token": token}
            case "input":
                input_event = {**input_event, "payment_token": token}
        return response_of(web.post(path, json=[create, input_event, ask], headers=headers))

    first = send_batch()
    assert send_batch() == first
    assert Response.objects.count() == 1
    others = {send_batch(paid("two")), send_batch(key="two"), send_batch(text="twice")}
    assert len(others | {first}) == 4
    wait_until(lambda: Transfer.objects.filter(kind="answer").count() == 4)


def test_a_visitor_without_a_payment_receives_nothing_of_anothers_batch(
    web: httpx.Client, paid: Callable[..., str]
) -> None:
    quick_agent("free", "echo")
    key = {"Idempotency-Key": "1"}
    free = [{**SAID[0], "agent": "free"}, *SAID[1:]]
    answers = [web.post("/uamp", json=free, headers=key) for _ in range(2)]
    assert len({response_of(answer) for answer in answers}) == 2
    response_of(web.post("/uamp", json=SAID, headers={**key, "X-PAYMENT": paid("one")}))
    for payment in ({}, {"X-PAYMENT": "nonsense"}, {"X-PAYMENT": "ptok_missing"}):
        refused = web.post("/uamp", json=SAID, headers={**key, **payment})
        assert refused.status_code == httpx.codes.PAYMENT_REQUIRED
    assert Response.objects.count() == 3


def test_a_visitor_chooses_no_session_id(web: httpx.Client, paid: Callable[..., str]) -> None:
    chosen = f"batch-{'0' * 40}-0"
    create = {**SAID[0], "session": {"id": chosen}}
    headers = {"Idempotency-Key": "1", "X-PAYMENT": paid("one")}
    answers = [web.post("/uamp", json=[create, *SAID[1:]], headers=headers) for _ in range(2)]
    assert len({response_of(answer) for answer in answers}) == 1
    assert not Session.objects.filter(pk=chosen).exists()


async def gather(send: Callable[[httpx.AsyncClient], Any], base: str) -> list[httpx.Response]:
    """Send the same request four times at once."""
    async with httpx.AsyncClient(base_url=base, timeout=30) as client:
        return list(await asyncio.gather(*(send(client) for _ in range(4))))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", ["/uamp", "/uamp/stream"])
@pytest.mark.parametrize("is_visitor", [True, False])
def test_a_batch_sent_twice_at_once_is_answered_or_may_be_repeated(
    web: httpx.Client, alice: Person, paid: Callable[..., str], path: str, *, is_visitor: bool
) -> None:
    headers = {"Idempotency-Key": "one", "X-Payment-Token": paid("one")}
    if not is_visitor:
        headers |= alice.headers

    def send(client: httpx.AsyncClient) -> Any:
        return client.post(path, json=SAID, headers=headers)

    answers = asyncio.run(gather(send, str(web.base_url)))
    refused = [answer for answer in answers if answer.status_code != httpx.codes.OK]
    assert len(refused) < len(answers)
    for answer in refused:
        assert answer.status_code == httpx.codes.CONFLICT, answer.text
        assert answer.json()["code"] == "idempotency_key_in_use"
        assert answer.headers["Retry-After"] == "1"
    for answer in answers:
        if answer not in refused:
            assert "response.done" in answer.text
            assert "session.error" not in answer.text
    again = web.post("/uamp", json=SAID, headers=headers)
    assert response_of(again) == Response.objects.get().pk
    wait_until(lambda: Transfer.objects.filter(kind="answer").count() == 1)


def test_a_batch_for_another_agent_is_another_batch(
    web: httpx.Client, paid: Callable[..., str]
) -> None:
    quick_agent("other", "echo")
    turn = [{key: value for key, value in SAID[0].items() if key != "agent"}, *SAID[1:]]
    headers = {"Idempotency-Key": "one", "X-Payment-Token": paid("one")}
    answers = {
        path: response_of(web.post(path, json=turn, headers={**headers, **agent_header}))
        for path, agent_header in (
            ("/agents/paid/uamp", {}),
            ("/agents/other/uamp", {}),
            ("/uamp", {"X-Agent-Id": "paid"}),
        )
    }
    assert answers["/agents/paid/uamp"] == answers["/uamp"] != answers["/agents/other/uamp"]
    assert Response.objects.get(pk=answers["/agents/other/uamp"]).agent.name == "other"
