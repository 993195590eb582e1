"""Tasks over JSON-RPC, in the dialects of 1.0 and 0.3."""

import base64
import json

import httpx
import pytest

from agents_app.models import Agent
from sessions_app.models import Response, Session
from tests.client import wait_until
from tests.conftest import ServerAddress
from tests.gateway_app.a2a.calls import (
    call,
    error_of,
    old_message,
    picture,
    send,
    stream,
    text_message,
    text_of,
)
from tests.live_server import Person

SEARCH = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
NOW = {"returnImmediately": True}


def test_a_message_is_answered_with_a_task(web: httpx.Client, alice: Person) -> None:
    task = send(web, "echo", "Hello there", who=alice)

    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert text_of(task) == "Hello there"
    assert task["history"][0]["parts"] == [{"text": "Hello there"}]
    row = Response.objects.get(pk=task["id"])
    assert row.session is not None
    assert (row.session.transport, row.session_id) == ("a2a", task["contextId"])
    assert call(web, "echo", "GetTask", {"id": task["id"]}, who=alice)["result"] == task


def test_the_older_dialect_has_its_own_words(web: httpx.Client) -> None:
    task = call(web, "echo", "message/send", {"message": old_message("Hi")})["result"]

    assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "Hi"}]
    assert task["history"][0]["kind"] == "message"
    assert call(web, "echo", "tasks/get", {"id": task["id"]})["result"] == task


@pytest.mark.parametrize(
    ("method", "message", "final"),
    [("SendStreamingMessage", text_message, None), ("message/stream", old_message, True)],
)
def test_a_stream_is_the_task_then_pieces_then_its_end(
    web: httpx.Client, method: str, message: object, final: object
) -> None:
    events = stream(web, "echo", method, {"message": message("One two three")})  # type: ignore[operator]

    if final is None:
        assert events[0]["task"]["status"]["state"] in {
            "TASK_STATE_SUBMITTED",
            "TASK_STATE_WORKING",
        }
        pieces = [event["artifactUpdate"] for event in events[1:-1]]
        end = events[-1]["statusUpdate"]
        assert end["status"]["state"] == "TASK_STATE_COMPLETED"
        assert "final" not in end
    else:
        assert events[0]["kind"] == "task"
        pieces = events[1:-1]
        assert {piece["kind"] for piece in pieces} == {"artifact-update"}
        end = events[-1]
        assert (end["kind"], end["status"]["state"], end["final"]) == (
            "status-update",
            "completed",
            True,
        )
    assert [piece["append"] for piece in pieces] == [False] + [True] * (len(pieces) - 1)
    text = "".join(piece["artifact"]["parts"][0]["text"] for piece in pieces)
    assert text == "One two three"
    assert len({piece["artifact"]["artifactId"] for piece in pieces}) == 1


def test_a_context_continues_under_the_clients_id(web: httpx.Client, alice: Person) -> None:
    first = send(web, "echo", "One", who=alice, contextId="my-context")
    second = send(web, "echo", "Two", who=alice, contextId="my-context")

    assert first["contextId"] == second["contextId"] == "my-context"
    assert first["id"] != second["id"]
    assert Session.objects.get().responses.count() == 2
    fetched_task = call(web, "echo", "GetTask", {"id": first["id"]}, who=alice)["result"]
    assert fetched_task["contextId"] == "my-context"


def test_a_context_continues_under_the_servers_id(web: httpx.Client) -> None:
    first = send(web, "echo", "One")
    second = send(web, "echo", "Two", contextId=first["contextId"])

    assert second["contextId"] == first["contextId"]
    assert Session.objects.get().responses.count() == 2


def test_a_visitor_names_no_context_of_their_own(web: httpx.Client) -> None:
    params = {"message": text_message("One", contextId="mine")}

    assert error_of(call(web, "echo", "SendMessage", params)) == (-32602, "INVALID_PARAMS")


def test_the_same_message_again_is_the_same_task(web: httpx.Client, alice: Person) -> None:
    message = text_message("Once", contextId="c")
    first = call(web, "echo", "SendMessage", {"message": message}, who=alice)
    again = call(web, "echo", "SendMessage", {"message": message}, who=alice)

    assert again == first
    assert Response.objects.count() == 1


def test_a_task_may_be_returned_at_once_and_cancelled(web: httpx.Client, alice: Person) -> None:
    task = send(web, "slow", "Count", who=alice, configuration=NOW)
    assert task["status"]["state"] == "TASK_STATE_WORKING"

    cancelled = call(web, "slow", "CancelTask", {"id": task["id"]}, who=alice)["result"]

    assert cancelled["status"]["state"] == "TASK_STATE_CANCELED"
    again = call(web, "slow", "CancelTask", {"id": task["id"]}, who=alice)
    assert error_of(again) == (-32002, "TASK_NOT_CANCELABLE")
    assert error_of(call(web, "slow", "SubscribeToTask", {"id": task["id"]}, who=alice)) == (
        -32004,
        "UNSUPPORTED_OPERATION",
    )


