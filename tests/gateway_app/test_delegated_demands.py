"""A demand of delegated work is one of the requested answer, and a refusal says what was charged.

An agent that costs a tenth passes work on to one that costs a quarter, which is not approved.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import httpx
import msgspec
import pytest
from django.db.models import Sum

from agents_app.models import Agent
from payments_app.models import Transfer
from payments_app.tokens import issuance
from sessions_app.models import Response
from tests.client import wait_until
from tests.gateway_app.a2a.calls import call, send
from tests.gateway_app.ag_ui.runs import run, run_input, text_of
from tests.sessions_app.billing.paid_agents import clean, earned, rich, usd, wallet
from tests.sessions_app.response.approval.questions import TOOLS, asker
from tests.sessions_app.turn.delegation import doer, task_for
from tests.sessions_app.turn.team_tools import order
from tests.threads import thread_pool

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.live_server import Person

TASK: Final = task_for("paid", order(say="done"))
CALL: Final = order(call="steps", arguments={"steps": 1, "pause": 0, "journal": "/dev/null"})
NOTHING: Final[list[Any]] = []


def _bodies(text: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {
        "chat/completions": {"messages": messages},
        "responses": {"input": text},
        "v1/messages": {"model": "m", "max_tokens": 99, "messages": messages},
    }


DIALECTS: Final = tuple(_bodies(""))


@pytest.fixture
def paid(demo: object) -> Agent:
    """Give an agent that costs a quarter, and one that costs a tenth and passes work on to it."""
    doer("boss", "paid", pricing={"per_answer": "0.1"})
    return doer("paid", pricing={"per_answer": "0.25"})


@pytest.fixture
def gated(demo: object, settings: Settings) -> Agent:
    """Give an agent whose tool a person has to allow, and one that passes work on to it."""
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, *TOOLS]
    doer("chief", "asker")
    return asker(pricing={"per_answer": "0.1", "input_per_1k": "0.001"})


def token_for(person: Person, agent: str) -> dict[str, str]:
    """Return the header of a token that pays one agent alone."""
    user_id = rich(person).user.pk
    issued_token = issuance.issue(
        key="token", user_id=user_id, amount=usd("1"), expires_in=600, audience=[agent]
    )
    return {"X-Payment-Token": issued_token.token}


def ended() -> bool:
    """Return whether no response is at work."""
    return not Response.objects.filter(status__in=Response.LIVE).exists()


def requested(agent: str) -> Response:
    """Return the response of an agent."""
    return Response.objects.get(agent__name=agent)


def data_frames(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the data of an event stream."""
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines()]
    return [msgspec.json.decode(line) for line in lines if line.startswith("{")]


@pytest.mark.parametrize("path", DIALECTS)
def test_a_client_that_cannot_pay_for_delegated_work_is_refused_with_402(
    web: httpx.Client, alice: Person, paid: Agent, path: str
) -> None:
    answer = web.post(
        f"/agents/boss/{path}", json=_bodies(TASK)[path], headers=token_for(alice, "boss")
    )
    assert answer.status_code == httpx.codes.PAYMENT_REQUIRED, answer.text
    body, boss, work = answer.json(), requested("boss"), requested("paid")
    assert body["response_id"] == boss.pk
    assert body["demand"] == {
        "agent": "paid",
        "amount": "0.25",
        "currency": "USD",
        "response_id": work.pk,
    }
    assert body["error"]["code"] == "payment_required"
    # Nothing was delivered.
    assert body["charged"] == NOTHING
    assert ended()
    assert clean()
    assert earned(paid) == "0"


@pytest.mark.parametrize("path", DIALECTS)
def test_a_stream_that_cannot_pay_for_delegated_work_ends_with_a_refusal(
    web: httpx.Client, alice: Person, paid: Agent, path: str
) -> None:
    body = {**_bodies(TASK)[path], "stream": True}
    answer = web.post(f"/agents/boss/{path}", json=body, headers=token_for(alice, "boss"))
    assert "payment_required" in answer.text
    last = data_frames(answer)[-1]
    assert (last["response_id"], last["charged"]) == (requested("boss").pk, NOTHING)
    assert last["demand"]["agent"] == "paid"
    wait_until(ended)
    assert clean()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", DIALECTS)
def test_what_was_delivered_before_a_demand_is_charged_and_in_the_refusal(
    web: httpx.Client, alice: Person, paid: Agent, path: str, *, stream: bool
) -> None:
    work = {"call": "delegate", "arguments": {"agent": "paid", "task": order(say="done")}}
    request = _bodies(order(say="I ask another one.", **work))[path]
    answer = web.post(
        f"/agents/boss/{path}", json={**request, "stream": stream}, headers=token_for(alice, "boss")
    )
    body = data_frames(answer)[-1] if stream else answer.json()
    assert body["charged"] == [{"amount": "0.1", "currency": "USD"}]
    assert body["response_id"] == requested("boss").pk
    if not stream:
        assert body["partial_text"] == "I ask another one."
    wait_until(clean)


