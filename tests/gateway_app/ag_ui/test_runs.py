"""AG-UI runs by HTTP on the real server."""

from typing import Any

import httpx
import pytest

from agents_app.models import Agent
from payments_app.models import Hold
from payments_app.tokens import issuance
from sessions_app.models import Response, Session
from tests.client import wait_until
from tests.conftest import ServerAddress
from tests.gateway_app.ag_ui.pictures import picture
from tests.gateway_app.ag_ui.runs import run, run_input, text_of
from tests.live_server import Dial, Person, shared_chat
from tests.sessions_app.billing.paid_agents import rich, usd

pytestmark = pytest.mark.any_database

SEARCH = {"name": "search", "description": "Find", "parameters": {"type": "object"}}


def test_a_run_thinks_and_answers(web: httpx.Client, alice: Person) -> None:
    events = run(web, "thinker", run_input("Hello there"), alice)

    kinds = [event["type"] for event in events if "CONTENT" not in event["type"]]
    assert kinds == [
        "RUN_STARTED",
        *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "REASONING_END"),
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_END"),
        "RUN_FINISHED",
    ]
    assert text_of(events) == "I thought about it. You asked: Hello there"
    assert events[-1]["outcome"] == {"type": "success"}
    assert events[-1]["usage"][0]["totalTokens"] == 32


def test_a_thread_is_one_session_of_its_person(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    run(web, "echo", run_input("one"), alice)
    run(web, "echo", run_input("two", run="r2"), alice)
    run(web, "echo", run_input("three"), bob)

    assert Session.objects.filter(user=alice.user, transport="ag-ui").count() == 1
    assert Session.objects.filter(user=bob.user, transport="ag-ui").count() == 1


def test_a_tool_of_the_page_ends_the_run_and_its_result_begins_the_next(
    web: httpx.Client, alice: Person
) -> None:
    first = run(web, "tool-user", run_input("find cats", tools=[SEARCH]), alice)
    call_id = first[-1]["outcome"]["pendingToolCallIds"][0]
    arguments = next(e["delta"] for e in first if e["type"] == "TOOL_CALL_ARGS")
    second = run_input("find cats", run="r2", tools=[SEARCH])
    call = {"id": call_id, "type": "function"}
    second["messages"] += [
        {
            "id": "m2",
            "role": "assistant",
            "toolCalls": [{**call, "function": {"name": "search", "arguments": arguments}}],
        },
        {"id": "m3", "role": "tool", "toolCallId": call_id, "content": "three cats"},
    ]

    events = run(web, "tool-user", second, alice)

    assert text_of(events) == "The tool answered: three cats"
    assert "TOOL_CALL_START" not in {event["type"] for event in events}


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_call_that_needs_approval_interrupts_the_run_until_it_is_allowed(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    body = {**run_input(""), "messages": [picture()]}
    first = run(web, "careful", body, alice)
    interrupt = first[-1]["outcome"]["interrupts"][0]
    assert interrupt["reason"] == "tool_approval"
    answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}
    foreign = web.post(
        "/agents/careful/agui", json={**body, "resume": [answer]}, headers=bob.headers
    )
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (404, "unknown_session")

    events = run(web, "careful", {**body, "runId": "r2", "resume": [answer]}, alice)

    kinds = [event["type"] for event in events]
    assert "TOOL_CALL_START" not in kinds
    assert kinds.count("TOOL_CALL_RESULT") == 1
    assert text_of(events).startswith("The new picture is black and white")
    assert Response.objects.count() == 1
    # The same answer again finds a response that has ended.
    again = run(web, "careful", {**body, "runId": "r3", "resume": [answer]}, alice)
    assert [event["type"] for event in again] == ["RUN_STARTED", "RUN_FINISHED"]


def test_a_price_interrupts_the_run_until_a_token_pays(web: httpx.Client, alice: Person) -> None:
    first = run(web, "paid-echo", run_input("Hello there"), alice)
    interrupt = first[-1]["outcome"]["interrupts"][0]
    assert interrupt["reason"] == "payment_required"
    assert text_of(first) == ""
    user_id = rich(alice).user.pk
    issued = issuance.issue(key="token", user_id=user_id, amount=usd("1"), expires_in=600)
    answer = {
        "interruptId": interrupt["id"],
        "status": "resolved",
        "payload": {"token": issued.token},
    }

    events = run(web, "paid-echo", run_input("", run="r2", resume=[answer]), alice)

    assert text_of(events) == "Hello there"
    assert events[-1]["outcome"] == {"type": "success"}
    assert Response.objects.count() == 1


def test_a_token_that_is_refused_leaves_the_run_to_another(
    web: httpx.Client, alice: Person
) -> None:
    first = run(web, "paid-echo", run_input("Hello there"), alice)
    interrupt = first[-1]["outcome"]["interrupts"][0]
    user_id = rich(alice).user.pk
    issued = issuance.issue(key="token", user_id=user_id, amount=usd("1"), expires_in=600)

    def resume(run_id: str, token: str) -> list[dict[str, Any]]:
        answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"token": token}}
        return run(web, "paid-echo", run_input("", run=run_id, resume=[answer]), alice)

    refused = resume("r2", "unknown")
    assert refused[-1]["outcome"]["interrupts"] == [interrupt]
    errors = [event for event in refused if event.get("name") == "payment.error"]
    assert [error["value"]["code"] for error in errors] == ["token_invalid"]

    events = resume("r3", issued.token)
    assert text_of(events) == "Hello there"
    assert events[-1]["outcome"] == {"type": "success"}
    assert Response.objects.count() == 1