@pytest.mark.usefixtures("brisk")
def test_a_task_continues_when_its_client_leaves_and_is_followed_again(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendStreamingMessage",
        "params": {"message": text_message("Count")},
    }
    with (
        httpx.Client(base_url=demo.http, timeout=15, trust_env=False) as client,
        client.stream("POST", "/agents/slow/a2a", json=body, headers=alice.headers) as answer,
    ):
        next(answer.iter_lines())
    task_id = Response.objects.get().pk

    events = stream(web, "slow", "SubscribeToTask", {"id": task_id}, who=alice)

    assert events[0]["task"]["id"] == task_id
    assert {event["artifactUpdate"]["append"] for event in events[1:-1]} == {True}
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    text = text_of(events[0]["task"]) + "".join(
        event["artifactUpdate"]["artifact"]["parts"][0]["text"] for event in events[1:-1]
    )
    assert text == text_of(call(web, "slow", "GetTask", {"id": task_id}, who=alice)["result"])


def test_a_tool_of_the_client_is_input_required(web: httpx.Client, alice: Person) -> None:
    task = send(web, "tool-user", "Find it", who=alice, metadata={"uamp_tools": [SEARCH]})

    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    call_data = task["status"]["message"]["parts"][1]["data"]
    assert call_data["name"] == "search"
    done = send(web, "tool-user", "42", who=alice, taskId=task["id"])
    assert (done["id"], done["status"]["state"]) == (task["id"], "TASK_STATE_COMPLETED")
    assert "42" in text_of(done)


@pytest.mark.parametrize(
    ("answer", "row"),
    [({"text": "No"}, "refused"), ({"data": {"approved": True}}, "allowed")],
)
def test_a_call_that_needs_approval_is_input_required(
    web: httpx.Client, alice: Person, answer: object, row: str
) -> None:
    parts = [{"text": "black and white"}, {"raw": picture(), "mediaType": "image/png"}]
    task = send(web, "careful", "", who=alice, parts=parts)
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert "edit_picture" in task["status"]["message"]["parts"][0]["text"]

    params = {"message": text_message("", taskId=task["id"], parts=[answer])}
    params["configuration"] = NOW
    call(web, "careful", "SendMessage", params, who=alice)

    calls = Response.objects.get(pk=task["id"]).tool_calls
    # A worker of other tests in this process may take what is allowed.
    states = {"failed"} if row == "refused" else {"queued", "running", "done"}
    wait_until(lambda: calls.get().status in states)


def test_files_arrive_and_are_shown_under_an_address_that_works(
    web: httpx.Client, alice: Person
) -> None:
    parts = [{"text": "Look"}, {"raw": picture(), "mediaType": "image/png"}]
    task = send(web, "echo", "", who=alice, parts=parts)

    file_part = task["history"][0]["parts"][1]
    assert file_part["mediaType"] == "image/png"
    assert httpx.get(file_part["url"], trust_env=False).content == base64.b64decode(picture())


def test_tasks_are_listed_in_pages(web: httpx.Client, alice: Person, bob: Person) -> None:
    task_ids = [send(web, "echo", f"{n}", who=alice)["id"] for n in range(3)]
    send(web, "echo", "not hers", who=bob)
    send(web, "fail", "another agent", who=alice)

    first = call(web, "echo", "ListTasks", {"pageSize": 2}, who=alice)["result"]
    second = call(
        web,
        "echo",
        "ListTasks",
        {"pageSize": 2, "pageToken": first["nextPageToken"], "includeArtifacts": True},
        who=alice,
    )["result"]

    assert [task["id"] for task in (*first["tasks"], *second["tasks"])] == task_ids[::-1]
    assert (first["totalSize"], first["pageSize"], second["nextPageToken"]) == (3, 2, "")
    assert "artifacts" not in first["tasks"][0]
    assert text_of(second["tasks"][0]) == "0"


def test_tasks_are_listed_by_state_context_and_time(web: httpx.Client, alice: Person) -> None:
    done = send(web, "echo", "Done", who=alice, contextId="c")

    def ids(**which: object) -> list[str]:
        result = call(web, "echo", "ListTasks", which, who=alice)["result"]
        return [task["id"] for task in result["tasks"]]

    assert ids(status="TASK_STATE_COMPLETED") == ids(contextId="c") == [done["id"]]
    assert ids(status="TASK_STATE_FAILED") == ids(status="TASK_STATE_WORKING") == []
    assert ids(status="TASK_STATE_INPUT_REQUIRED") == ids(contextId="d") == []
    assert ids(statusTimestampAfter="2020-01-01T00:00:00Z") == [done["id"]]
    assert ids(statusTimestampAfter="2999-01-01T00:00:00Z") == []