@pytest.mark.parametrize("path", DIALECTS)
def test_the_refusal_of_a_call_that_needs_a_person_says_what_was_charged(
    web: httpx.Client, alice: Person, gated: Agent, path: str
) -> None:
    answer = web.post(
        f"/agents/asker/{path}", json=_bodies(CALL)[path], headers=token_for(alice, "asker")
    )
    assert answer.status_code == httpx.codes.FORBIDDEN, answer.text
    body = answer.json()
    assert body["response_id"] == requested("asker").pk
    # The tokens, without the price of the answer.
    (charged,) = body["charged"]
    assert 0 < usd(charged["amount"]).amount < usd("0.1").amount
    assert clean()


SAY: Final = {"name": "say", "parameters": {"type": "object"}}


def _with_tool(path: str, text: str) -> dict[str, Any]:
    body = _bodies(text)[path]
    if path == "v1/messages":
        return {**body, "tools": [{"name": "say", "input_schema": {"type": "object"}}]}
    tool = SAY if path == "responses" else {"function": SAY}
    return {**body, "tools": [{"type": "function", **tool}]}


@pytest.mark.parametrize("path", DIALECTS)
@pytest.mark.parametrize("demand", ["payment", "approval"])
def test_a_call_of_the_clients_tool_before_a_demand_is_delivered_and_paid(
    web: httpx.Client, alice: Person, paid: Agent, gated: Agent, path: str, demand: str
) -> None:
    """Its arguments may be the whole answer."""
    agent, text = ("boss", TASK) if demand == "payment" else ("asker", CALL)
    task = {**json.loads(text), "also": {"call": "say", "arguments": {"text": "all of it"}}}
    answer = web.post(
        f"/agents/{agent}/{path}",
        json=_with_tool(path, order(**task)),
        headers=token_for(alice, agent),
    )
    expected = httpx.codes.PAYMENT_REQUIRED if demand == "payment" else httpx.codes.FORBIDDEN
    assert answer.status_code == expected, answer.text
    (charged,) = answer.json()["charged"]
    assert usd(charged["amount"]).amount >= usd("0.1").amount
    (partial,) = answer.json()["partial_calls"]
    assert partial["name"] == "say"
    assert json.loads(partial["arguments"]) == {"text": "all of it"}
    assert partial["id"]
    wait_until(clean)


@pytest.mark.parametrize("stream", [False, True])
def test_the_error_of_a_failed_answer_has_what_its_delegated_work_cost(
    web: httpx.Client, alice: Person, paid: Agent, *, stream: bool
) -> None:
    """The work is stopped when the answer fails, and charged a moment later."""
    paid.pricing = {"output_per_1k": "1"}
    paid.save()
    rich(alice)
    headers = {"X-Payment-Token": payer_token(alice)}
    body = {**_bodies(task_for("paid", order(words=400)))["chat/completions"], "stream": stream}
    with thread_pool(1) as pool:
        answer = pool.submit(
            web.post, "/agents/boss/chat/completions", json=body, headers=headers, timeout=60
        )
        wait_until(lambda: Response.objects.filter(agent=paid, text__contains="word1").exists())
        Agent.objects.filter(name="boss").update(is_enabled=False)
        ended_with = answer.result(60)
    error_body = data_frames(ended_with)[-1] if stream else ended_with.json()
    wait_until(ended)
    wait_until(clean)
    total_charged = Transfer.objects.filter(kind="answer").aggregate(total=Sum("amount"))["total"]
    assert total_charged > 0
    assert [usd(charge["amount"]).amount for charge in error_body["charged"]] == [total_charged]


def test_rest_shows_and_takes_the_payment_of_delegated_work(
    web: httpx.Client, alice: Person, paid: Agent
) -> None:
    rich(alice)
    web.put("/api/payments/approvals/boss", json={"up_to": "1"}, headers=alice.headers)
    body = {"agent": "boss", "content": TASK, "wait": 20}
    answer = web.post("/api/v1/responses", json=body, headers=alice.headers).json()
    (response,) = answer["responses"]
    assert response["status"] == "waiting"
    work = requested("paid")
    (demand,) = response["waiting_for"]
    del demand["deadline"]
    assert demand == {
        "kind": "payment",
        "amount": "0.25",
        "currency": "USD",
        "response_id": work.pk,
        "agent": "paid",
    }
    path = f"/api/v1/responses/{response['id']}"
    payment = web.post(f"{path}/payment", json={}, headers=alice.headers)
    assert payment.json() == {"response_id": work.pk, "amount": "0.25", "currency": "USD"}
    wait_until(ended)
    done = web.get(path, headers=alice.headers).json()
    assert (done["status"], done["text"]) == ("completed", "received: done")
    wait_until(lambda: str(wallet(alice).available) == "9.65")
    assert clean()
    again = web.post(f"{path}/payment", json={}, headers=alice.headers)
    assert again.status_code == httpx.codes.NOT_FOUND