@pytest.mark.parametrize("terms", [{"network": "evil"}, {"currency": "JPY"}, {"amount": "0.001"}])
def test_a_payment_on_other_terms_leaves_the_run_unpaid(
    web: httpx.Client, alice: Person, terms: dict[str, str]
) -> None:
    first = run(web, "paid-echo", run_input("Hello there"), alice)
    interrupt = first[-1]["outcome"]["interrupts"][0]
    user_id = rich(alice).user.pk
    issued = issuance.issue(key="token", user_id=user_id, amount=usd("1"), expires_in=600)
    due = interrupt["metadata"]["requirements"]

    def resume(run_id: str, **payload: str) -> list[dict[str, Any]]:
        payload = {"token": issued.token, **payload}
        answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
        return run(web, "paid-echo", run_input("", run=run_id, resume=[answer]), alice)

    refused = resume("r2", **terms)
    assert refused[-1]["outcome"]["interrupts"] == [interrupt]
    errors = [event for event in refused if event.get("name") == "payment.error"]
    assert [error["value"]["code"] for error in errors] == ["payment_failed"]
    assert not Hold.objects.exists()

    same = {"network": "uamp", "currency": due["currency"], "amount": due["amount"]}
    assert resume("r3", **same)[-1]["outcome"] == {"type": "success"}


def test_a_run_may_join_a_chat(web: httpx.Client, dial: Dial, alice: Person, bob: Person) -> None:
    chat = shared_chat(alice, bob)
    reader = dial(bob)
    reader.create_session(chat=chat.pk)

    answer = web.post(
        "/agents/echo/agui",
        json=run_input("Hello there"),
        headers={**alice.headers, "X-Chat-Id": chat.pk},
    )

    assert "RUN_FINISHED" in answer.text
    assert reader.until("response.done")[-1]["response"]["output"][0]["text"] == "Hello there"


def test_a_failure_ends_the_run_as_an_error(web: httpx.Client) -> None:
    events = run(web, "fail", run_input("hello"))

    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "provider_error")


def test_a_page_that_leaves_stops_the_answer(demo: ServerAddress, alice: Person) -> None:
    with (
        httpx.Client(base_url=demo.http, timeout=15, trust_env=False) as client,
        client.stream(
            "POST", "/agents/slow/agui", json=run_input("count"), headers=alice.headers
        ) as stream,
    ):
        lines = stream.iter_lines()
        while "TEXT_MESSAGE_CONTENT" not in next(lines):
            pass

    wait_until(lambda: Response.objects.get().status == "cancelled")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"threadId": 1}, "invalid_event"),
        ({"runId": ""}, "invalid_event"),
        ({"messages": [{"id": "m", "role": "king", "content": ""}]}, "invalid_event"),
        ({"messages": [{"id": "m", "role": "user", "content": [{"type": "image"}]}]}, None),
        ({"resume": [{"interruptId": "x", "status": "resolved"}]}, "invalid_event"),
        ({"resume": [{"interruptId": "tool_approval:a:b", "status": "resolved"}]}, None),
        ({"tools": [{"name": ""}]}, "invalid_event"),
    ],
)
def test_bad_input_is_refused_with_a_code(
    web: httpx.Client, alice: Person, changes: dict[str, Any], code: str | None
) -> None:
    body = {**run_input("hello"), **changes}

    answer = web.post("/agents/echo/agui", json=body, headers=alice.headers)

    assert 400 <= answer.status_code < 500, answer.text
    assert code in {None, answer.json()["error"]["code"]}
    assert not Response.objects.exists()


def test_an_answer_that_comes_too_late_does_not_stop_the_response(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    with (
        httpx.Client(base_url=demo.http, timeout=15, trust_env=False) as client,
        client.stream(
            "POST", "/agents/slow/agui", json=run_input("count"), headers=alice.headers
        ) as stream,
    ):
        lines = stream.iter_lines()
        while "TEXT_MESSAGE_CONTENT" not in next(lines):
            pass
        response = Response.objects.get()
        answer = {"interruptId": f"tool_approval:{response.pk}:call_1", "status": "resolved"}

        late = web.post(
            "/agents/slow/agui", json=run_input("", resume=[answer]), headers=alice.headers
        )

        assert late.status_code == 404
        for _ in range(5):
            assert "RUN_FINISHED" not in next(lines)
        response.refresh_from_db()
        assert response.cancel_requested_at is None


def test_only_post_runs_an_agent(web: httpx.Client) -> None:
    answer = web.get("/agents/echo/agui")

    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_a_disabled_agent_is_not_there(web: httpx.Client) -> None:
    Agent.objects.filter(name="echo").update(is_enabled=False)

    assert web.post("/agents/echo/agui", json=run_input("hello")).status_code == 404
