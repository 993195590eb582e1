"""Tasks as the transports' specification has them: `POST /tasks`, and one by its id."""

import json
from typing import Any

import httpx
import pytest

from payments_app.tokens import issuance
from sessions_app.models import Response
from tests.client import wait_until
from tests.conftest import ServerAddress
from tests.live_server import Person
from tests.sessions_app.billing.paid_agents import rich, usd

pytestmark = pytest.mark.any_database


def spec_body(text: str, **members: Any) -> dict[str, Any]:
    """Return the body that the specification prints."""
    return {"message": {"role": "user", "parts": [{"type": "text", "text": text}]}, **members}


def events_of(answer: httpx.Response) -> list[tuple[str, dict[str, Any]]]:
    """Return names and data of a stream."""
    assert answer.headers["Content-Type"].startswith("text/event-stream"), answer.text
    frames = [frame for frame in answer.text.split("\n\n") if frame.startswith("event: ")]
    lines = [frame.split("\n", 1) for frame in frames]
    return [(name[7:], json.loads(data[6:])) for name, data in lines]


def test_a_task_streams_its_answer(web: httpx.Client, alice: Person) -> None:
    answer = web.post("/agents/echo/tasks", json=spec_body("Hello there"), headers=alice.headers)

    events = events_of(answer)
    assert [name for name, _ in events if name != "task.message"] == [
        "task.started",
        "task.completed",
    ]
    task_id = events[0][1]["id"]
    assert events[0][1]["status"] == "running"
    assert events[-1][1] == {"id": task_id, "status": "completed"}
    pieces = [data for name, data in events if name == "task.message"]
    assert {piece["role"] for piece in pieces} == {"agent"}
    assert "".join(piece["parts"][0]["text"] for piece in pieces) == "Hello there"

    fetched_task = web.get(f"/agents/echo/tasks/{task_id}", headers=alice.headers).json()
    assert (fetched_task["id"], fetched_task["status"]) == (task_id, "completed")
    assert fetched_task["messages"][1]["parts"] == [{"type": "text", "text": "Hello there"}]
    ended = web.delete(f"/agents/echo/tasks/{task_id}", headers=alice.headers)
    assert ended.status_code == 409


def test_a_running_task_is_cancelled(
    demo: ServerAddress, web: httpx.Client, alice: Person, mallory: Person
) -> None:
    with (
        httpx.Client(base_url=demo.http, timeout=15, trust_env=False) as client,
        client.stream(
            "POST", "/agents/slow/tasks", json=spec_body("Count"), headers=alice.headers
        ) as stream,
    ):
        next(stream.iter_lines())
        path = f"/agents/slow/tasks/{Response.objects.get().pk}"
        assert web.get(path, headers=alice.headers).json()["status"] == "running"
        for headers in ({}, mallory.headers):
            assert web.get(path, headers=headers).status_code == 404
            assert web.delete(path, headers=headers).status_code == 404
        cancelled = web.delete(path, headers=alice.headers)

    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "canceled")
    wait_until(lambda: Response.objects.get().status == "cancelled")


def test_a_price_is_a_failed_task_and_is_paid_with_a_new_one(
    web: httpx.Client, alice: Person
) -> None:
    rich(alice)
    unpaid = web.post("/agents/paid-echo/tasks", json=spec_body("Hello there"))
    ((name, failed),) = events_of(unpaid)
    assert name == "task.failed"
    assert (failed["status"], failed["code"], failed["status_code"]) == (
        "failed",
        "payment_required",
        402,
    )
    assert failed["accepts"][0]["scheme"] == "token"
    assert unpaid.headers["PAYMENT-REQUIRED"]
    assert not Response.objects.exists()

    issued = issuance.issue(key="t", user_id=alice.user.pk, amount=usd("1"), expires_in=600)
    headers = {"X-PAYMENT": issued.token}
    paid = web.post("/agents/paid-echo/tasks", json=spec_body("Hello there"), headers=headers)
    assert events_of(paid)[-1][0] == "task.completed"
    assert paid.headers["PAYMENT-RESPONSE"]


def test_a_failed_answer_is_a_failed_task(web: httpx.Client, alice: Person) -> None:
    answer = web.post("/agents/fail/tasks", json=spec_body("Break"), headers=alice.headers)

    name, data = events_of(answer)[-1]
    assert (name, data["status"]) == ("task.failed", "failed")
    assert data["code"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"message": {}},
        {"message": {"role": "user", "parts": []}},
        {"message": {"role": "agent", "parts": [{"type": "text", "text": "a"}]}},
        {"message": {"role": "user", "parts": [{"type": "text"}]}},
        {"message": {"role": "user", "parts": [{"type": "file", "file": {}}]}},
        {"message": {"role": "user", "parts": [{"type": "film"}]}},
    ],
)
def test_an_invalid_task_is_refused(web: httpx.Client, body: dict[str, Any]) -> None:
    answer = web.post("/agents/echo/tasks", json=body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_PARAMS")
    assert not Response.objects.exists()
