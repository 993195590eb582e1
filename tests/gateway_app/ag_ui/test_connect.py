"""Clients that return to a thread: its messages, its state, and the answer that runs."""

import json
from typing import Any

import httpx
import pytest

from sessions_app.models import Response
from tests.client import wait_until
from tests.conftest import ServerAddress
from tests.gateway_app.ag_ui.runs import check_order, kinds_of, run, run_input, text_of, the
from tests.live_server import Dial, Person, quick_agent, shared_chat
from tests.sessions_app.turn.team_tools import order

pytestmark = pytest.mark.any_database

CONNECT = "/connect"


def connect(
    web: httpx.Client, agent: str, person: Person | None, **members: Any
) -> list[dict[str, Any]]:
    """Return to the thread t1."""
    more = members.pop("more", None)
    body = {"threadId": "t1", "runId": "back", "messages": [], **members}
    return run(web, agent, body, person, path=CONNECT, more=more)


def folded(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the ids and texts of the messages that a client makes of a stream."""
    texts: dict[str, str] = {}
    for event in events:
        if event["type"] in {"TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"}:
            texts[event["messageId"]] = texts.get(event["messageId"], "") + event["delta"]
    return list(texts.items())


def test_a_thread_comes_back_with_the_ids_that_its_runs_had(
    web: httpx.Client, alice: Person
) -> None:
    first = run(web, "thinker", run_input("Hello there"), alice)

    events = connect(web, "thinker", alice)

    assert kinds_of(events) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    question, *answered = the(events, "MESSAGES_SNAPSHOT")["messages"]
    assert (question["role"], question["content"]) == ("user", "Hello there")
    assert [(message["id"], message["content"]) for message in answered] == folded(first)
    assert [message["role"] for message in answered] == ["reasoning", "assistant"]


def test_calls_and_state_come_back(web: httpx.Client, alice: Person) -> None:
    first = run(web, "checklist", run_input("milk"), alice)

    events = connect(web, "checklist", alice)

    assert the(events, "STATE_SNAPSHOT")["snapshot"] == {"items": ["milk"]}
    _, call, result, answer = the(events, "MESSAGES_SNAPSHOT")["messages"]
    started = the(first, "TOOL_CALL_START")
    assert call["toolCalls"][0]["id"] == started["toolCallId"]
    assert json.loads(call["toolCalls"][0]["function"]["arguments"])["version"] == 0
    assert (result["role"], result["id"]) == ("tool", the(first, "TOOL_CALL_RESULT")["messageId"])
    assert answer["content"] == text_of(first)


def test_connecting_joins_a_running_answer_where_it_is(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    agent = quick_agent("worker", "doer")
    agent.tools = ["set_state"]
    agent.save()
    task = order(think="Let me see. ", say="I count. ", words=40)
    key = {**alice.headers, "Idempotency-Key": "k1"}
    with (
        httpx.Client(base_url=demo.http, timeout=15, trust_env=False) as client,
        client.stream("POST", "/agents/worker/agui", json=run_input(task), headers=key) as stream,
    ):
        lines = stream.iter_lines()
        while "word3" not in next(lines):
            pass
    # The client has left, and comes back while the answer goes on.
    events = connect(web, "worker", alice)

    assert kinds_of(events) == [
        "RUN_STARTED",
        "MESSAGES_SNAPSHOT",
        *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "REASONING_END"),
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_END"),
        "RUN_FINISHED",
    ]
    assert [message["role"] for message in the(events, "MESSAGES_SNAPSHOT")["messages"]] == ["user"]
    assert text_of(events) == "I count. " + "".join(f"word{n} " for n in range(40))
    again = the(connect(web, "worker", alice), "MESSAGES_SNAPSHOT")["messages"]
    assert [(message["id"], message["content"]) for message in again[1:]] == folded(events)
    assert Response.objects.get().status == "completed"


def test_a_client_that_leaves_again_cancels_nothing(demo: ServerAddress, alice: Person) -> None:
    key = {**alice.headers, "Idempotency-Key": "k1"}
    with httpx.Client(base_url=demo.http, timeout=15, trust_env=False) as client:
        for path in ("", CONNECT):
            with client.stream(
                "POST", f"/agents/slow/agui{path}", json=run_input("count"), headers=key
            ) as stream:
                lines = stream.iter_lines()
                while "TEXT_MESSAGE_CONTENT" not in next(lines):
                    pass
    response = Response.objects.get()
    assert response.cancel_requested_at is None
    wait_until(lambda: Response.objects.get().status == "completed")


def test_what_a_thread_waits_for_is_an_interrupt_of_the_run_that_returns(
    web: httpx.Client, alice: Person
) -> None:
    first = run(web, "paid-echo", run_input("Hello there"), alice)

    events = connect(web, "paid-echo", alice)

    assert events[-1]["outcome"] == first[-1]["outcome"]
    assert [message["role"] for message in the(events, "MESSAGES_SNAPSHOT")["messages"]] == ["user"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("who", ["bob", "visitor", "other thread", "other agent"])
def test_a_thread_is_its_own_persons(
    web: httpx.Client, alice: Person, bob: Person, who: str
) -> None:
    run(web, "echo", run_input("a secret"), alice)
    person = {"bob": bob, "visitor": None}.get(who, alice)
    agent = "thinker" if who == "other agent" else "echo"

    events = connect(web, agent, person, threadId="t2" if who == "other thread" else "t1")

    assert kinds_of(events) == ["RUN_STARTED", "RUN_FINISHED"]


def test_a_chat_comes_back_with_what_its_members_said(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob)
    headers = {"X-Chat-Id": chat.pk}
    run(web, "echo", run_input("from alice"), alice, more=headers)
    other = dial(bob)
    other.create_session(chat=chat.pk)
    other.answer("@echo from bob")

    events = connect(web, "echo", alice, more=headers)

    texts = [
        (message.get("name"), message["content"])
        for message in the(events, "MESSAGES_SNAPSHOT")["messages"]
    ]
    assert texts == [
        ("alice", "from alice"),
        ("echo", "from alice"),
        ("bob", "@echo from bob"),
        ("echo", "from bob"),
    ]
    # A person who is in no chat finds nothing there, and one who left finds nothing more.
    body = {"threadId": "t1", "runId": "back", "messages": []}
    foreign = web.post(
        f"/agents/echo/agui{CONNECT}", json=body, headers={**mallory.headers, **headers}
    )
    check_order([json.loads(line[6:]) for line in foreign.text.splitlines() if line[:5] == "data:"])
    assert "alice" not in foreign.text
