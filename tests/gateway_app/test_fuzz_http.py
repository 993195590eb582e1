"""Odd bodies and addresses on every HTTP edge: a typed refusal or an answer, and no 5xx."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from tests.gateway_app.completions.requests import PIXEL
from tests.gateway_app.fuzzing import check_answer, no_hurry, odd_bodies, run_examples

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.live_server import Person

JSON = {"Content-Type": "application/json"}
FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object"}}
TOOL = {"type": "function", "function": FUNCTION}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SENT = {
    "messageId": "m",
    "contextId": "c",
    "role": "ROLE_USER",
    "parts": [
        {"text": "x"},
        {"raw": "QQ==", "filename": "a.txt", "mediaType": "text/plain"},
        {"url": "https://example.org/a.png", "mediaType": "image/png"},
        {"data": {"a": 1}},
    ],
    "metadata": {"uamp_tools": [TOOL]},
}
OLD = {
    "kind": "message",
    "messageId": "m",
    "contextId": "c",
    "role": "user",
    "parts": [
        {"kind": "text", "text": "x"},
        {"kind": "file", "file": {"bytes": "QQ==", "name": "a", "mimeType": "text/plain"}},
        {"kind": "data", "data": {"a": 1}},
    ],
}
LIST = {
    "contextId": "c",
    "status": "TASK_STATE_COMPLETED",
    "pageSize": 5,
    "pageToken": "",
    "historyLength": 2,
    "statusTimestampAfter": "2020-01-01T00:00:00Z",
    "includeArtifacts": True,
}


def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return a call of JSON-RPC."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


VALID: dict[str, tuple[str, Any]] = {
    "messages": (
        "/agents/echo/v1/messages",
        {
            "model": "m",
            "max_tokens": 5,
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "x"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
                        },
                        {
                            "type": "document",
                            "title": "t",
                            "source": {"type": "text", "media_type": "text/plain", "data": "d"},
                        },
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "t", "signature": "s"},
                        {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c", "content": "r"},
                        {"type": "text", "text": "q"},
                    ],
                },
            ],
            "stream": False,
            "temperature": 0.5,
            "stop_sequences": ["a"],
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
            "metadata": {"user_id": "u"},
        },
    ),
    "completions": (
        "/agents/echo/chat/completions",
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "s", "name": "n"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "x"},
                        {
                            "type": "image_url",
                            "image_url": {"url": f"data:image/png;base64,{PIXEL}"},
                        },
                        {"type": "file", "file": {"file_data": "QQ==", "filename": "a.txt"}},
                    ],
                },
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c", "content": "r"},
                {"role": "user", "content": "q"},
            ],
            "stream": False,
            "stream_options": {"include_usage": True},
            "max_tokens": 5,
            "temperature": 0.5,
            "n": 1,
            "stop": ["a"],
            "tools": [TOOL],
            "tool_choice": "auto",
            "response_format": {"type": "text"},
        },
    ),
    "ag-ui": (
        "/agents/echo/agui",
        {
            "threadId": "t",
            "runId": "r",
            "parentRunId": "p",
            "state": {},
            "messages": [
                {"id": "a", "role": "assistant", "toolCalls": [CALL]},
                {"id": "b", "role": "tool", "toolCallId": "c", "content": "r"},
                {
                    "id": "m",
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "x"},
                        {
                            "type": "image",
                            "source": {"type": "data", "value": PIXEL, "mimeType": "image/png"},
                        },
                    ],
                },
            ],
            "tools": [FUNCTION],
            "context": [{"description": "d", "value": "v"}],
        },
    ),
    "ag-ui resumed": (
        "/agents/echo/agui",
        {
            "threadId": "t",
            "runId": "r",
            "resume": [
                {
                    "interruptId": "payment_required:resp_1",
                    "status": "resolved",
                    "payload": {"token": "t"},
                }
            ],
        },
    ),
    "a2a 1.0": (
        "/agents/echo/a2a",
        call(
            "SendMessage",
            {
                "message": SENT,
                "configuration": {"historyLength": 3, "returnImmediately": False},
                "metadata": {"x402.payment.payload": {"payload": {"token": "t"}}},
            },
        ),
    ),
    "a2a 0.3": (
        "/agents/echo/a2a",
        call("message/send", {"message": OLD, "configuration": {"blocking": True}}),
    ),
    "a2a list": ("/agents/echo/a2a", call("ListTasks", LIST)),
    "a2a task": ("/agents/echo/a2a", call("GetTask", {"id": "t", "historyLength": 1})),
    "a2a rest": ("/agents/echo/a2a/rest/message:send", {"message": SENT}),
    "a2a push": (
        "/agents/echo/a2a",
        call(
            "CreateTaskPushNotificationConfig",
            {
                "taskId": "t",
                "id": "p",
                "url": "https://example.org/",
                "token": "t",
                "authentication": {"scheme": "Bearer", "credentials": "c"},
            },
        ),
    ),
    "responses": (
        "/agents/echo/responses",
        {
            "model": "m",
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "x"},
                        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                    ],
                },
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "r"},
                {"role": "user", "content": "q"},
            ],
            "instructions": "i",
            "stream": False,
            "store": True,
            "tools": [{"type": "function", **FUNCTION}],
            "tool_choice": "auto",
            "max_output_tokens": 50,
            "temperature": 0.5,
            "text": {"format": {"type": "text"}},
            "metadata": {"a": "b"},
            "include": ["reasoning.encrypted_content"],
        },
    ),
    "client secrets": (
        "/v1/realtime/client_secrets",
        {
            "session": {
                "type": "realtime",
                "model": "echo",
                "instructions": "i",
                "tools": [{"type": "function", **FUNCTION}],
                "max_output_tokens": 5,
            },
            "expires_after": {"anchor": "created_at", "seconds": 10},
        },
    ),
    "acp": (
        "/agents/echo/acp",
        call("prompt/submit", {"messages": [{"role": "user", "content": "x"}]}),
    ),
    "acp initialized": ("/agents/echo/acp", call("initialize", {"protocolVersion": 1})),
    "ag-ui connected": ("/agents/echo/agui/connect", {"threadId": "t", "runId": "r"}),
    "tasks": (
        "/agents/echo/tasks",
        {"message": {"role": "user", "parts": [{"type": "text", "text": "x"}]}, "contextId": "c"},
    ),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("edge", VALID)
def test_odd_bodies(web: httpx.Client, alice: Person, settings: Settings, edge: str) -> None:
    no_hurry(settings)
    path, valid = VALID[edge]
    headers = {**JSON, **alice.headers}

    def show(body: bytes) -> None:
        check_answer(web.post(path, content=body, headers=headers))

    run_examples(show, odd_bodies(valid))
    assert web.post(path, json=valid, headers=headers).status_code < 500


ADDRESSES = [
    "/agents/{}/tasks/x",
    "/agents/echo/tasks/{}",
    "/agents/echo/a2a/rest/tasks/{}",
    "/agents/echo/a2a/rest/tasks/{}:subscribe",
    "/agents/echo/a2a/rest/v1/tasks/{}",
    "/agents/echo/a2a/rest/{}",
    "/agents/{}/.well-known/agent-card.json",
    "/agents/{}/v1/models",
    "/agents/echo/{}",
    "/agents/{}/{}",
    "/v1/{}",
    "/v1/models/{}",
    "/v1/responses/{}",
    "/v1/responses/{}/cancel",
    "/v1/responses/{}/input_items",
    "/v1/responses/x/input_items?after={}",
    "/v1/responses/x/input_items?limit={}",
    "/v1/responses/x?stream=true&starting_after={}",
    "/agents/{}",
    "/agents?cursor={}",
    "/agents?q={}&limit={}",
    "/agents/echo/a2a/rest/tasks/{}/pushNotificationConfigs/x",
    *(f"/agents/echo/a2a/rest/tasks?{name}={{}}" for name in LIST),
]
WORDS = [
    "%00",
    "%ff",
    "%ed%a0%80",
    "x" * 3_000,
    "%F0%9F%98%80",
    # A client takes ".." itself, and asks for another address.
    "..%2F..",
    "1e400",
    "-1",
    "9" * 5_000,
    "NaN",
]
TIMES = ["0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00", "2020-W01-1", "24:00"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["x" * 300, "%00", "%ff", "."])
def test_odd_agents(web: httpx.Client, alice: Person, name: str) -> None:
    for path, body in VALID.values():
        answer = web.post(path.replace("echo", name), json=body, headers=alice.headers)
        assert answer.status_code < 500, (path, answer.text[:500])


def test_odd_addresses(web: httpx.Client, alice: Person, settings: Settings) -> None:
    no_hurry(settings)

    def show(drawn: tuple[str, str, str]) -> None:
        method, address, word = drawn
        answer = web.request(method, address.replace("{}", word), headers=alice.headers)
        check_answer(answer)

    run_examples(
        show,
        st.tuples(
            st.sampled_from(["GET", "DELETE", "POST", "PUT"]),
            st.sampled_from(ADDRESSES),
            st.sampled_from([*WORDS, *TIMES]),
        ),
    )


def test_odd_headers(web: httpx.Client, alice: Person, settings: Settings) -> None:
    no_hurry(settings)
    names = ["X-PAYMENT", "PAYMENT-SIGNATURE", "X-Payment-Token", "Idempotency-Key", "X-Chat-Id"]
    names += [
        "X-Agent-Id",
        "A2A-Version",
        "A2A-Extensions",
        "Authorization",
        "Content-Type",
        "Host",
    ]
    values = ["", "\xff\xfe", "x" * 5_000, "Bearer -", "a,b,,;=", "1.0.0.0", "bnVsbA==", "e30="]

    def show(drawn: tuple[str, str, str]) -> None:
        edge, name, value = drawn
        path, valid = VALID[edge]
        headers = {**JSON, "Idempotency-Key": uuid.uuid4().hex, **alice.headers}
        other_headers = [(k, v) for k, v in headers.items() if k.lower() != name.lower()]
        encoded_headers = [
            (k.encode(), v.encode("latin-1")) for k, v in [*other_headers, (name, value)]
        ]
        answer = web.post(path, json=valid, headers=encoded_headers)
        assert answer.status_code < 500, (drawn, answer.text[:500])

    run_examples(
        show,
        st.tuples(st.sampled_from(list(VALID)), st.sampled_from(names), st.sampled_from(values)),
    )