def test_rest_shows_the_approval_that_delegated_work_needs(
    web: httpx.Client, alice: Person, bob: Person, gated: Agent
) -> None:
    rich(alice)
    web.put("/api/payments/approvals/asker", json={"up_to": "1"}, headers=alice.headers)
    body = {"agent": "chief", "content": task_for("asker", CALL), "wait": 20}
    answer = web.post("/api/v1/responses", json=body, headers=alice.headers).json()
    (demand,) = answer["responses"][0]["waiting_for"]
    assert (demand["kind"], demand["agent"]) == ("approval", "asker")
    path = f"/api/v1/responses/{answer['responses'][0]['id']}/payment"
    stranger = web.post(path, json={}, headers=bob.headers)
    assert stranger.status_code == httpx.codes.NOT_FOUND


# --- Protocols whose clients pay in a later request ---


def payer_token(person: Person) -> str:
    """Return a token of a person that pays any agent."""
    issued_token = issuance.issue(
        key="any", user_id=person.user.pk, amount=usd("1"), expires_in=600
    )
    return issued_token.token


def test_a_task_whose_delegated_work_needs_a_payment_requires_input_and_takes_it(
    web: httpx.Client, alice: Person, paid: Agent
) -> None:
    rich(alice)
    web.put("/api/payments/approvals/boss", json={"up_to": "1"}, headers=alice.headers)
    task = send(web, "boss", TASK, who=alice)
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    message = task["status"]["message"]
    assert message["metadata"]["x402.payment.status"] == "payment-required"
    assert message["parts"][0]["text"] == "Work delegated to paid costs up to $0.25."
    (offer,) = message["metadata"]["x402.payment.required"]["accepts"]
    assert offer["scheme"] == "token"
    listed = call(web, "boss", "ListTasks", {"status": "TASK_STATE_INPUT_REQUIRED"}, who=alice)
    assert [item["id"] for item in listed["result"]["tasks"]] == [task["id"]]
    payload = {"x402Version": 2, "payload": {"token": payer_token(alice)}, "accepted": offer}
    metadata = {"x402.payment.status": "payment-submitted", "x402.payment.payload": payload}
    done = send(web, "boss", "Paid", who=alice, taskId=task["id"], metadata=metadata)
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert done["artifacts"][0]["parts"][0]["text"] == "received: done"
    wait_until(clean)
    assert earned(paid) == "0.25"


def test_a_task_whose_client_declines_to_pay_continues_without_the_work(
    web: httpx.Client, alice: Person, paid: Agent
) -> None:
    rich(alice)
    web.put("/api/payments/approvals/boss", json={"up_to": "1"}, headers=alice.headers)
    task = send(web, "boss", TASK, who=alice)
    declined = {"x402.payment.status": "payment-rejected"}
    done = send(web, "boss", "No", who=alice, taskId=task["id"], metadata=declined)
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert done["artifacts"][0]["parts"][0]["text"] == "failed: paid was stopped."
    wait_until(clean)
    assert earned(paid) == "0"


@pytest.mark.parametrize("pays", [True, False])
def test_a_payment_for_delegated_work_interrupts_the_run(
    web: httpx.Client, alice: Person, paid: Agent, *, pays: bool
) -> None:
    rich(alice)
    web.put("/api/payments/approvals/boss", json={"up_to": "1"}, headers=alice.headers)
    first = run(web, "boss", run_input(TASK), alice)
    (interrupt,) = first[-1]["outcome"]["interrupts"]
    assert interrupt["reason"] == "payment_required"
    assert interrupt["message"] == "Work delegated to paid costs up to $0.25."
    answer = {"interruptId": interrupt["id"], "status": "resolved" if pays else "cancelled"}
    if pays:
        answer["payload"] = {"token": payer_token(alice)}
    events = run(web, "boss", run_input("", run="r2", resume=[answer]), alice)
    assert events[-1]["outcome"] == {"type": "success"}
    assert text_of(events) == ("received: done" if pays else "failed: paid was stopped.")
    wait_until(clean)
    assert earned(paid) == ("0.25" if pays else "0")
