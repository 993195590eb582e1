"""Tasks that wait, are paid in headers, or are written anew."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from chat_app.log import fanout
from payments_app.tokens import issuance
from sessions_app.models import Response, ToolCall
from tests.client import wait_until
from tests.gateway_app.a2a.calls import call, error_of, picture, send, stream, text_message, text_of
from tests.sessions_app.billing.paid_agents import rich, usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.any_database

SEARCH = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
PAID = "/agents/paid-echo/a2a"


def test_a_stream_continues_when_the_task_asks_for_input(web: httpx.Client, alice: Person) -> None:
    task = send(web, "tool-user", "Find it", who=alice, metadata={"uamp_tools": [SEARCH]})
    events: list[dict[str, Any]] = []

    def follow() -> None:
        events.extend(stream(web, "tool-user", "SubscribeToTask", {"id": task["id"]}, who=alice))

    follower = threading.Thread(target=follow)
    follower.start()
    send(web, "tool-user", "42", who=alice, taskId=task["id"])
    follower.join(timeout=90)

    assert events[0]["task"]["id"] == task["id"]
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_question_of_an_agent_below_is_asked_in_the_task(
    web: httpx.Client, alice: Person
) -> None:
    Agent.objects.filter(name="darkroom").update(approvals=["edit_picture"])
    parts = [{"text": "black and white"}, {"raw": picture(), "mediaType": "image/png"}]
    task = send(web, "studio", "", who=alice, parts=parts)

    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert "edit_picture" in task["status"]["message"]["parts"][0]["text"]
    fetched_task = call(web, "studio", "GetTask", {"id": task["id"]}, who=alice)["result"]
    assert fetched_task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    for state, listed in (("INPUT_REQUIRED", [task["id"]]), ("WORKING", [])):
        which = {"status": f"TASK_STATE_{state}"}
        page = call(web, "studio", "ListTasks", which, who=alice)["result"]
        assert [item["id"] for item in page["tasks"]] == listed
        assert page["totalSize"] == len(listed)
    params = {"message": text_message("no", taskId=task["id"])}
    params["configuration"] = {"returnImmediately": True}
    assert "result" in call(web, "studio", "SendMessage", params, who=alice)
    wait_until(lambda: ToolCall.objects.get(name="edit_picture").status == "failed")


def body_of(method: str) -> dict[str, Any]:
    params = {"message": text_message("Hello there")}
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


@pytest.mark.parametrize("binding", ["rpc", "rest"])
def test_a_payment_in_the_headers_pays_the_task(
    web: httpx.Client, alice: Person, binding: str
) -> None:
    rich(alice)
    token = issuance.issue(key="t", user_id=alice.user.pk, amount=usd("1"), expires_in=600).token
    path = PAID if binding == "rpc" else f"{PAID}/rest/message:send"
    body = body_of("SendMessage") if binding == "rpc" else body_of("")["params"]

    answer = web.post(path, json=body, headers={"X-PAYMENT": token})

    result = answer.json()["result"] if binding == "rpc" else answer.json()
    assert result["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert text_of(result["task"]) == "Hello there"
    assert answer.headers["PAYMENT-RESPONSE"]


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_a_payment_in_the_headers_that_is_not_taken_is_a_402(
    web: httpx.Client, method: str
) -> None:
    answer = web.post(PAID, json=body_of(method), headers={"X-PAYMENT": "not.a.token"})

    assert answer.status_code == 402
    assert (answer.json()["jsonrpc"], answer.json()["id"]) == ("2.0", 7)
    assert error_of(answer.json()) == (-32000, "PAYMENT_REQUIRED")
    assert answer.headers["PAYMENT-REQUIRED"]
    rest = web.post(
        f"{PAID}/rest/message:send", json=body_of("")["params"], headers={"X-PAYMENT": "no"}
    )
    assert (rest.status_code, rest.json()["error"]["code"]) == (402, 402)
    assert not Response.objects.exists()


def test_a_text_that_is_written_anew_replaces_its_artifact(
    web: httpx.Client, alice: Person
) -> None:
    params = {"message": text_message("Count")}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}

    def updates(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
        for line in lines:
            if line.startswith("data: "):
                result = json.loads(line[6:])["result"]
                if "artifactUpdate" in result:
                    yield result["artifactUpdate"]

    with web.stream("POST", "/agents/slow/a2a", json=body, headers=alice.headers) as answer:
        seen = updates(answer.iter_lines())
        next(seen)
        running = Response.objects.get()
        replaced = fanout.text_message(
            chat_id=running.chat_id, response_id=running.pk, text="Another beginning"
        )
        fanout.publish_from_thread(running.chat_id, [replaced])
        anew = next(update for update in seen if not update["append"])
        assert anew["artifact"]["parts"][0]["text"].startswith("Another beginning")
        assert anew["artifact"]["artifactId"] == f"{running.pk}-0"
        call(web, "slow", "CancelTask", {"id": running.pk}, who=alice)


def test_names_of_parameters_may_be_those_of_the_buffers(web: httpx.Client, alice: Person) -> None:
    task = send(web, "echo", "Hi", who=alice)

    task_params = {"id": task["id"], "history_length": 0}
    assert "history" not in call(web, "echo", "GetTask", task_params, who=alice)["result"]
    message = {"message_id": "m", "role": "ROLE_USER", "parts": [{"data": {"a_b": 1}}]}
    params = {"message": message, "configuration": {"return_immediately": False}}
    answer = call(web, "echo", "SendMessage", params, who=alice)
    (artifact,) = answer["result"]["task"]["artifacts"]
    assert artifact["parts"][0]["data"] == {"a_b": 1}
