"""A2A over HTTP and JSON, in 1.0 and in 0.3."""

import json
import uuid
from typing import Any

import httpx
import pytest

from chat_app.models import ChatEvent
from tests.gateway_app.a2a.calls import text_message, text_of
from tests.live_server import Person
from uamp.digital_source import AI_MADE

pytestmark = pytest.mark.any_database

REST = "/agents/echo/a2a/rest"


def frames_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the events of a stream."""
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line[:6] == "data: "]


@pytest.mark.parametrize("media_type", ["application/json", "application/a2a+json"])
def test_a_task_over_rest(web: httpx.Client, alice: Person, media_type: str) -> None:
    headers = {**alice.headers, "Content-Type": media_type, "A2A-Version": "1.0"}
    body = json.dumps({"message": text_message("Hello there")})
    answer = web.post(f"{REST}/message:send", content=body, headers=headers)

    assert answer.headers["Content-Type"] == media_type
    task = answer.json()["task"]
    assert (text_of(task), task["status"]["state"]) == ("Hello there", "TASK_STATE_COMPLETED")
    fetched_task = web.get(
        f"{REST}/tasks/{task['id']}?historyLength=0", headers=alice.headers
    ).json()
    assert fetched_task["id"] == task["id"]
    assert "history" not in fetched_task
    listed = web.get(f"{REST}/tasks?pageSize=1&includeArtifacts=true", headers=alice.headers)
    assert listed.json()["tasks"][0]["artifacts"] == task["artifacts"]


def test_a_stream_over_rest(web: httpx.Client) -> None:
    answer = web.post(f"{REST}/message:stream", json={"message": text_message("One two")})

    events = frames_of(answer)
    assert "task" in events[0]
    last = events[-1]["statusUpdate"]
    assert last["status"]["state"] == "TASK_STATE_COMPLETED"
    done = ChatEvent.objects.get(type="response.done").payload
    assert last["metadata"] == {
        "digitalSourceType": AI_MADE,
        "uamp_signature": done["signature"],
    }


def test_a_cancelled_stream_is_marked_as_made_by_ai(web: httpx.Client, alice: Person) -> None:
    slow = REST.replace("echo", "slow")
    statuses: list[str] = []
    body = {"message": text_message("Count")}
    with web.stream("POST", f"{slow}/message:stream", json=body, headers=alice.headers) as answer:
        for line in answer.iter_lines():
            event = json.loads(line[6:]) if line.startswith("data: ") else {}
            if "artifactUpdate" in event and not statuses:
                task_id = event["artifactUpdate"]["taskId"]
                cancel = web.post(f"{slow}/tasks/{task_id}:cancel", headers=alice.headers)
                statuses.append(cancel.json()["status"]["state"])
            if "statusUpdate" in event:
                last = event["statusUpdate"]

    assert statuses == [last["status"]["state"]] == ["TASK_STATE_CANCELED"]
    assert last["metadata"] == {"digitalSourceType": AI_MADE}


def test_a_running_task_over_rest(web: httpx.Client, alice: Person) -> None:
    slow = REST.replace("echo", "slow")
    body = {"message": text_message("Count"), "configuration": {"returnImmediately": True}}
    task = web.post(f"{slow}/message:send", json=body, headers=alice.headers).json()["task"]

    cancelled = web.post(f"{slow}/tasks/{task['id']}:cancel", headers=alice.headers).json()
    assert cancelled["status"]["state"] == "TASK_STATE_CANCELED"
    for path, reason, status in (
        (":cancel", "TASK_NOT_CANCELABLE", (409, "FAILED_PRECONDITION")),
        (":subscribe", "UNSUPPORTED", (400, "UNIMPLEMENTED")),
    ):
        answer = web.post(f"{slow}/tasks/{task['id']}{path}", headers=alice.headers)
        error = answer.json()["error"]
        assert (answer.status_code, error["status"]) == status
        assert error["details"][0]["reason"].startswith(reason)


def test_the_older_rest_has_the_json_of_its_buffers(web: httpx.Client, alice: Person) -> None:
    message = {
        "messageId": uuid.uuid4().hex,
        "role": "ROLE_USER",
        "content": [{"text": "Hi"}, {"data": {"data": {"a": 1}}}],
    }
    path = f"{REST}/v1/message:send"
    task = web.post(path, json={"message": message}, headers=alice.headers).json()["task"]

    assert task["history"][0]["content"] == [{"text": 'Hi\n{"a":1}'}]
    assert task["artifacts"][0]["parts"][0]["text"].startswith("Hi")
    assert web.get(f"{REST}/v1/tasks/{task['id']}", headers=alice.headers).json() == task
    stream = web.post(f"{REST}/v1/message:stream", json={"message": message})
    assert frames_of(stream)[-1]["statusUpdate"]["final"] is True


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "reason"),
    [
        ("GET", "/tasks/unknown", {}, 404, "TASK_NOT_FOUND"),
        ("GET", "/nothing", {}, 404, "METHOD_NOT_FOUND"),
        ("GET", "/message:send", {}, 404, "METHOD_NOT_FOUND"),
        ("GET", "/v1/tasks", {}, 404, "METHOD_NOT_FOUND"),
        ("GET", "/tasks?pageSize=0", {}, 400, "INVALID_PARAMS"),
        ("GET", "/tasks", {"A2A-Version": "0.3"}, 400, "VERSION_NOT_SUPPORTED"),
        ("POST", "/message:send", {"Content-Type": "text/plain"}, 415, "CONTENT_TYPE_NOT_SUPPOR"),
        ("POST", "/message:send", {"Content-Type": "application/json"}, 400, "PARSE_ERROR"),
        ("GET", "/tasks/x/pushNotificationConfigs", {}, 404, "TASK_NOT_FOUND"),
    ],
)
def test_an_error_is_a_status_of_google(
    web: httpx.Client, method: str, path: str, headers: dict[str, str], status: int, reason: str
) -> None:
    answer = web.request(method, REST + path, headers=headers)

    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == status
    assert error["details"][0]["reason"].startswith(reason)
