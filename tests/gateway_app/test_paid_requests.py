"""Payments in the headers of requests, on every HTTP edge: taken once, and for what was sent."""

from __future__ import annotations

import base64
import json
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest

from payments_app import x402
from payments_app.models import Transfer
from payments_app.tokens import issuance
from sessions_app.models import Response
from tests.client import wait_until
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd, wallet
from tests.threads import thread_pool

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Person

SAID: Final = "Hello there"
# More than the threads of a loop.
PAYERS: Final = 40
EDGES: Final[dict[str, Any]] = {
    "chat/completions": {"stream": True, "messages": [{"role": "user", "content": SAID}]},
    "responses": {"stream": True, "input": SAID},
    "v1/messages": {
        "model": "m",
        "max_tokens": 9,
        "stream": True,
        "messages": [{"role": "user", "content": SAID}],
    },
    "agui": {
        "threadId": "t",
        "runId": "r",
        "messages": [{"id": "m", "role": "user", "content": SAID}],
    },
    "tasks": {"message": {"role": "user", "parts": [{"type": "text", "text": SAID}]}},
}


def token_of(person: Person, amount: str) -> str:
    """Return a payment token of a rich person."""
    user_id = rich(person).user.pk
    return issuance.issue(key="token", user_id=user_id, amount=usd(amount), expires_in=600).token


def signature(demand: dict[str, Any], token: str) -> dict[str, str]:
    """Return the header of x402 version 2 that meets a demand with a token."""
    payment = {
        "x402Version": 2,
        "payload": {"token": token},
        "accepted": demand["context"]["accepts"][0],
    }
    return {"PAYMENT-SIGNATURE": base64.b64encode(json.dumps(payment).encode()).decode()}


def demanded(web: httpx.Client, agent: str) -> dict[str, Any]:
    """Return the demand of an agent for a request that does not pay."""
    refused = web.post(f"/agents/{agent}/chat/completions", json=EDGES["chat/completions"])
    assert refused.status_code == httpx.codes.PAYMENT_REQUIRED
    body: dict[str, Any] = refused.json()
    return body


def ended() -> bool:
    """Return whether no response is at work."""
    return not Response.objects.filter(status__in=Response.LIVE).exists()


def test_one_token_pays_on_every_edge_until_it_is_spent(web: httpx.Client, alice: Person) -> None:
    agent = priced("dear", per_answer="0.2")
    headers = signature(demanded(web, "dear"), token_of(alice, "1"))

    for path, body in EDGES.items():
        answer = web.post(f"/agents/dear/{path}", json=body, headers=headers)
        assert answer.status_code == httpx.codes.OK, answer.text
        assert "Hello" in answer.text, answer.text
    spent = [web.post(f"/agents/dear/{path}", json=EDGES[path], headers=headers) for path in EDGES]

    assert [refused.status_code for refused in spent[:-1]] == [402] * 4
    assert "payment_required" in spent[-1].text or "insufficient" in spent[-1].text, spent[-1].text
    assert Response.objects.filter(status="completed").count() == len(EDGES)
    assert earned(agent) == "1"
    assert clean()


@pytest.mark.sampled
@pytest.mark.parametrize("path", EDGES)
@pytest.mark.parametrize("who", ["person", "visitor"])
def test_the_same_request_at_the_same_time_is_paid_once(
    demo: ServerAddress, web: httpx.Client, alice: Person, path: str, who: str
) -> None:
    agent = priced("dear", per_answer="0.25")
    headers = signature(demanded(web, "dear"), token_of(alice, "5")) | {"Idempotency-Key": "1"}
    if who == "person":
        headers |= alice.headers

    def send(_: int) -> httpx.Response:
        return httpx.post(
            f"{demo.http}/agents/dear/{path}",
            json=EDGES[path],
            headers=headers,
            timeout=30,
            trust_env=False,
        )

    with thread_pool(6) as threads:
        answers = list(threads.map(send, range(6)))

    assert {answer.status_code for answer in answers} <= {200, 409}, [a.text for a in answers]
    for answer in answers:
        if answer.status_code == httpx.codes.CONFLICT:
            assert answer.headers["Retry-After"]
    assert "Hello" in send(0).text
    assert Response.objects.count() == 1
    assert earned(agent) == "0.25"
    assert clean()


@pytest.mark.sampled
@pytest.mark.parametrize("path", EDGES)
@pytest.mark.parametrize("lines", [1, 12])
def test_what_a_client_got_before_it_left_is_paid(
    demo: ServerAddress, alice: Person, path: str, lines: int
) -> None:
    agent = quick_agent("slow-and-dear", "slow")
    agent.pricing = {"per_answer": "0.25", "output_per_1k": "1"}
    agent.save()
    token = token_of(alice, "5")
    before = wallet(alice)
    with (
        closing(httpx.Client(base_url=demo.http, timeout=30, trust_env=False)) as client,
        client.stream(
            "POST",
            f"/agents/slow-and-dear/{path}",
            json=EDGES[path],
            headers={"X-Payment-Token": token},
        ) as stream,
    ):
        assert stream.status_code == httpx.codes.OK
        stream_lines = stream.iter_lines()
        for _ in range(lines):
            next(stream_lines)
    if path == "tasks":
        # A task goes on without its client.
        task = Response.objects.get().pk
        httpx.delete(f"{demo.http}/agents/slow-and-dear/tasks/{task}", trust_env=False)
    wait_until(ended)
    response = Response.objects.get()
    paid = sum(Transfer.objects.filter(response_id=response.pk).values_list("amount", flat=True))
    assert response.status == "cancelled"
    assert (paid > 0) is bool(response.text or response.output)
    assert wallet(alice).posted <= before.posted
    assert clean()


def test_a_slow_facilitator_keeps_no_other_request_waiting(
    web: httpx.Client, alice: Person, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UAMP_ANONYMOUS_RESPONSES_PER_MINUTE = 2 * PAYERS
    priced("dear", per_answer="0.25")
    chat = shared_chat(alice)
    waiting, go_on = threading.Semaphore(0), threading.Event()

    def slow(*_: Any, **__: Any) -> None:
        waiting.release()
        go_on.wait(30)

    monkeypatch.setattr(x402, "accept", slow)
    body = EDGES["chat/completions"]
    with thread_pool(PAYERS) as pool:
        requests = [
            pool.submit(web.post, "/agents/dear/chat/completions", json=body) for _ in range(PAYERS)
        ]
        assert waiting.acquire(timeout=20)
        try:
            # Its lines are read on a thread of the loop.
            export = web.get(
                f"/api/v1/chats/{chat.pk}/export?format=json", headers=alice.headers, timeout=15
            )
        finally:
            go_on.set()
        assert {request.result(60).status_code for request in requests} == {
            httpx.codes.PAYMENT_REQUIRED
        }
    assert export.status_code == httpx.codes.OK
