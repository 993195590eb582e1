"""Waits of runs: approvals of delegated work, payments that never come, and odd clients."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agents_app.models import Agent
from chat_app.log import fanout
from payments_app.tokens import issuance
from sessions_app.models import Response
from tests.client import wait_until
from tests.gateway_app.ag_ui.pictures import picture
from tests.gateway_app.ag_ui.runs import kinds_of, run, run_input, text_of, the
from tests.live_server import Person, quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import rich, usd
from tests.sessions_app.turn.team_tools import order
from tests.threads import thread_pool

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.any_database


def answer_to(interrupt: dict[str, Any], **payload: Any) -> dict[str, Any]:
    """Return the answer to an interrupt."""
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


@pytest.mark.usefixtures("celery_worker_thread")
@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_of_delegated_work_interrupts_the_run(
    web: httpx.Client, alice: Person, bob: Person, *, approved: bool
) -> None:
    Agent.objects.filter(name="studio").update(delegates=["careful"])
    body = {**run_input(""), "messages": [picture()]}

    first = run(web, "studio", body, alice)

    (interrupt,) = first[-1]["outcome"]["interrupts"]
    assert interrupt["reason"] == "tool_approval"
    assert (interrupt["metadata"]["agent"], interrupt["metadata"]["name"]) == (
        "careful",
        "edit_picture",
    )
    started = the(first, "SUBAGENT_STARTED")
    assert started["name"] == "careful"
    suspended = the(first, "SUBAGENT_FINISHED")
    assert suspended["outcome"] == {"type": "suspended", "interruptIds": [interrupt["id"]]}
    # A client that comes back finds it too, and a stranger cannot answer it.
    back = {"threadId": "t1", "runId": "back", "messages": []}
    assert run(web, "studio", back, alice, path="/connect")[-1]["outcome"] == first[-1]["outcome"]
    resume = {**body, "resume": [answer_to(interrupt, approved=approved)]}
    foreign = web.post("/agents/studio/agui", json=resume, headers=bob.headers)
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (404, "unknown_session")

    events = run(web, "studio", {**resume, "runId": "r2"}, alice)

    assert events[-1]["outcome"] == {"type": "success"}
    assert kinds_of(events).count("TOOL_CALL_RESULT") == (2 if approved else 1)
    assert Response.objects.filter(status="completed").count() == 2
    edited = Response.objects.get(agent__name="careful").output
    results = [item["tool_result"] for item in edited if item["type"] == "tool_result"]
    assert [result.get("is_error", False) for result in results] == [not approved]


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_question_about_the_answer_of_another_member_is_not_an_interrupt(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    worker = quick_agent("worker", "doer")
    worker.tools = worker.approvals = ["edit_picture"]
    worker.save()
    chat = shared_chat(alice, bob, agents=("worker", "paid-echo"))
    headers = {"X-Chat-Id": chat.pk}
    task = order(call="edit_picture", arguments={"content_id": "x"})
    by_bob = run(web, "worker", run_input(task), bob, more=headers)
    assert by_bob[-1]["outcome"]["interrupts"][0]["reason"] == "tool_approval"
    run(web, "paid-echo", run_input("Hello there"), alice, more=headers)

    back = {"threadId": "t1", "runId": "back", "messages": []}
    events = run(web, "paid-echo", back, alice, path="/connect", more=headers)

    reasons = [interrupt["reason"] for interrupt in events[-1]["outcome"]["interrupts"]]
    assert reasons == ["payment_required"]


def test_a_payment_that_never_comes_fails_the_run_that_returns(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_PAYMENT_SECONDS = 0.5
    first = run(web, "paid-echo", run_input("Hello there"), alice)
    interrupt = first[-1]["outcome"]["interrupts"][0]
    assert interrupt["expiresAt"]
    wait_until(lambda: Response.objects.get().status == "failed")
    issued = issuance.issue(
        key="token", user_id=rich(alice).user.pk, amount=usd("1"), expires_in=600
    )

    resume = [answer_to(interrupt, token=issued.token)]
    late = run(web, "paid-echo", run_input("", run="r2", resume=resume), alice)

    assert (late[-1]["type"], late[-1]["code"]) == ("RUN_ERROR", "payment_timeout")
    # The thread goes on with the next run.
    back = {"threadId": "t1", "runId": "back", "messages": []}
    events = run(web, "paid-echo", back, alice, path="/connect")
    assert kinds_of(events) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert Response.objects.count() == 1


def test_the_same_run_twice_at_once_starts_one_answer(web: httpx.Client, alice: Person) -> None:
    headers = {**alice.headers, "Idempotency-Key": "k1"}

    def send(_: int) -> httpx.Response:
        return web.post("/agents/thinker/agui", json=run_input("Hello there"), headers=headers)

    with thread_pool(6) as pool:
        answers = list(pool.map(send, range(6)))

    assert Response.objects.count() == 1
    assert {answer.status_code for answer in answers} <= {200, 409}
    early = [answer for answer in answers if answer.status_code == 409]
    assert all(answer.headers["Retry-After"] for answer in early)
    again = run(web, "thinker", run_input("Hello there"), alice, more={"Idempotency-Key": "k1"})
    assert text_of(again) == "I thought about it. You asked: Hello there"
    assert Response.objects.count() == 1


def test_an_answer_that_is_written_anew_ends_the_run_as_an_error(
    demo: ServerAddress, alice: Person
) -> None:
    quick_agent("worker", "doer")
    with (
        httpx.Client(base_url=demo.http, timeout=15, trust_env=False) as client,
        client.stream(
            "POST", "/agents/worker/agui", json=run_input(order(words=100)), headers=alice.headers
        ) as stream,
    ):
        lines = stream.iter_lines()
        while "word3" not in next(lines):
            pass
        response = Response.objects.get()
        # What a process publishes that goes on with the response from its checkpoint.
        anew = fanout.text_message(
            chat_id=response.chat_id, response_id=response.pk, text="other words"
        )
        fanout.publish_from_thread(response.chat_id, [anew])
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "interrupted")
    assert events[-2]["type"] == "TEXT_MESSAGE_END"


def test_a_client_that_never_reads_holds_nothing_up(
    demo: ServerAddress, web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_STALL_SECONDS = 1
    body = json.dumps(run_input("words " * 40_000)).encode()
    host, _, port = demo.http.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = (
            f"POST /agents/echo/agui HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n"
            f"Authorization: {alice.headers['Authorization']}\r\n\r\n"
        )
        silent.sendall(head.encode() + body)
        wait_until(Response.objects.exists)

        # The answer of the client that takes nothing ends, and others are answered meanwhile.
        events = run(web, "echo", run_input("Hello there", thread="t2"), alice)
        assert text_of(events) == "Hello there"
        wait_until(lambda: not Response.objects.filter(finished_at__isnull=True).exists())
    # Its thread has what was written.
    back = {"threadId": "t1", "runId": "back", "messages": []}
    assert run(web, "echo", back, alice, path="/connect")[-1]["type"] == "RUN_FINISHED"