def test_a_failed_response_is_a_failed_task(web: httpx.Client, alice: Person) -> None:
    task = send(web, "fail", "Break", who=alice)

    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert task["status"]["message"]["metadata"]["uamp_error"]["code"]
    listed = call(web, "fail", "ListTasks", {"status": "TASK_STATE_FAILED"}, who=alice)["result"]
    assert listed["totalSize"] == 1


def test_json_is_shown_as_data(web: httpx.Client, alice: Person) -> None:
    Agent.objects.create(name="plain", is_public=True, options={"script": "echo"})
    task = send(web, "plain", '{"a": [1, 2]}', who=alice)

    (answer,) = task["artifacts"]
    assert answer["parts"] == [{"data": {"a": [1, 2]}, "mediaType": "application/json"}]
    # A client that names what it reads, and no JSON among it, is given the text.
    configuration = {"acceptedOutputModes": ["text/plain"]}
    task = send(web, "plain", '{"a": [1, 2]}', who=alice, configuration=configuration)
    (answer,) = task["artifacts"]
    assert answer["parts"] == [{"text": '{"a": [1, 2]}', "mediaType": "text/plain"}]


def test_an_answer_comes_as_a_message_where_its_client_asks_for_one(
    web: httpx.Client, alice: Person
) -> None:
    asking = {"message": text_message("Hi there", metadata={"uamp_reply": "message"})}
    result = call(web, "echo", "SendMessage", asking, who=alice)["result"]
    message = result["message"]
    assert message["parts"] == [{"text": "Hi there", "mediaType": "text/plain"}]
    assert message["role"] == "ROLE_AGENT"
    assert "taskId" not in message
    # What is no whole answer is a task.
    at_once = {**asking, "configuration": {"returnImmediately": True}}
    assert call(web, "slow", "SendMessage", at_once, who=alice)["result"]["task"]
    assert call(web, "fail", "SendMessage", asking, who=alice)["result"]["task"]
    old = {"message": old_message("Hi", metadata={"uamp_reply": "message"})}
    result = call(web, "echo", "message/send", old, who=alice)["result"]
    assert (result["kind"], result["role"]) == ("message", "agent")
    rest = {
        "message": {
            "messageId": "one",
            "role": "ROLE_USER",
            "content": [{"text": "Hi"}],
            "metadata": {"uamp_reply": "message"},
        }
    }
    answer = web.post("/agents/echo/a2a/rest/v1/message:send", json=rest, headers=alice.headers)
    assert answer.json()["message"]["content"] == [{"text": "Hi"}]


def test_an_error_is_an_event_for_a_client_of_0_3_that_reads_events(
    web: httpx.Client, alice: Person
) -> None:
    headers = {**alice.headers, "Accept": "text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tasks/resubscribe", "params": {"id": "none"}}
    answer = web.post("/agents/echo/a2a", json=body, headers=headers)
    assert answer.headers["Content-Type"] == "text/event-stream"
    error = json.loads(answer.text.removeprefix("data: "))
    assert (error["id"], error["error"]["code"]) == (7, -32001)
    assert web.post("/agents/echo/a2a", json=body, headers=alice.headers).json() == error
    # Clients of 1.0 look for the error in a body of JSON.
    body["method"] = "SubscribeToTask"
    assert web.post("/agents/echo/a2a", json=body, headers=headers).json() == error
    body["method"] = ["tasks/resubscribe"]
    refused = web.post("/agents/echo/a2a", json=body, headers=headers).json()
    assert refused["error"]["code"] == -32600


def test_a_task_is_its_callers_own(web: httpx.Client, alice: Person, mallory: Person) -> None:
    task = send(web, "slow", "Count", who=alice, configuration=NOW)

    for who in (mallory, None):
        for method, params in (
            ("GetTask", {"id": task["id"]}),
            ("CancelTask", {"id": task["id"]}),
            ("SubscribeToTask", {"id": task["id"]}),
            ("SendMessage", {"message": text_message("Hi", taskId=task["id"])}),
        ):
            answer = call(web, "slow", method, params, who=who)
            assert error_of(answer) == (-32001, "TASK_NOT_FOUND"), method
        listed = call(web, "slow", "ListTasks", {"contextId": task["contextId"]}, who=who)
        assert listed["result"]["totalSize"] == 0
    other = call(web, "echo", "GetTask", {"id": task["id"]}, who=alice)
    assert error_of(other) == (-32001, "TASK_NOT_FOUND")
    Response.objects.get(pk=task["id"])
    call(web, "slow", "CancelTask", {"id": task["id"]}, who=alice)
