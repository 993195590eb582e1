"""Invalid calls, methods, versions and parameters: A2A's own error for each."""

import json
from typing import Any

import httpx
import pytest

from sessions_app.models import Response
from tests.gateway_app.a2a.calls import call, error_of, old_message, text_message
from tests.live_server import Person

JSON = {"Content-Type": "application/json"}
VALID = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage"}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"a": 1, "a": 2}', -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (json.dumps([VALID, VALID]).encode(), -32600),
        (b"1", -32600),
        (b"{}", -32600),
        (json.dumps({**VALID, "jsonrpc": "1.0"}).encode(), -32600),
        (json.dumps({**VALID, "id": {}}).encode(), -32600),
        (json.dumps({**VALID, "id": True}).encode(), -32600),
        (json.dumps({**VALID, "method": 1}).encode(), -32600),
        (json.dumps({**VALID, "method": "Nothing"}).encode(), -32601),
        (json.dumps({**VALID, "method": "tasks/send"}).encode(), -32601),
        (json.dumps(VALID).encode(), -32602),
        (json.dumps({**VALID, "params": [1]}).encode(), -32602),
        (b"[" * 5000 + b"]" * 5000, -32700),
    ],
)
def test_an_invalid_call_is_refused(web: httpx.Client, content: bytes, code: int) -> None:
    answer = web.post("/agents/echo/a2a", content=content, headers=JSON)

    assert answer.status_code == 200, answer.text
    assert answer.json()["error"]["code"] == code
    # The id of a call that has one is that of its answer, whatever is wrong with the rest.
    has_id = code != -32700 and content.endswith(b"}") and b'"id": 1' in content
    assert answer.json()["id"] == (1 if has_id else None)
    assert not Response.objects.exists()


@pytest.mark.parametrize(
    "path",
    [
        "/agents/echo/tasks/%00",
        "/agents/%00/tasks/task",
        "/agents/echo/a2a/rest/tasks/%00",
        "/agents/echo/a2a/rest/tasks?contextId=a%00",
        "/v1/models/%00",
    ],
)
def test_an_address_with_nul_is_refused(web: httpx.Client, alice: Person, path: str) -> None:
    """PostgreSQL takes no NUL in a question."""
    answer = web.get(path, headers=alice.headers)

    assert answer.status_code == 400, answer.text
    assert "NUL" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/agents/echo/a2a", "/agents/echo/a2a/"])
def test_a_slash_at_the_end_is_served_without_a_redirect(web: httpx.Client, path: str) -> None:
    body = {**VALID, "params": {"message": text_message("Hi")}}

    assert web.post(path, json=body).json()["result"]["task"]
    wrong = web.post(path, content=json.dumps(body), headers={"Content-Type": "text/plain"})
    assert error_of(wrong.json()) == (-32005, "CONTENT_TYPE_NOT_SUPPORTED")
    assert web.get(path).status_code == 405


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("version", "method", "is_refused"),
    [
        ("1.0", "SendMessage", False),
        ("1.0.1", "SendMessage", False),
        ("", "SendMessage", False),
        ("0.3", "SendMessage", True),
        ("9.9", "SendMessage", True),
        ("0.3", "message/send", False),
        ("1.0", "message/send", True),
        ("nonsense", "message/send", True),
    ],
)
def test_a_version_that_is_not_that_of_the_method_is_refused(
    web: httpx.Client, version: str, method: str, *, is_refused: bool
) -> None:
    message = text_message("Hi") if method == "SendMessage" else old_message("Hi")
    answer = call(web, "echo", method, {"message": message}, headers={"A2A-Version": version})

    if is_refused:
        assert error_of(answer) == (-32009, "VERSION_NOT_SUPPORTED")
    else:
        assert "result" in answer


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "message",
    [
        {},
        {"parts": []},
        {"role": "ROLE_AGENT"},
        {"role": "user"},
        {"messageId": ""},
        {"messageId": "x" * 1000},
        {"messageId": 7},
        {"parts": [{}]},
        {"parts": [{"text": "a", "url": "https://example.org/"}]},
        {"parts": [{"raw": "%%%", "mediaType": "image/png"}]},
        {"parts": [{"text": "a"}] * 1000},
        {"contextId": "x" * 1000},
        {"metadata": {"uamp_tools": "search"}},
        {"metadata": {"uamp_tools": [{"function": {}}]}},
    ],
)
def test_an_invalid_message_is_refused(web: httpx.Client, message: dict[str, Any]) -> None:
    full_message = {**text_message("Hi"), **message} if message else {}

    code, _ = error_of(call(web, "echo", "SendMessage", {"message": full_message}))

    assert code in {-32602, -32005}
    assert not Response.objects.exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "params",
    [
        {"pageSize": 0},
        {"pageSize": 101},
        {"pageSize": "many"},
        {"pageToken": "forged"},
        {"status": "DONE"},
        {"statusTimestampAfter": "yesterday"},
        {"historyLength": -1},
    ],
)
def test_a_list_that_cannot_be_is_refused(
    web: httpx.Client, alice: Person, params: dict[str, Any]
) -> None:
    assert error_of(call(web, "echo", "ListTasks", params, who=alice))[0] == -32602


def test_a_page_token_is_of_its_list(web: httpx.Client, alice: Person, bob: Person) -> None:
    for text in ("One", "Two"):
        call(web, "echo", "SendMessage", {"message": text_message(text)}, who=alice)
    page = call(web, "echo", "ListTasks", {"pageSize": 1}, who=alice)["result"]
    token = {"pageSize": 1, "pageToken": page["nextPageToken"]}

    assert error_of(call(web, "echo", "ListTasks", token, who=bob))[0] == -32602
    other = {**token, "status": "TASK_STATE_COMPLETED"}
    assert error_of(call(web, "echo", "ListTasks", other, who=alice))[0] == -32602


def test_an_ended_task_takes_no_message(web: httpx.Client, alice: Person) -> None:
    params = {"message": text_message("Hi", contextId="c")}
    task = call(web, "echo", "SendMessage", params, who=alice)["result"]["task"]

    more = {"message": text_message("More", taskId=task["id"])}
    answer = call(web, "echo", "SendMessage", more, who=alice)
    assert error_of(answer) == (-32004, "UNSUPPORTED_OPERATION")
    other = {"message": text_message("More", taskId=task["id"], contextId="another")}
    assert error_of(call(web, "echo", "SendMessage", other, who=alice))[0] == -32602


def test_refusals_of_the_server_keep_their_status(web: httpx.Client) -> None:
    body = {**VALID, "params": {"message": text_message("Hi")}}
    unknown = web.post("/agents/unknown/a2a", json=body)
    assert (unknown.status_code, error_of(unknown.json())) == (404, (-32000, "AGENT_NOT_FOUND"))
    headers = {"Authorization": "Bearer wrong"}
    stranger = web.post("/agents/echo/a2a", json=body, headers=headers)
    assert (stranger.status_code, error_of(stranger.json())) == (401, (-32000, "UNAUTHORIZED"))
